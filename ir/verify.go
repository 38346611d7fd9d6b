package ir

import (
	"fmt"
	"slices"
	"strings"
)

// A Rule is a broken rule of an op, of the structure of a module, or of a [Form].
type Rule struct {
	Label string // stablehlo.dot_general-C7, structure-2, rotated
	Msg   string // what is wrong, with what numbers, and what would do
}

// NewRule is a broken rule of the given label.
func NewRule(label, format string, args ...any) *Rule {
	return &Rule{label, fmt.Sprintf(format, args...)}
}

// Broken is constraint n of the op at hand; inferOp completes the label.
func Broken(n int, format string, args ...any) *Rule {
	return NewRule(fmt.Sprintf("C%d", n), format, args...)
}

// Counted is n with noun in the singular or plural: 1 region, 2 regions, 2 batches.
// Of a phrase the first word is put in the plural: 2 lists of axes.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	head, rest, _ := strings.Cut(noun, " of ")
	ending := "s"
	if strings.HasSuffix(head, "ch") || strings.HasSuffix(head, "s") || strings.HasSuffix(head, "x") {
		ending = "es"
	}
	if rest != "" {
		ending += " of " + rest
	}
	return fmt.Sprintf("%d %s%s", n, head, ending)
}

// Renumbered is r with the number that its constraint has in another op, where that
// differs.
func (r *Rule) Renumbered(numbers map[int]int) *Rule {
	for from, to := range numbers {
		if r.Label == fmt.Sprintf("C%d", from) {
			return Broken(to, "%s", r.Msg)
		}
	}
	return r
}

// of completes the label of a constraint with the name of the op.
func (r *Rule) of(op *Op) *Rule {
	if r != nil && strings.HasPrefix(r.Label, "C") {
		return &Rule{op.Name() + "-" + r.Label, r.Msg}
	}
	return r
}

// An Error is a Rule and the place where it is broken. Op is nil where that is
// a function or a mesh.
type Error struct {
	Func *Func
	Op   *Op
	Mesh *Mesh // nil but for rules of a mesh
	Rule *Rule
}

func (e *Error) Error() string {
	var b strings.Builder
	if p := e.Pos(); p.Line > 0 {
		fmt.Fprintf(&b, "%s: ", p)
	}
	if e.Func != nil {
		fmt.Fprintf(&b, "in %s: ", SymbolText(e.Func.Name))
	}
	if e.Op != nil {
		fmt.Fprintf(&b, "%s: ", e.Op.Name())
	}
	fmt.Fprintf(&b, "%s [%s]", e.Rule.Msg, e.Rule.Label)
	return b.String()
}

// Pos is where the op comes from, or the function where there is none.
func (e *Error) Pos() Pos {
	switch {
	case e.Op != nil && e.Op.Origin != nil:
		return e.Op.Origin.Place()
	case e.Op == nil && e.Func != nil && e.Func.Origin != nil:
		return e.Func.Origin.Place()
	case e.Mesh != nil:
		return e.Mesh.Origin.Place()
	}
	return Pos{}
}

// Errors are the broken rules of a Module, in program order.
type Errors struct {
	List []*Error
	fn   *Func
}

func (e *Errors) add(op *Op, r *Rule) {
	if r != nil {
		e.List = append(e.List, &Error{Func: e.fn, Op: op, Rule: r})
	}
}

func (e *Errors) addMesh(mesh *Mesh, r *Rule) {
	if r != nil {
		e.List = append(e.List, &Error{Mesh: mesh, Rule: r})
	}
}

