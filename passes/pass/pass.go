// Package pass says what a pass is: its name, the form it requires and ensures,
// what it may ask of its caller, and how it reports a program that it cannot
// lower.
package pass

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
)

// A Pass is one transformation of a Module.
//
// Requires, Ensures and Breaks state the Form it works in. [Run] refuses an
// order in which a Pass does not get what it requires, so the order of Table
// is checked, not only commented.
type Pass struct {
	Name string // as in --after; lower case, no spaces
	Doc  string // one sentence, beginning with a verb

	Requires ir.Form // holds before, or Run does not start
	Ensures  ir.Form // holds after
	Breaks   ir.Form // may hold no more after

	Run func(*Context, *ir.Module) error
}

// A Context is what a pass may ask of its caller. A nil Context has no wishes.
type Context struct {
	// OnWarning, if not nil, is called with what a pass does that the program
	// probably does not mean, such as gathering a value that is sharded before
	// and after.
	OnWarning func(*Error)
}

// Warn tells the caller of e.
func (c *Context) Warn(e *Error) {
	if c.Wants() {
		c.OnWarning(e)
	}
}

// Wants reports whether the caller wants to hear of warnings.
func (c *Context) Wants() bool { return c != nil && c.OnWarning != nil }

// After is the Form of a Module of Form f once p has run.
func (p *Pass) After(f ir.Form) ir.Form { return f&^p.Breaks | p.Ensures }

// An Error is a program that a pass cannot lower, through no fault of ppc.
type Error struct {
	Pass string
	Op   *ir.Op // nil where no op is to blame
	Msg  string

	Replication *Replication // that a warning is about; nil if it is about something else

	// Setting is the key of the pipeline block that a warning is about, "" if it is
	// about something else; Kept is the checkpoint name that it speaks of there.
	Setting, Kept string
}

func (e *Error) Error() string {
	at := ""
	if p := e.Pos(); p.Line > 0 {
		at = p.String() + ": "
	}
	if name := e.Name(); name != "" {
		at += name + ": "
	}
	return at + e.Msg
}

// Pos is where the op to blame comes from; its line is 0 where that is not
// known.
func (e *Error) Pos() ir.Pos {
	if e.Op == nil || e.Op.Origin == nil {
		return ir.Pos{}
	}
	return e.Op.Origin.Pos
}

// Name is what the user calls the op to blame; "" if nothing.
func (e *Error) Name() string {
	if e.Op == nil {
		return ""
	}
	return OpUserName(e.Op)
}

// OpUserName is what the user calls op, "" if nothing.
func OpUserName(op *ir.Op) string {
	if op.Origin.Name() != "" {
		return op.Origin.Name()
	}
	for _, v := range op.Results {
		if v.Name != "" {
			return v.Name
		}
	}
	return ""
}

// A Replication is a tensor that every device has all of at some time though
// the program wants it sharded before and after.
type Replication struct {
	Value *ir.Value    // of the global program
	By    string       // the op that needs it unsharded, "" where it is on its way to another sharding
	Dim   int          // that By needs unsharded
	Along []ir.AxisRef // that Dim is sharded along
	From  *ir.Sharding // of the value
	To    *ir.Sharding // of what By makes of it, or of the value after
}

// Errorf is an [Error] that blames op, which may be nil.
func Errorf(op *ir.Op, format string, args ...any) error { return ErrorOf(op, format, args...) }

// ErrorOf is Errorf for callers that add to the error.
func ErrorOf(op *ir.Op, format string, args ...any) *Error {
	return &Error{Op: op, Msg: fmt.Sprintf(format, args...)}
}

// Errors is several errors of one pass, in source order.
type Errors []*Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// SortedErrors is es in source order, each once: nil where there is none, and
// the one where there is one.
func SortedErrors(es []*Error) error {
	place := func(e *Error) (file string, pos ir.Pos) { return e.Pos().File, e.Pos() }
	said := make(map[string]bool)
	es = slices.DeleteFunc(es, func(e *Error) bool {
		again := said[e.Error()]
		said[e.Error()] = true
		return again
	})
	slices.SortStableFunc(es, func(a, b *Error) int {
		f, p := place(a)
		g, q := place(b)
		return cmp.Or(cmp.Compare(f, g), p.Compare(q))
	})
	switch len(es) {
	case 0:
		return nil
	case 1:
		return es[0]
	}
	return Errors(es)
}
