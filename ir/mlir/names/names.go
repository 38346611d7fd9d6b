// Package names names the values of a function as MLIR does.
package names

import (
	"strconv"
	"strings"

	"ppc/ir"
)

// A namer gives each value of a function the name that MLIR gives it: its own
// name, made unique by a suffix; arg0, arg1, … for arguments without one;
// c and cst for constants, iterArg for the arguments of a while; a number for
// the rest.
//
// The suffix is not a counter per name but one for all names, and the values
// of a region are named before those of the regions inside it, each of which
// continues from where its parent ended. Printing and parsing follow the same
// walk: the printer to name values, the parser to find, for each name in the
// text, the name without suffix from which the printer makes it again.
type namer struct {
	text    []string // by ID: how a use is written; nil where names are recovered
	used    map[string]bool
	log     []string // names in use, for the ends of regions
	recover bool     // values have the names of the text; give them back their own

	value, arg, conflict int // the next number of each kind

	// result is the name that the syntax of an op gives its result i, "" for none.
	result func(op *ir.Op, i int) string
}

// Of returns how each value of f is written, by ID. result is the name that the syntax of
// an op gives its result i, "" for none.
func Of(f *ir.Func, result func(op *ir.Op, i int) string) []string {
	n := &namer{used: make(map[string]bool), text: make([]string, f.NumIDs()), result: result}
	n.region(nil, 0, f.Body)
	return n.text
}

// Recover replaces the names that f's values have in the text by names from which [Of]
// makes those of the text.
func Recover(f *ir.Func, result func(op *ir.Op, i int) string) {
	n := &namer{used: make(map[string]bool), recover: true, result: result}
	n.region(nil, 0, f.Body)
}

// region names the values of b, region i of parent.
func (n *namer) region(parent *ir.Op, i int, b *ir.Block) {
	if b == nil {
		return
	}
	value, arg, conflict, mark := n.value, n.arg, n.conflict, len(n.log)
	n.arguments(parent, i, b)
	for _, op := range b.Ops {
		n.results(op)
	}
	for _, op := range b.Ops {
		for k, r := range op.Regions {
			n.region(op, k, r)
		}
	}
	for _, name := range n.log[mark:] {
		delete(n.used, name)
	}
	n.value, n.arg, n.conflict, n.log = value, arg, conflict, n.log[:mark]
}

func (n *namer) arguments(parent *ir.Op, i int, b *ir.Block) {
	loop := parent != nil && parent.Kind == ir.While
	inputs, scanned := 0, false
	if parent != nil && parent.Kind == ir.Unknown && parent.Spelling == "chlo.scan" {
		inputs, _, scanned = parent.Segments()
	}
	for k, a := range b.Args {
		if a == nil {
			continue
		}
		// Both regions of a while print one list of arguments.
		if loop && i > 0 {
			shareName(a, parent.Regions[0], k)
		}
		base := "arg" + strconv.Itoa(n.arg)
		switch {
		case loop:
			base = "iterArg"
		case scanned && k < inputs:
			base = "input"
		case scanned:
			base = "carry"
		}
		if n.set(a, base) && !loop && !scanned {
			n.arg++
		}
	}
}

// shareName gives a the name of argument k of b.
func shareName(a *ir.Value, b *ir.Block, k int) {
	if b != nil && k < len(b.Args) && b.Args[k] != nil {
		a.Name = b.Args[k].Name
	}
}

func (n *namer) results(op *ir.Op) {
	named := 0 // the last result before that has a name, or the first
	for i, v := range op.Results {
		if v == nil {
			continue
		}
		base := n.resultName(op, i)
		if i > 0 && base == "" && (v.Name == "" || IsNumber(v.Name)) {
			n.group(op, named, i)
			continue
		}
		n.set(v, base)
		if v.Name != "" || base != "" {
			named = i
		}
	}
}

// group names result i of op, which has no name, after result k.
func (n *namer) group(op *ir.Op, k, i int) {
	v := op.Results[i]
	v.Name = ""
	first := op.Results[k]
	if first == nil || first.ID <= 0 || int(first.ID) >= len(n.text) {
		return
	}
	head, _, _ := strings.Cut(n.text[first.ID], "#")
	n.write(first, head+"#0")
	n.write(v, head+"#"+strconv.Itoa(i-k))
}

// set names v. It reports whether v took its default name, base, or a number
// where that is empty.
func (n *namer) set(v *ir.Value, base string) bool {
	if n.recover {
		v.Name = n.own(v.Name, base)
	}
	switch {
	case v.Name != "":
		n.write(v, "%"+n.unique(sanitize(v.Name)))
		return false
	case base != "":
		n.write(v, "%"+n.unique(base))
	default:
		if !n.recover {
			var b [20]byte
			n.write(v, string(strconv.AppendInt(append(b[:0], '%'), int64(n.value), 10)))
		}
		n.value++
	}
	return true
}

func (n *namer) write(v *ir.Value, text string) {
	if int(v.ID) < len(n.text) && v.ID > 0 {
		n.text[v.ID] = text
	}
}

// own is the name of a value that the text calls raw.
func (n *namer) own(raw, base string) string {
	if raw == "" || IsNumber(raw) || base != "" && n.probe(base) == raw {
		return ""
	}
	if i := strings.LastIndexByte(raw, '_'); i > 0 && IsNumber(raw[i+1:]) && n.used[raw[:i]] && n.probe(raw[:i]) == raw {
		return raw[:i]
	}
	return raw
}

// probe is the name that unique would return next, or "" where finding it
// takes many attempts.
func (n *namer) probe(name string) string {
	if !n.used[name] {
		return name
	}
	for k := n.conflict; k < n.conflict+maxProbes; k++ {
		if s := name + "_" + strconv.Itoa(k); !n.used[s] {
			return s
		}
	}
	return ""
}

const maxProbes = 64

// unique returns name, with a suffix if it is taken, and takes it.
func (n *namer) unique(name string) string {
	if n.used[name] {
		for {
			s := name + "_" + strconv.Itoa(n.conflict)
			n.conflict++
			if !n.used[s] {
				name = s
				break
			}
		}
	}
	n.used[name] = true
	n.log = append(n.log, name)
	return name
}

// resultName is the name that MLIR gives result i of op, "" for none.
func (n *namer) resultName(op *ir.Op, i int) string {
	if op.Kind == ir.Constant {
		if t := op.Results[i].Type; t.IsTensor() && (t.Elem.IsInt() && t.Elem != ir.Index || t.Elem == ir.I1) {
			return "c"
		}
		return "cst"
	}
	return n.result(op, i)
}

// IsNumber reports whether s is decimal digits.
func IsNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// sanitize is name with what MLIR does not allow in a value's name replaced.
func sanitize(name string) string {
	ok := name[0] < '0' || name[0] > '9'
	for i := range len(name) {
		ok = ok && IsNameByte(name[i])
	}
	if ok {
		return name
	}
	var b strings.Builder
	if name[0] >= '0' && name[0] <= '9' {
		b.WriteByte('_')
	}
	for i := range len(name) {
		if IsNameByte(name[i]) {
			b.WriteByte(name[i])
		} else {
			b.WriteByte('_')
		}
	}
	return b.String()
}

// IsNameByte reports whether c may be in the name of a value.
func IsNameByte(c byte) bool {
	return c == '_' || c == '$' || c == '.' || c == '-' || '0' <= c && c <= '9' || IsLetter(c)
}

// IsLetter reports whether c is a letter of ASCII.
func IsLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