func (e *Errors) Error() string {
	lines := make([]string, len(e.List))
	for i, err := range e.List {
		lines[i] = err.Error()
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
func Verify(m *Module) error {
	errs := new(Errors)
	if verifyNames(m, errs) {
		blocks := make(map[*Block]bool)
		for _, f := range m.Funcs {
			errs.fn = f
			n := f.NumIDs()
			v := &verifier{m: m, f: f, errs: errs, visible: make([]*Value, n), defined: make([]bool, n), blocks: blocks}
			v.function()
		}
		errs.fn = nil
		verifyCalls(m, errs)
	}
	if len(errs.List) == 0 { // the form checks may assume the rest
		for _, row := range FormTable {
			if m.Form.Has(row.form) {
				row.check(m, errs)
			}
		}
	}
	if len(errs.List) == 0 {
		return nil
	}
	return errs
}

// verifyNames checks the meshes and the names and signatures of functions. It
// reports false where part of them is nil, so that nothing more can be checked.
func verifyNames(m *Module, errs *Errors) bool {
	errs.add(nil, soundAttrs(m.Attrs))
	seen := make(map[string]bool)
	for _, mesh := range m.Meshes {
		if mesh == nil {
			errs.add(nil, NewRule("structure-7", "a mesh is nil"))
			return false
		}
		if seen[mesh.Name] {
			errs.addMesh(mesh, NewRule("structure-1", "mesh %s is defined twice", SymbolText(mesh.Name)))
		}
		seen[mesh.Name] = true
		verifyMesh(mesh, errs)
	}
	for _, f := range m.Funcs {
		if f == nil {
			errs.add(nil, NewRule("structure-7", "a function is nil"))
			return false
		}
		if seen[f.Name] {
			errs.add(nil, NewRule("structure-1", "%s is defined twice", SymbolText(f.Name)))
		}
		seen[f.Name] = true
	}
	return verifySignatures(m, errs)
}

// verifySignatures reports false where a type of a parameter or result is nil: the
// checks of its callers read it.
func verifySignatures(m *Module, errs *Errors) bool {
	for _, f := range m.Funcs {
		errs.fn = f
		errs.add(nil, soundAttrs(f.Attrs))
		for i, r := range f.Results {
			if bad := soundValue(&Value{Type: r.Type, Sharding: r.Sharding, Attrs: r.Attrs}); bad != nil {
				errs.add(nil, NewRule(bad.Label, "result %d of the function: %s", i, bad.Msg))
				return false
			}
		}
		if f.Body == nil {
			continue
		}
		for i, a := range f.Body.Args {
			if bad := soundValue(a); bad != nil {
				errs.add(nil, NewRule(bad.Label, "parameter %d: %s", i, bad.Msg))
				return false
			}
		}
	}
	errs.fn = nil
	return true
}

// A verifier checks one function.
type verifier struct {
	m       *Module
	f       *Func
	errs    *Errors
	visible []*Value        // by ID
	defined []bool          // by ID: visible now or earlier
	blocks  map[*Block]bool // met so far, in the module
	manual  []AxisRef       // axes along which the ops at hand are per device
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
		v.errs.add(ret, NewRule("structure-6", "returns %s, the function has %s", Counted(len(ret.Operands), "value"), Counted(len(v.f.Results), "result")))
		return
	}
	for i, r := range v.f.Results {
		if !r.Type.Equal(ret.Operands[i].Type) {
			v.errs.add(ret, NewRule("structure-6", "result %d is %s, the function says %s", i, ret.Operands[i].Type, r.Type))
		}
		v.sharding(nil, fmt.Sprintf("result %d", i), r.Sharding, r.Type)
		v.shardingAttrs(nil, fmt.Sprintf("result %d", i), r.Attrs, r.Type)
	}
}

func (v *verifier) parameter(i int, a *Value) {
	what := fmt.Sprintf("parameter %d", i)
	v.sharding(nil, what, a.Sharding, a.Type)
	v.shardingAttrs(nil, what, a.Attrs, a.Type)
	if s := a.Attrs.Get(shardingName); s != nil {
		v.errs.add(nil, NewRule("sharding-9", "%s: %s is %s, want one sharding", what, shardingName, s))
	}
}

// block checks b, a region of parent, and leaves its values invisible. It
// reports false where some part of b is nil.
func (v *verifier) block(b *Block, parent *Op) bool {
	switch {
	case b == nil:
		v.errs.add(parent, NewRule("structure-7", "a region is nil"))
		return false
	case v.blocks[b]:
		v.errs.add(parent, NewRule("structure-7", "a block is in two places"))
		return false
	}
	v.blocks[b] = true
	sound := true
	for i, a := range b.Args {
		if r := soundValue(a); r != nil {
			v.errs.add(parent, NewRule(r.Label, "argument %d of a block: %s", i, r.Msg))
			return false
		}
		if a.Block != b || a.Def != nil || a.Index != i {
			v.errs.add(parent, NewRule("structure-8", "argument %d of a block does not say that it is", i))
		}
	}
	v.define(parent, b.Args)
	for i, op := range b.Ops {
		if op == nil {
			v.errs.add(parent, NewRule("structure-7", "an op is nil"))
			return false
		}
		if v.op(op) {
			v.define(op, op.Results)
		} else {
			sound = false
		}
		v.position(op, i == len(b.Ops)-1, parent)
	}
	if len(b.Ops) == 0 {
		v.errs.add(parent, NewRule("structure-5", "a block must end with a terminator"))
	}
	v.leave(b)
	return sound
}

func (v *verifier) define(op *Op, vs []*Value) {
	for _, x := range vs {
		switch {
		case x.ID <= 0 || int(x.ID) >= len(v.defined):
			v.errs.add(op, NewRule("structure-2", "value %q has ID %d, which its function never gave out", x.Name, x.ID))
		case v.defined[x.ID]:
			v.errs.add(op, NewRule("structure-3", "value %q has ID %d, as an earlier one has", x.Name, x.ID))
		default:
			v.defined[x.ID], v.visible[x.ID] = true, x
		}
	}
}

// leave makes the values of b invisible.
func (v *verifier) leave(b *Block) {
	hide := func(vs []*Value) {
		for _, x := range vs {
			if x != nil && v.sees(x) {
				v.visible[x.ID] = nil
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

// sees reports whether x may be used here.
func (v *verifier) sees(x *Value) bool {
	return x.ID > 0 && int(x.ID) < len(v.visible) && v.visible[x.ID] == x
}

// position checks that terminators are at the ends of blocks, each in the regions
// of its own dialect. Ops that the table does not know may be terminators, and may
// have regions that end with anything.
func (v *verifier) position(op *Op, last bool, parent *Op) {
	switch {
	case op.Kind >= NumKinds || op.Kind == Unknown && references[op.Spelling] == nil:
	case op.Kind == Unknown && last:
		v.errs.add(op, NewRule("structure-5", "a block must end with a terminator"))
	case op.Kind == Unknown:
	case last && !op.Kind.Has(Terminator):
		v.errs.add(op, NewRule("structure-5", "a block must end with a terminator"))
	case !last && op.Kind.Has(Terminator):
		v.errs.add(op, NewRule("structure-5", "is in the middle of a block"))
	case last:
		if want := terminatorOf(parent); want != Invalid && op.Kind != want {
			v.errs.add(op, NewRule("structure-9", "ends a block that must end with %s", want))
		}
	}
}

// terminatorOf is what ends the regions of op, or a function where op is nil;
// Invalid is anything.
func terminatorOf(op *Op) Kind {
	switch {
	case op == nil:
		return FuncReturn
	case op.Kind == Unknown && references[op.Spelling] == nil:
		return Invalid
	}
	dialect, _, _ := strings.Cut(op.Name(), ".")
	switch dialect {
	case "stablehlo":
		return Return
	case "sdy":
		return SdyReturn
	case "pp":
		return PPYield
	}
	return Invalid
}

// op checks op and its regions. It reports false where some part of it is nil.
func (v *verifier) op(op *Op) bool {
	if r := soundOp(op); r != nil {
		v.errs.add(op, r)
		return false
	}
	ok := true
	for i, x := range op.Operands {
		if !v.sees(x) {
			v.errs.add(op, NewRule("structure-4", "operand %d is not defined before its use, or not where it can be seen", i))
			ok = false
		}
	}
	at := len(v.errs.List)
	if !v.regions(op) {
		return false
	}
	inner := slices.Clone(v.errs.List[at:])
	v.errs.List = v.errs.List[:at]
	if ok {
		v.rules(op)
	}
	v.errs.List = append(v.errs.List, inner...)
	return true
}

func (v *verifier) regions(op *Op) bool {
	visible, manual := v.visible, v.manual
	if op.Kind < NumKinds && op.Kind.Has(Isolated) {
		v.visible = make([]*Value, len(visible))
	}
	v.manual = append(slices.Clip(manual), ManualAxes(op)...)
	sound := true
	for _, r := range op.Regions {
		sound = v.block(r, op) && sound
	}
	v.visible, v.manual = visible, manual
	return sound
}

// rules checks op against its row and against the module.
func (v *verifier) rules(op *Op) {
	types, r := inferOp(op)
	if r != nil {
		v.errs.add(op, r)
		return
	}
	if len(types) != len(op.Results) {
		v.errs.add(op, NewRule("type-1", "has %s, its operands make %d", Counted(len(op.Results), "result"), len(types)))
		return
	}
	ok := true
	for i, t := range types {
		if !Compatible(t, op.Results[i].Type) {
			v.errs.add(op, NewRule("type-1", "result %d has type %s, its operands make %s", i, op.Results[i].Type, t))
			ok = false
		}
	}
	v.shardings(op)
	if check := op.row().InModule; check != nil && ok && !unread(op) {
		v.errs.add(op, check(v.m, op).of(op))
	}
}

// Compatible reports whether a value of inferred type t may be declared u:
// they are equal, where both are known.
func Compatible(t, u *Type) bool {
	if t.Equal(u) {
		return true
	}
	return t.IsTensor() && u.IsTensor() && t.SameElem(u) && SameShape(t, u) && withinBounds(t, u)
}

// SameShape reports whether two tensors have equal sizes where both are known.
func SameShape(t, u *Type) bool {
	return slices.EqualFunc(t.Shape, u.Shape, Fits)
}

// Fits reports whether two sizes are equal where both are known.
func Fits(n, m int) bool { return n == m || n == Dynamic || m == Dynamic }

// inferOp checks what is common to all ops and then asks the op's row. Types
// that are carried through unread have no rules: an op on them has the types
// that it was given.
func inferOp(op *Op) ([]*Type, *Rule) {
	if op.Kind == Invalid || op.Kind >= NumKinds {
		return nil, NewRule("op-1", "no such op")
	}
	row := op.row()
	for _, n := range []struct {
		what  string
		have  int
		arity Arity
	}{{"operand", len(op.Operands), row.Operands}, {"result", len(op.Results), row.Results}, {"region", len(op.Regions), row.Regions}} {
		if !n.arity.Allows(n.have) {
			return nil, NewRule("op-2", "has %s, want %s", Counted(n.have, n.what), n.arity)
		}
	}
	for i := range row.Attrs {
		if r := checkAttr(op, &row.Attrs[i]); r != nil {
			return nil, r
		}
	}
	if row.Infer == nil || unread(op) {
		return TypesOf(op.Results), oddTensor(op)
	}
	if r := indexed(op); r != nil {
		return nil, r
	}
	ts, r := row.Infer(op)
	return ts, r.of(op)
}

// oddTensor finds a tensor among the operands and results of op, one of StableHLO,
// that has no rank, or elements of a type that StableHLO does not have. Calls,
// loops and branches hand on whatever they are given.
func oddTensor(op *Op) *Rule {
	name := op.Name()
	switch {
	case op.Kind == CustomCall, op.Kind == While, op.Kind == If, op.Kind == Case, op.Kind.Has(Terminator), op.Kind == CompositeCall,
		!strings.HasPrefix(name, "stablehlo.") && !strings.HasPrefix(name, "chlo."):
		return nil
	}
	for _, side := range []struct {
		what   string
		values []*Value
	}{{"operand", op.Operands}, {"result", op.Results}} {
		for i, v := range side.values {
			if t := v.Type; t.Kind == OpaqueType && strings.HasPrefix(t.Text, "tensor<") {
				return NewRule("op-7", "%s %d is %s, want a tensor of known rank and of an element type of StableHLO", side.what, i, t)
			}
		}
	}
	return nil
}

// takesSizes reports whether op, one of StableHLO, has operands beyond the first
// that say sizes, for which the type index is allowed.
func takesSizes(name string) bool {
	return strings.Contains(name, "dynamic_") || name == "stablehlo.rng"
}

// indexed finds a tensor of the type index among the operands and results of op, one
// of StableHLO or a function of chlo, where that says no size.
func indexed(op *Op) *Rule {
	name := op.Name()
	if !strings.HasPrefix(name, "stablehlo.") && !(strings.HasPrefix(name, "chlo.") && op.Kind != Unknown) || op.Kind.Has(Terminator) {
		return nil
	}
	wrong := func(what string, i int, t *Type) *Rule {
		return NewRule("op-7", "%s %d is %s, want elements of a type that has a size", what, i, t)
	}
	for i, v := range op.Operands {
		if v.Type.Elem == Index && v.Type.IsTensor() && !(takesSizes(name) && (i > 0 || name == "stablehlo.dynamic_iota")) {
			return wrong("operand", i, v.Type)
		}
	}
	for i, v := range op.Results {
		if v.Type.Elem == Index && v.Type.IsTensor() && op.Kind != Constant {
			return wrong("result", i, v.Type)
		}
	}
	return nil
}

// unread reports whether op has a type that is carried through unread.
func unread(op *Op) bool {
	return op.hasType(func(t *Type) bool { return t.Kind == OpaqueType })
}

func (op *Op) hasType(is func(*Type) bool) bool {
	of := func(v *Value) bool { return is(v.Type) }
	return slices.ContainsFunc(op.Operands, of) || slices.ContainsFunc(op.Results, of)
}

// Unread reports whether an operand or a result of op has a type that the passes
// cannot reason about: one that is carried through as text, whose constraints
// have not been checked, or a quantized one.
func (op *Op) Unread() bool {
	return op.hasType(func(t *Type) bool { return t.Kind == OpaqueType || t.Quant != nil })
}

func (a Arity) String() string {
	switch {
	case a.Min == a.Max:
		return fmt.Sprint(a.Min)
	case a.Max == many:
		return fmt.Sprintf("at least %d", a.Min)
	}
	return fmt.Sprintf("%d to %d", a.Min, a.Max)
}

func checkAttr(op *Op, spec *AttrSpec) *Rule {
	a := op.Attrs.Get(spec.Name)
	if a == nil {
		if spec.Optional {
			return nil
		}
		return NewRule("op-3", "attribute %s is missing", spec.Name)
	}
	if !spec.Kind.accepts(a) {
		return NewRule("op-4", "attribute %s is %s, want %s", spec.Name, a, spec.Kind)
	}
	if spec.Kind == AccuracyAttr {
		return accuracyFits(a)
	}
	if len(spec.Words) > 0 && !slices.Contains(spec.Words, op.Word(spec.Name)) {
		return NewRule("op-5", "attribute %s is %s, want one of %s", spec.Name, op.Word(spec.Name), strings.Join(spec.Words, ", "))
	}
	return nil
}
