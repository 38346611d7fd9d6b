// Package verify checks modules: their structure, every op against its row of the op
// table, shardings, and the form that a module claims.
package verify

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"ppc/ir"
)

// An Error is a Rule and the place where it is broken. Op is nil where that is
// a function or a mesh.
type Error struct {
	Func *ir.Func
	Op   *ir.Op
	Mesh *ir.Mesh // nil but for rules of a mesh
	Rule *ir.Rule
}

func (e *Error) Error() string {
	var b strings.Builder
	if p := e.Pos(); p.Line > 0 {
		fmt.Fprintf(&b, "%s: ", p)
	}
	if e.Func != nil {
		fmt.Fprintf(&b, "in %s: ", ir.SymbolText(e.Func.Name))
	}
	if e.Op != nil {
		fmt.Fprintf(&b, "%s: ", e.Op.Name())
	}
	fmt.Fprintf(&b, "%s [%s]", e.Rule.Msg, e.Rule.Label)
	return b.String()
}

// Pos is where the op comes from, or the function where there is none.
func (e *Error) Pos() ir.Pos {
	switch {
	case e.Op != nil && e.Op.Origin != nil:
		return e.Op.Origin.Place()
	case e.Op == nil && e.Func != nil && e.Func.Origin != nil:
		return e.Func.Origin.Place()
	case e.Mesh != nil:
		return e.Mesh.Origin.Place()
	}
	return ir.Pos{}
}

// Errors are the broken rules of a Module, in program order: the first maxErrors, and
// how many there are beyond.
type Errors struct {
	List []*Error
	More int

	unordered bool // the errors of parts are, which come in no order

	fn    *ir.Func              // that is being checked
	wrong map[*ir.Func]bool     // those with errors
	calls map[*ir.Func][]*ir.Op // the ops that run other functions
}

// maxErrors bounds the memory that a large program which is wrong throughout takes.
const maxErrors = 1000

func (e *Errors) add(op *ir.Op, r *ir.Rule) {
	if r != nil {
		e.append(&Error{Func: e.fn, Op: op, Rule: r})
	}
}

func (e *Errors) addMesh(mesh *ir.Mesh, r *ir.Rule) {
	if r != nil {
		e.append(&Error{Mesh: mesh, Rule: r})
	}
}

// runs notes that op, of the function being checked, runs another one.
func (e *Errors) runs(op *ir.Op) {
	if e.calls == nil {
		e.calls = make(map[*ir.Func][]*ir.Op)
	}
	e.calls[e.fn] = append(e.calls[e.fn], op)
}

func (e *Errors) append(errs ...*Error) {
	if e.wrong == nil {
		e.wrong = make(map[*ir.Func]bool)
	}
	for _, err := range errs {
		e.wrong[err.Func] = true
		if len(e.List) == maxErrors {
			e.More++
			continue
		}
		e.List = append(e.List, err)
	}
}

