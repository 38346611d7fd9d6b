package ir

import (
	"fmt"
	"strings"
)

// A Rule is a broken rule of an op, of the structure of a module, or of a [Form].
type Rule struct {
	Label string // stablehlo.dot_general-C7, structure-2, rotated
	Msg   string // what is wrong, with what numbers, and what would do
}

func rule(label, format string, args ...any) *Rule {
	return &Rule{label, fmt.Sprintf(format, args...)}
}

// broken is constraint n of the op at hand; check completes the label.
func broken(n int, format string, args ...any) *Rule {
	return rule(fmt.Sprintf("C%d", n), format, args...)
}

// An Error is a Rule and the place where it is broken. Op is nil where that is
// a function or a mesh.
type Error struct {
	Func *Func
	Op   *Op
	Rule *Rule
}

func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.Op != nil:
		if o := e.Op.Origin; o != nil && o.Pos.Line > 0 {
			fmt.Fprintf(&b, "%s: ", o.Pos)
		}
		if e.Func != nil {
			fmt.Fprintf(&b, "in %s: ", SymbolText(e.Func.Name))
		}
		fmt.Fprintf(&b, "%s: ", e.Op.Name())
	case e.Func != nil:
		fmt.Fprintf(&b, "in %s: ", SymbolText(e.Func.Name))
	}
	fmt.Fprintf(&b, "%s [%s]", e.Rule.Msg, e.Rule.Label)
	return b.String()
}

// Errors are the broken rules of a Module, in program order.
type Errors struct {
	List []*Error
	fn   *Func
}