func (e *Errors) Error() string {
	lines := make([]string, len(e.List))
	for i, err := range e.List {
		lines[i] = err.Error()
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(lines, "\n")
}

// Verify reports every rule that m breaks, as an [*Errors], or nil. It checks,
// in this order:
//
//   - structure: nothing is nil, names are unique, a value is defined once,
//     before its uses, where the use can see it; blocks end with a terminator;
//   - ops: each has the operands, attributes and regions of its row, keeps its
//     constraints, has the types that it infers, and fits the functions and
//     meshes that it names;
//   - shardings: name a mesh and its axes, each at most once, and fit the rank;
//   - form: every property in m.Form.
//
// An op with a nil operand, attribute or region is reported and not checked
// further. Verify never changes m and never panics, whatever is wrong with m.
func Verify(m *ir.Module) error { return new(Checker).Verify(m) }

// A Checker verifies modules one after the other, in memory that it keeps: it remembers
// which types are sound and which ops keep their rules, by what they consist of, and
// checks each again only where that has changed. The zero value is ready to use.
type Checker struct {
	values values
	known  known
	parts  []known // by part of a block that is checked in parts
}

// Verify is [Verify].
func (c *Checker) Verify(m *ir.Module) error {
	errs, fits := c.structure(m, long)
	if errs.unordered { // that there are errors is known, and not yet their order
		errs, fits = c.structure(m, math.MaxInt)
	}
	if len(errs.List) == 0 { // the form checks may assume the rest
		checkForm(m, errs, fits)
	}
	if len(errs.List) == 0 {
		return nil
	}
	return errs
}

// structure checks all but the form, and reports whether each op by itself is of that. It
// checks in parts the blocks that have many ops.
func (c *Checker) structure(m *ir.Module, long int) (errs *Errors, fits bool) {
	errs = new(Errors)
	v := &verifier{m: m, errs: errs, values: &c.values, known: &c.known, checker: c, blocks: make(map[*ir.Block]bool, len(m.Funcs)), long: long}
	if !v.names() {
		return errs, false
	}
	v.form = formOf(m)
	for _, f := range m.Funcs {
		errs.fn, v.f, v.part, v.before = f, f, 1, 0
		v.values.reset(f.NumIDs())
		v.known.reserve(f.NumIDs())
		v.function()
	}
	errs.fn = nil
	verifyCalls(m, errs)
	return errs, !v.form.misfit
}

// names checks the meshes and the names and signatures of functions. It
// reports false where part of them is nil, so that nothing more can be checked.
func (v *verifier) names() bool {
	m, errs := v.m, v.errs
	errs.add(nil, soundAttrs(m.Attrs))
	errs.add(nil, dialectAttrs("the module", m.Attrs))
	seen := make(map[string]bool, len(m.Meshes)+len(m.Funcs))
	for _, mesh := range m.Meshes {
		if mesh == nil {
			errs.add(nil, ir.NewRule("structure-7", "a mesh is nil"))
			return false
		}
		if seen[mesh.Name] {
			errs.addMesh(mesh, ir.NewRule("structure-1", "mesh %s is defined twice", ir.SymbolText(mesh.Name)))
		}
		seen[mesh.Name] = true
		verifyMesh(mesh, errs)
	}
	for _, f := range m.Funcs {
		if f == nil {
			errs.add(nil, ir.NewRule("structure-7", "a function is nil"))
			return false
		}
		if errs.fn = f; seen[f.Name] {
			errs.add(nil, ir.NewRule("structure-1", "%s is defined twice", ir.SymbolText(f.Name)))
		}
		seen[f.Name] = true
	}
	errs.fn = nil
	return v.signatures()
}

// signatures reports false where a type of a parameter or result is nil: the
// checks of its callers read it.
func (v *verifier) signatures() bool {
	m, errs := v.m, v.errs
	for _, f := range m.Funcs {
		errs.fn = f
		errs.add(nil, soundAttrs(f.Attrs))
		for i, r := range f.Results {
			if bad := v.soundParts(r.Type, r.Sharding, r.Attrs); bad != nil {
				errs.add(nil, ir.NewRule(bad.Label, "result %d of the function: %s", i, bad.Msg))
				return false
			}
			if len(r.Attrs) > 0 {
				errs.add(nil, dialectAttrs(fmt.Sprintf("result %d", i), r.Attrs))
			}
		}
		if f.Body == nil {
			continue
		}
		for i, a := range f.Body.Args {
			if bad := v.soundValue(a); bad != nil {
				errs.add(nil, ir.NewRule(bad.Label, "parameter %d: %s", i, bad.Msg))
				return false
			}
			if len(a.Attrs) > 0 {
				errs.add(nil, dialectAttrs(fmt.Sprintf("parameter %d", i), a.Attrs))
			}
		}
	}
	errs.fn = nil
	return true
}

// values is what has been met of the values of a function, by ID.
type values []place

// A place is that of a value among those of its function.
type place struct {
	value *ir.Value // that may be used; nil for none, or none any more
	level int32     // in how many regions that see nothing from outside
	part  int32     // in which it is defined, from 1; 0 is in none yet
}

// reset makes room for n values of which none has been met.
func (v *values) reset(n int) {
	clear(*v) // keeps nothing of a function before
	if n > cap(*v) {
		*v = make(values, n)
		return
	}
	*v = (*v)[:n]
}

// A verifier checks the functions of a module, one after the other.
type verifier struct {
	*values
	*known
	m      *ir.Module
	f      *ir.Func
	errs   *Errors
	form   formed
	inside int32              // how many regions that see nothing from outside are around the ops at hand
	blocks map[*ir.Block]bool // met so far, in the module
	manual []ir.AxisRef       // axes along which the ops at hand are per device
	mesh   *ir.Mesh           // that has these axes; nil where it is not known

	long    int // so many ops of a block are checked in parts
	checker *Checker

	part, before int32 // values are seen that are defined in this part, or in those up to the one before
	apart        bool  // others are checked at the same time
	outside      []use // of values that they may define
}

func (v *verifier) function() {
	if v.f.Body == nil || !v.block(v.f.Body, nil) {
		return
	}
	for i, a := range v.f.Body.Args {
		v.parameter(i, a)
	}
	ret := v.f.Return()
	if ret == nil {
		return // reported
	}
	if len(ret.Operands) != len(v.f.Results) {
		v.errs.add(ret, ir.NewRule("structure-6", "returns %s, the function has %s", ir.Counted(len(ret.Operands), "value"), ir.Counted(len(v.f.Results), "result")))
		return
	}
	for i, r := range v.f.Results {
		if !r.Type.Equal(ret.Operands[i].Type) {
			v.errs.add(ret, ir.NewRule("structure-6", "result %d is %s, the function says %s", i, ret.Operands[i].Type, r.Type))
		}
		if r.Sharding == nil && len(r.Attrs) == 0 {
			continue
		}
		what := fmt.Sprintf("result %d", i)
		v.sharding(nil, what, r.Sharding, r.Type)
		v.shardingAttrs(nil, what, r.Attrs, r.Type)
		v.oneSharding(what, r.Attrs)
	}
}

func (v *verifier) parameter(i int, a *ir.Value) {
	if a.Sharding == nil && len(a.Attrs) == 0 {
		return
	}
	what := fmt.Sprintf("parameter %d", i)
	v.sharding(nil, what, a.Sharding, a.Type)
	v.shardingAttrs(nil, what, a.Attrs, a.Type)
	v.oneSharding(what, a.Attrs)
}

// oneSharding reports a sharding among the attributes of a parameter or a result that
// is none: the reader takes those that are out.
func (v *verifier) oneSharding(what string, as ir.Attrs) {
	if s := as.Get(shardingName); s != nil {
		v.errs.add(nil, ir.NewRule("sharding-9", "%s: %s is %s, want one sharding", what, shardingName, s))
	}
}

// block checks b, a region of parent, and leaves its values invisible. It
// reports false where some part of b is nil.
func (v *verifier) block(b *ir.Block, parent *ir.Op) bool {
	switch {
	case b == nil:
		v.errs.add(parent, ir.NewRule("structure-7", "a region is nil"))
		return false
	case v.blocks[b]:
		v.errs.add(parent, ir.NewRule("structure-7", "a block is in two places"))
		return false
	}
	v.blocks[b] = true
	for i, a := range b.Args {
		if r := v.soundValue(a); r != nil {
			v.errs.add(parent, ir.NewRule(r.Label, "argument %d of a block: %s", i, r.Msg))
			return false
		}
		if a.Block != b || a.Def != nil || a.Index != i {
			v.errs.add(parent, ir.NewRule("structure-8", "argument %d of a block does not say that it is", i))
		}
	}
	v.define(parent, b.Args)
	if !v.inParts(b.Ops, parent) && !v.ops(b.Ops, parent, true) {
		return false
	}
	if len(b.Ops) == 0 {
		v.errs.add(parent, ir.NewRule("structure-5", "a block must end with a terminator"))
	}
	if parent != nil {
		v.leave(b)
	}
	return true
}

// ops checks ops, those of a block of parent or, where they are not last, some of them. It
// reports false where some part of them is nil.
func (v *verifier) ops(ops []*ir.Op, parent *ir.Op, last bool) bool {
	sound := true
	for i, op := range ops {
		if op == nil {
			v.errs.add(parent, ir.NewRule("structure-7", "an op is nil"))
			return false
		}
		if v.op(op) {
			v.define(op, op.Results)
		} else {
			sound = false
		}
		v.position(op, last && i == len(ops)-1, parent)
	}
	return sound
}

func (v *verifier) define(op *ir.Op, vs []*ir.Value) {
	for _, x := range vs {
		if x.ID <= 0 || int(x.ID) >= len(*v.values) {
			v.errs.add(op, ir.NewRule("structure-2", "value %q has ID %d, which its function never gave out", x.Name, x.ID))
			continue
		}
		at := &(*v.values)[x.ID]
		if !v.claim(at) {
			v.errs.add(op, ir.NewRule("structure-3", "value %q has ID %d, as an earlier one has", x.Name, x.ID))
			continue
		}
		at.value, at.level = x, v.inside
	}
}

// leave makes the values of b invisible.
func (v *verifier) leave(b *ir.Block) {
	hide := func(vs []*ir.Value) {
		for _, x := range vs {
			if x != nil && v.sees(x) {
				(*v.values)[x.ID].value = nil
			}
		}
	}
	hide(b.Args)
	for _, op := range b.Ops {
		if op != nil {
			hide(op.Results)
		}
	}
}

// sees reports whether x may be used here. What another part defines at the same time it
// does not look at.
func (v *verifier) sees(x *ir.Value) bool {
	if x == nil || uint(x.ID) >= uint(len(*v.values)) {
		return false
	}
	at := &(*v.values)[x.ID]
	part := atomic.LoadInt32(&at.part)
	return (part == v.part || 0 < part && part <= v.before) && at.value == x && at.level == v.inside
}

// position checks that terminators are at the ends of blocks, each in the regions
// of its own dialect. Ops that the table does not know may be terminators, and may
// have regions that end with anything.
func (v *verifier) position(op *ir.Op, last bool, parent *ir.Op) {
	switch {
	case op.Kind >= ir.NumKinds || !op.Known():
	case op.Kind == ir.Unknown && last:
		v.errs.add(op, ir.NewRule("structure-5", "a block must end with a terminator"))
	case op.Kind == ir.Unknown:
	case last && !op.Kind.Has(ir.Terminator):
		v.errs.add(op, ir.NewRule("structure-5", "a block must end with a terminator"))
	case !last && op.Kind.Has(ir.Terminator):
		v.errs.add(op, ir.NewRule("structure-5", "is in the middle of a block"))
	case last:
		if want := terminatorOf(parent); want != ir.Invalid && op.Kind != want {
			v.errs.add(op, ir.NewRule("structure-9", "ends a block that must end with %s", want))
		}
	}
}

// terminatorOf is what ends the regions of op, or a function where op is nil;
// Invalid is anything.
func terminatorOf(op *ir.Op) ir.Kind {
	switch {
	case op == nil:
		return ir.FuncReturn
	case !op.Known():
		return ir.Invalid
	}
	dialect, _, _ := strings.Cut(op.Name(), ".")
	switch dialect {
	case "stablehlo":
		return ir.Return
	case "sdy":
		return ir.SdyReturn
	case "pp":
		return ir.PPYield
	}
	return ir.Invalid
}

// op checks op and its regions. It reports false where some part of it is nil.
func (v *verifier) op(op *ir.Op) bool {
	as := v.like(op) // one that keeps the rules of its row
	if r := v.soundOp(op, as != nil); r != nil {
		v.errs.add(op, r)
		return false
	}
	if (as == nil || as.module) && runsAny(op) {
		v.errs.runs(op)
	}
	ok := true
	for i, x := range op.Operands {
		if !v.sees(x) && !v.later(x) {
			v.errs.add(op, ir.NewRule("structure-4", "operand %d is not defined before its use, or not where it can be seen", i))
			ok = false
		}
	}
	at := len(v.errs.List)
	if !v.regions(op) {
		return false
	}
	if !ok {
		return true
	}
	if at == len(v.errs.List) {
		v.rules(op, as)
		if len(v.errs.List) == 0 && !v.form.misfit {
			v.form.misfit = v.form.lacks(op)
		}
		return true
	}
	inner := slices.Clone(v.errs.List[at:]) // what is wrong with op comes before what is in its regions
	v.errs.List = v.errs.List[:at]
	v.rules(op, as)
	v.errs.append(inner...)
	return true
}

func (v *verifier) regions(op *ir.Op) bool {
	if len(op.Regions) == 0 {
		return true
	}
	inside, manual, mesh := v.inside, v.manual, v.mesh
	if op.Kind < ir.NumKinds && op.Kind.Has(ir.Isolated) {
		v.inside++
	}
	if axes := ir.ManualAxes(op); len(axes) > 0 {
		v.manual, v.mesh = append(slices.Clip(manual), axes...), v.meshOf(op)
	}
	sound := true
	for _, r := range op.Regions {
		sound = v.block(r, op) && sound
	}
	v.inside, v.manual, v.mesh = inside, manual, mesh
	return sound
}

// rules checks op against its row and against the module. as is what tells that it keeps
// the rules of its row, nil where nothing does.
func (v *verifier) rules(op *ir.Op, as *signature) {
	ok := true
	if as == nil {
		if r := missing(op); r != nil {
			v.errs.add(op, r)
			return
		}
		types, r := ir.InferOp(op)
		if r != nil {
			v.errs.add(op, r)
			return
		}
		if len(types) != len(op.Results) {
			v.errs.add(op, ir.NewRule("type-1", "has %s, its operands make %d", ir.Counted(len(op.Results), "result"), len(types)))
			return
		}
		for i, t := range types {
			if !ir.Compatible(t, op.Results[i].Type) {
				v.errs.add(op, ir.NewRule("type-1", "result %d has type %s, its operands make %s", i, op.Results[i].Type, t))
				ok = false
			}
		}
		if ok {
			v.learn(op)
		}
	}
	v.resultShardings(op)
	if as != nil && !as.module {
		return
	}
	v.shardings(op)
	v.errs.add(op, v.alongManual(op))
	if ok {
		v.errs.add(op, op.InModule(v.m))
	}
}