func (e *Errors) add(op *Op, r *Rule) { e.List = append(e.List, &Error{e.fn, op, r}) }

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
//   - structure: names are unique, a value is defined once, before its uses,
//     where the use can see it; blocks end with a terminator;
//   - ops: each has the operands, attributes and regions of its row, keeps its
//     constraints, and has the types that it infers;
//   - shardings: name a mesh and its axes, each at most once, and fit the rank;
//   - form: every property in m.Form.
//
// Verify never changes m and never panics, whatever is wrong with m.
func Verify(m *Module) error {
	errs := new(Errors)
	verifyNames(m, errs)
	for _, f := range m.Funcs {
		errs.fn = f
		v := &verifier{m: m, f: f, errs: errs, visible: make([]bool, f.NumIDs()), defined: make([]bool, f.NumIDs())}
		v.function()
	}
	errs.fn = nil
	if len(errs.List) == 0 { // the form checks may assume the rest
		for _, row := range formTable {
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

func verifyNames(m *Module, errs *Errors) {
	seen := make(map[string]bool)
	for _, mesh := range m.Meshes {
		if seen[mesh.Name] {
			errs.add(nil, rule("structure-1", "mesh %s is defined twice", SymbolText(mesh.Name)))
		}
		seen[mesh.Name] = true
		axes := make(map[string]bool)
		for _, a := range mesh.Axes {
			if a.Size < 1 {
				errs.add(nil, rule("mesh-1", "axis %q of mesh %s has size %d", a.Name, SymbolText(mesh.Name), a.Size))
			}
			if axes[a.Name] {
				errs.add(nil, rule("mesh-2", "mesh %s has two axes %q", SymbolText(mesh.Name), a.Name))
			}
			axes[a.Name] = true
		}
		verifyDeviceIDs(mesh, errs)
	}
	for _, f := range m.Funcs {
		if seen[f.Name] {
			errs.add(nil, rule("structure-1", "%s is defined twice", SymbolText(f.Name)))
		}
		seen[f.Name] = true
	}
}

func verifyDeviceIDs(mesh *Mesh, errs *Errors) {
	if mesh.DeviceIDs == nil || len(mesh.Axes) == 0 {
		return
	}
	seen := make([]bool, len(mesh.DeviceIDs))
	for _, id := range mesh.DeviceIDs {
		if len(mesh.DeviceIDs) != mesh.Size() || id < 0 || id >= len(seen) || seen[id] {
			errs.add(nil, rule("mesh-3", "device_ids of mesh %s are not a permutation of 0 to %d", SymbolText(mesh.Name), mesh.Size()-1))
			return
		}
		seen[id] = true
	}
}

type verifier struct {
	m       *Module
	f       *Func
	errs    *Errors
	visible []bool // by ID
	defined []bool // by ID: visible now or earlier
}

func (v *verifier) function() {
	if v.f.Body == nil {
		return
	}
	for _, a := range v.f.Body.Args {
		if a.Sharding != nil {
			v.sharding(nil, a.Sharding, a.Type)
		}
	}
	v.block(v.f.Body, nil)
	ret := v.f.Return()
	if ret == nil {
		return // reported
	}
	if len(ret.Operands) != len(v.f.Results) {
		v.errs.add(ret, rule("structure-6", "returns %d values, the function has %d results", len(ret.Operands), len(v.f.Results)))
		return
	}
	for i, r := range v.f.Results {
		if !r.Type.Equal(ret.Operands[i].Type) {
			v.errs.add(ret, rule("structure-6", "result %d is %s, the function says %s", i, ret.Operands[i].Type, r.Type))
		}
		if r.Sharding != nil {
			v.sharding(ret, r.Sharding, r.Type)
		}
	}
}

// block checks b, a region of parent, and leaves its values invisible.
func (v *verifier) block(b *Block, parent *Op) {
	var mine []*Value
	define := func(op *Op, vs []*Value) {
		for _, x := range vs {
			if int(x.ID) >= len(v.defined) || x.ID <= 0 {
				v.errs.add(op, rule("structure-2", "value %q has ID %d, which its function never gave out", x.Name, x.ID))
				continue
			}
			if v.defined[x.ID] {
				v.errs.add(op, rule("structure-3", "a result is defined twice"))
			}
			v.defined[x.ID], v.visible[x.ID] = true, true
			mine = append(mine, x)
		}
	}
	define(parent, b.Args)
	for i, op := range b.Ops {
		for k, x := range op.Operands {
			if x == nil || int(x.ID) >= len(v.visible) || !v.visible[x.ID] {
				v.errs.add(op, rule("structure-4", "operand %d is not defined before its use, or not where it can be seen", k))
			}
		}
		v.op(op)
		last := i == len(b.Ops)-1
		if last != op.Kind.Has(Terminator) && op.Kind != Unknown {
			if last {
				v.errs.add(op, rule("structure-5", "a block must end with a terminator"))
			} else {
				v.errs.add(op, rule("structure-5", "%s stands in the middle of a block", op.Name()))
			}
		}
		define(op, op.Results)
	}
	if len(b.Ops) == 0 {
		v.errs.add(parent, rule("structure-5", "a block must end with a terminator"))
	}
	for _, x := range mine {
		v.visible[x.ID] = false
	}
}

func (v *verifier) op(op *Op) {
	outer := v.visible
	if op.Kind.Has(Isolated) {
		v.visible = make([]bool, len(outer))
	}
	for _, r := range op.Regions {
		v.block(r, op)
	}
	v.visible = outer
	for _, x := range op.Operands {
		if x == nil || x.Type == nil {
			return // reported where it is defined
		}
	}
	types, r := inferOp(op)
	if r != nil {
		v.errs.add(op, r)
		return
	}
	if len(types) != len(op.Results) {
		v.errs.add(op, rule("type-1", "has %d results, its operands make %d", len(op.Results), len(types)))
		return
	}
	for i, t := range types {
		if !compatible(t, op.Results[i].Type) {
			v.errs.add(op, rule("type-1", "result %d has type %s, its operands make %s", i, op.Results[i].Type, t))
		}
		if s := op.Results[i].Sharding; s != nil {
			v.sharding(op, s, op.Results[i].Type)
		}
	}
	for _, a := range op.Attrs {
		if s, ok := a.Attr.(*Sharding); ok && len(op.Results) == 1 {
			v.sharding(op, s, op.Results[0].Type)
		}
	}
	if op.Kind == Call {
		v.call(op)
	}
}

// compatible reports whether a value of inferred type t may be declared u:
// they are equal, where both are known.
func compatible(t, u *Type) bool {
	if t.Equal(u) {
		return true
	}
	if !t.IsTensor() || !u.IsTensor() || t.Elem != u.Elem || t.Rank() != u.Rank() {
		return false
	}
	for i := range t.Shape {
		if t.Shape[i] != u.Shape[i] && t.Shape[i] != Dynamic && u.Shape[i] != Dynamic {
			return false
		}
	}
	return true
}

func (v *verifier) call(op *Op) {
	f := v.m.Func(op.Sym("callee"))
	if f == nil {
		v.errs.add(op, rule("call-1", "there is no function %s", SymbolText(op.Sym("callee"))))
		return
	}
	if f.Body == nil {
		return
	}
	if len(f.Params()) != len(op.Operands) || len(f.Results) != len(op.Results) {
		v.errs.add(op, rule("call-2", "%s takes %d values and returns %d, not %d and %d", SymbolText(f.Name), len(f.Params()), len(f.Results), len(op.Operands), len(op.Results)))
		return
	}
	for i, p := range f.Params() {
		if !compatible(p.Type, op.Operands[i].Type) {
			v.errs.add(op, rule("call-3", "operand %d is %s, %s takes %s", i, op.Operands[i].Type, SymbolText(f.Name), p.Type))
		}
	}
	for i, r := range f.Results {
		if !compatible(r.Type, op.Results[i].Type) {
			v.errs.add(op, rule("call-3", "result %d is %s, %s returns %s", i, op.Results[i].Type, SymbolText(f.Name), r.Type))
		}
	}
}

func (v *verifier) sharding(op *Op, s *Sharding, t *Type) {
	if s.Mesh == "" {
		return
	}
	mesh := v.m.Mesh(s.Mesh)
	if mesh == nil {
		v.errs.add(op, rule("sharding-1", "there is no mesh %s", SymbolText(s.Mesh)))
		return
	}
	if len(mesh.Axes) == 0 {
		return // a single device
	}
	if t.IsTensor() && len(s.Dims) != t.Rank() {
		v.errs.add(op, rule("sharding-2", "sharding %s has %d dimensions, the tensor %s has %d", s, len(s.Dims), t, t.Rank()))
		return
	}
	var seen []AxisRef
	use := func(r AxisRef) {
		if mesh.Axis(r.Name) < 0 {
			v.errs.add(op, rule("sharding-3", "mesh %s has no axis %q", SymbolText(s.Mesh), r.Name))
			return
		}
		if n := mesh.AxisSize(r.Name); r.Size != 0 && (r.Pre < 1 || r.Size < 1 || n%(r.Pre*r.Size) != 0) {
			v.errs.add(op, rule("sharding-5", "%s does not divide axis %q of size %d", r, r.Name, n))
		}
		for _, o := range seen {
			if o.Overlaps(r) {
				v.errs.add(op, rule("sharding-4", "axis %s is used twice in %s", r, s))
			}
		}
		seen = append(seen, r)
	}
	for _, d := range s.Dims {
		for _, r := range d.Axes {
			use(r)
		}
	}
	for _, r := range s.Replicated {
		use(r)
	}
	for _, r := range s.Unreduced {
		use(r)
	}
}

// inferOp checks what is common to all ops and then asks the op's row.
func inferOp(op *Op) ([]*Type, *Rule) {
	if op.Kind == Invalid || op.Kind >= numKinds {
		return nil, rule("op-1", "no such op")
	}
	row := &table[op.Kind]
	for _, n := range []struct {
		what  string
		have  int
		arity Arity
	}{{"operands", len(op.Operands), row.operands}, {"results", len(op.Results), row.results}, {"regions", len(op.Regions), row.regions}} {
		if !n.arity.Allows(n.have) {
			return nil, rule("op-2", "has %d %s, want %s", n.have, n.what, n.arity)
		}
	}
	for i := range row.attrs {
		if r := checkAttr(op, &row.attrs[i]); r != nil {
			return nil, r
		}
	}
	if row.infer == nil {
		return typesOf(op.Results), nil
	}
	ts, r := row.infer(op)
	if r != nil && strings.HasPrefix(r.Label, "C") {
		r.Label = row.name + "-" + r.Label
	}
	return ts, r
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
		return rule("op-3", "attribute %s is missing", spec.Name)
	}
	if !spec.Kind.accepts(a) {
		return rule("op-4", "attribute %s is %s, which is not of its kind", spec.Name, a)
	}
	if len(spec.Words) > 0 {
		word := op.Word(spec.Name)
		for _, w := range spec.Words {
			if w == word {
				return nil
			}
		}
		return rule("op-5", "attribute %s is %s, want one of %s", spec.Name, word, strings.Join(spec.Words, ", "))
	}
	return nil
}

func (k AttrKind) accepts(a Attr) bool {
	var ok bool
	switch k {
	case AnyAttr:
		return true
	case IntAttr:
		_, ok = a.(Int)
	case BoolAttr:
		switch v := a.(type) {
		case Bool, Unit:
			return true
		case Int:
			return v.Type == I1
		}
	case IntsAttr:
		switch v := a.(type) {
		case Ints:
			return true
		case *Literal:
			return v.Type.Rank() == 1 && v.Type.Elem.IsInt()
		}
	case BoolsAttr:
		_, ok = a.(Bools)
	case StrAttr:
		_, ok = a.(Str)
	case SymAttr:
		_, ok = a.(Sym)
	case EnumAttr:
		_, ok = a.(Enum)
	case DenseAttr:
		_, ok = a.(*Literal)
	case DotAttr:
		_, ok = a.(Dot)
	case GatherAttr:
		_, ok = a.(GatherDims)
	case ScatterAttr:
		_, ok = a.(ScatterDims)
	case ChannelAttr:
		_, ok = a.(Channel)
	case GroupsAttr:
		switch v := a.(type) {
		case MeshAxes:
			return true
		case *Literal:
			return v.Type.Rank() == 2 && v.Type.Elem.IsInt()
		}
	case PairsAttr:
		switch v := a.(type) {
		case AxisShift:
			return true
		case *Literal:
			return v.Type.Rank() == 2 && v.Type.Elem.IsInt()
		}
	case ShardingAttr:
		_, ok = a.(*Sharding)
	case ShardingsAttr:
		_, ok = a.(PerValue)
	case ArrayAttr:
		_, ok = a.(Array)
	case DictAttr:
		_, ok = a.(Dict)
	}
	return ok
}
