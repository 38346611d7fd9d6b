package hlo

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/verify"
	"ppc/lower"
	"ppc/lower/hlo/syntax"
)

// Unfuse returns m with a copy of its main function, or m itself, for reading, as it was before
// XLA fused it and split it in time. In the main function
//
//   - a fusion and a call are the ops of what they call;
//   - a start and its done are one op, where the start stood: collectives are
//     collectives of package ir, wrapped computations their ops;
//   - an all-to-all of an operand for each device is one of all of them, joined;
//   - copies are gone, a bitcast is a reshape: its elements are right, their
//     order is that in memory;
//   - a tuple that is made to be taken apart is gone, whatever is between, and
//     one that is returned is its elements;
//   - the groups of a collective are axes of the mesh that has names for them,
//     where some collective of m names one.
//
// What calls itself, or would become longer than any program is, is an error.
func Unfuse(m *ir.Module) (*ir.Module, error) {
	if unfused(m) {
		return m, nil
	}
	return unfuse(m, false)
}

// unfused reports whether nothing of m is fused, called or split: it is one function
// of ops that are known, on tensors, without groups.
func unfused(m *ir.Module) bool {
	if len(m.Funcs) != 1 || m.Funcs[0].Body == nil {
		return false
	}
	f := m.Funcs[0]
	is := !slices.ContainsFunc(f.Results, func(r ir.Result) bool { return !r.Type.IsTensor() })
	f.Body.Walk(func(op *ir.Op) {
		is = is && op.Kind != ir.Unknown && op.Kind != ir.Call && !op.Kind.Has(ir.Collective)
		for _, v := range op.Results {
			is = is && v.Type.IsTensor()
		}
	})
	return is
}

// Runnable is Unfuse for running, after which m is not used: a bitcast between layouts becomes the ops that
// move elements to their places in the result's layout. Computations that are not
// called are removed; an instruction that cannot be executed is an error.
func Runnable(m *ir.Module) (*ir.Module, error) { return unfuse(m, true) }

func unfuse(m *ir.Module, exact bool) (*ir.Module, error) {
	main := m.Main()
	if main == nil || main.Body == nil {
		return m.Clone(), nil
	}
	c := &ir.Module{Name: m.Name, Attrs: m.Attrs, Meshes: slices.Clone(m.Meshes), Form: m.Form, Funcs: slices.Clone(m.Funcs)} // the other functions are read
	i := slices.Index(c.Funcs, main)
	main = main.Clone()
	c.Funcs[i] = main
	u := &unfuser{m: c, exact: exact, f: main, kinds: kindsByOpcode(), sub: make(map[*ir.Value]*ir.Value), tuples: make(map[*ir.Value][]*ir.Value), starts: make(map[*ir.Value]*ir.Op)}
	for _, f := range c.Funcs {
		if f.Body != nil {
			f.Body.Walk(func(*ir.Op) { u.limit += 10 })
		}
	}
	u.limit += maxUnfused
	u.block(main.Body)
	if u.err != nil {
		return nil, u.err
	}
	dropTuples(main)
	nameGroups(c)
	main.Renumber()
	if exact {
		DropUnreached(c)
	}
	return c, nil
}

// DropUnreached drops the functions of m that its main function does not reach. Those of text
// that was read are verified before, as XLA verifies them.
func DropUnreached(m *ir.Module) {
	reached := make(map[*ir.Func]bool)
	var visit func(f *ir.Func)
	name := func(a ir.Attr) {
		if s, ok := a.(ir.Sym); ok {
			visit(m.Func(string(s)))
		}
	}
	visit = func(f *ir.Func) {
		if f == nil || reached[f] {
			return
		}
		reached[f] = true
		if f.Body == nil {
			return
		}
		f.Body.Walk(func(op *ir.Op) {
			for _, a := range op.Attrs {
				list, _ := a.Attr.(ir.Array)
				for _, a := range append(list[:len(list):len(list)], a.Attr) {
					name(a)
				}
			}
		})
	}
	visit(m.Main())
	m.Funcs = slices.DeleteFunc(m.Funcs, func(f *ir.Func) bool { return !reached[f] })
}

// maxUnfused bounds the ops of a program whose calls have been inlined, beyond
// ten for each op in it: each function may call another twice, and so on.
const maxUnfused = 200_000

type unfuser struct {
	m      *ir.Module
	exact  bool // numbers count
	f      *ir.Func
	kinds  map[string]ir.Kind
	out    *ir.Block
	sub    map[*ir.Value]*ir.Value   // the value that replaces each
	tuples map[*ir.Value][]*ir.Value // the elements of those that are known
	starts map[*ir.Value]*ir.Op      // the op that starts without operands, by what takes its place
	active []string                  // functions being inlined
	ops    int
	limit  int // of ops
	err    error
}

func (u *unfuser) fail(op *ir.Op, format string, args ...any) {
	if u.err == nil {
		u.err = &verify.Error{Func: u.f, Op: op, Rule: &ir.Rule{Label: "hlo", Msg: fmt.Sprintf(format, args...)}}
	}
}

func (u *unfuser) of(v *ir.Value) *ir.Value {
	if w := u.sub[v]; w != nil {
		return w
	}
	return v
}

func (u *unfuser) block(b *ir.Block) {
	ops, around := b.Ops, u.out
	b.Ops, u.out = nil, b
	for _, op := range ops {
		u.op(op)
	}
	u.out = around
}

// op appends op, or the ops that replace it, to the block.
func (u *unfuser) op(op *ir.Op) {
	if u.ops++; u.ops > u.limit {
		u.fail(op, "with its calls inlined the program has more than %d ops", u.limit)
	}
	if u.err != nil {
		return
	}
	for i, v := range op.Operands {
		op.Operands[i] = u.of(v)
	}
	for _, r := range op.Regions {
		u.block(r)
	}
	switch {
	case op.Kind == ir.GetTupleElement:
		u.replace(op, u.element(op.Operands[0], op.Int("index"), op))
		return
	case op.Kind == ir.TupleOp:
		u.tuples[op.Result()] = op.Operands
	case op.Kind == ir.FuncReturn:
		u.results(op)
	case op.Kind == ir.Call && u.call(op, op.Sym("callee")), op.Kind == ir.Unknown && u.unknown(op):
		return
	}
	u.out.Ops = append(u.out.Ops, op)
}

// results makes the elements of what is returned, where that is a tuple,
// results of the function.
func (u *unfuser) results(ret *ir.Op) {
	var vs []*ir.Value
	var rs []ir.Result
	var add func(v *ir.Value, r ir.Result)
	add = func(v *ir.Value, r ir.Result) {
		if v.Type.Kind != ir.TupleType {
			vs, rs = append(vs, v), append(rs, r)
			return
		}
		for i, t := range v.Type.Elems {
			add(u.element(v, i, ret), ir.Result{Type: t})
		}
	}
	for i, v := range ret.Operands {
		add(v, u.f.Results[i])
	}
	ret.Operands, u.f.Results = vs, rs
}

// replace replaces the one result of op by v, which takes its name if it has none.
func (u *unfuser) replace(op *ir.Op, v *ir.Value) {
	u.sub[op.Result()] = v
	if v.Name == "" {
		v.Name = op.Result().Name
	}
}

func (u *unfuser) builder(op *ir.Op) *ir.Builder {
	return &ir.Builder{Func: u.f, Block: u.out, Origin: op.Origin}
}

// element is element i of a tuple; op asks for it.
func (u *unfuser) element(v *ir.Value, i int, op *ir.Op) *ir.Value {
	if elems := u.tuples[v]; elems != nil {
		return elems[i]
	}
	index := ir.AttrsOf(ir.NamedAttr{Name: "index", Attr: ir.Int{Value: i, Type: ir.I32}})
	return u.builder(op).Emit(ir.GetTupleElement, []*ir.Value{v}, index, nil, []*ir.Type{v.Type.Elems[i]}).Result()
}

// tuple is the tuple of elems, of type t.
func (u *unfuser) tuple(t *ir.Type, elems []*ir.Value, op *ir.Op) *ir.Value {
	v := u.builder(op).Emit(ir.TupleOp, elems, nil, nil, []*ir.Type{t}).Result()
	u.tuples[v] = elems
	return v
}

// one is vs as a value of type t: the one of them, or their tuple.
func (u *unfuser) one(t *ir.Type, vs []*ir.Value, op *ir.Op) *ir.Value {
	if t.Kind != ir.TupleType {
		return vs[0]
	}
	return u.tuple(t, vs, op)
}

// call puts the ops of the function called name in the place of op. It reports
// false if that cannot be.
func (u *unfuser) call(op *ir.Op, name string) bool {
	vs := u.inline(op, name)
	if vs == nil {
		return u.err != nil
	}
	if len(op.Results) == 1 && op.Result().Type.Kind == ir.TupleType && (len(vs) != 1 || vs[0].Type.Kind != ir.TupleType) {
		vs = []*ir.Value{u.tuple(op.Result().Type, vs, op)}
	}
	if len(vs) != len(op.Results) {
		return false
	}
	for i, v := range op.Results {
		u.sub[v] = u.as(op, vs[i], v.Type)
	}
	return true
}

// inline appends the ops of the function called name, on the operands of op,
// and returns what it returns; nil where there is none that fits.
func (u *unfuser) inline(op *ir.Op, name string) []*ir.Value {
	f := u.m.Func(name)
	if f == nil || f.Body == nil || f.Return() == nil || len(f.Params()) != len(op.Operands) {
		return nil
	}
	if slices.Contains(u.active, name) {
		u.err = fmt.Errorf("%s calls itself", ir.SymbolText(name))
		return nil
	}
	u.active = append(u.active, name)
	defer func() { u.active = u.active[:len(u.active)-1] }()
	copies := make(map[*ir.Value]*ir.Value)
	for i, p := range f.Params() {
		copies[p] = u.as(op, op.Operands[i], p.Type)
	}
	for _, o := range f.Body.Ops[:len(f.Body.Ops)-1] {
		c := u.f.CopyOp(o, copies)
		c.Origin = within(c.Origin, op.Origin)
		u.op(c)
	}
	out := []*ir.Value{}
	for _, v := range f.Return().Operands {
		if w := copies[v]; w != nil {
			v = w
		}
		out = append(out, u.of(v))
	}
	return out
}

// within is o, the origin of an op that is inlined, with the source of the op
// around where o says none.
func within(o, around *ir.Origin) *ir.Origin {
	if o == nil || around == nil || o.Pos.Line > 0 || o.Name() != "" {
		return o
	}
	c := *around
	c.Text = o.Text
	return &c
}

// passed are the opcodes that hand on their first operand, at another place or
// time.
var passed = []string{"add-dependency", "copy", "domain"}

// unknown replaces op by the ops that it denotes. It reports false if op is kept.
func (u *unfuser) unknown(op *ir.Op) bool {
	opcode, ok := strings.CutPrefix(op.Spelling, "hlo.")
	if !ok || len(op.Results) != 1 {
		return false
	}
	base, split := Wrapped(opcode)
	t := op.Result().Type
	switch {
	case len(op.Operands) > 0 && slices.Contains(passed, opcode):
		u.replace(op, u.converts(op, op.Operands[0], t))
	case opcode == "bitcast" && resizes(op):
		u.replace(op, u.bitcast(op))
	case opcode == "constant" && u.exact:
		u.fail(op, "the numbers of this constant were left out when the text was printed: print it with print_large_constants")
	case opcode == "custom-call":
		u.replace(op, u.one(t, u.customCall(op, t), op))
	case opcode == "mulhi":
		u.replace(op, u.named(op, "chlo.mulhi", t))
	case opcode == "topk":
		return u.topK(op, t)
	case opcode == "fusion":
		return u.call(op, op.Sym("calls"))
	case opcode == "all-to-all":
		parts := u.exchanged(op, t)
		if parts == nil {
			return false
		}
		u.replace(op, u.one(t, parts, op))
	case split && base != "send" && base != "recv":
		return u.splitOp(op, base, strings.TrimPrefix(opcode, base))
	default:
		return u.converted(op, opcode)
	}
	return true
}

// splitOp replaces one part of an asynchronous operation: the start by the full
// operation, the update and done by its results. The value between is a tuple of
// operands, results and contexts, in this order; a copy has its result first, and
// an all-reduce that alone.
func (u *unfuser) splitOp(op *ir.Op, base, part string) bool {
	t, at := op.Result().Type, 1
	if base == "copy" {
		at = 0
	}
	if full := u.brought(op); full != nil && part == "-update" {
		op, part = full, "-start"
	}
	if part != "-start" {
		if len(op.Operands) != 1 {
			return false
		}
		v := op.Operands[0]
		if part == "-update" || base == "all-reduce" {
			u.replace(op, v)
			return true
		}
		if v.Type.Kind != ir.TupleType || len(v.Type.Elems) <= at {
			return false
		}
		u.replace(op, u.element(v, at, op))
		return true
	}
	if base == "all-reduce" {
		vs := u.started(op, base, t)
		if vs == nil {
			return u.err != nil
		}
		u.replace(op, u.one(t, vs, op))
		return true
	}
	if u.deferred(op, t) {
		return true
	}
	if t.Kind != ir.TupleType || len(t.Elems) < 2 {
		return false
	}
	vs := u.started(op, base, t.Elems[at])
	if vs == nil {
		return u.err != nil
	}
	elems := make([]*ir.Value, len(t.Elems))
	for i, e := range t.Elems {
		switch {
		case i == at:
			elems[i] = u.one(e, vs, op)
		case i == 1-at && e.Kind == ir.TupleType && len(e.Elems) == len(op.Operands):
			elems[i] = u.tuple(e, op.Operands, op)
		case i == 1-at && len(op.Operands) == 1:
			elems[i] = op.Operands[0]
		default:
			context := u.builder(op).Emit(ir.Unknown, nil, nil, nil, []*ir.Type{e})
			context.Spelling = "hlo.context"
			elems[i] = context.Result()
		}
	}
	u.replace(op, u.tuple(t, elems, op))
	return true
}

// started are the results, of type t, of the operation that op starts; nil where it
// has no form.
func (u *unfuser) started(op *ir.Op, base string, t *ir.Type) []*ir.Value {
	if name := u.offloaded(op, t); name != "" {
		return u.fitting(op, u.inline(op, name), t)
	}
	for _, callee := range []string{"calls", "to_apply"} {
		if name := op.Sym(callee); name != "" && (callee == "calls" || base == "call") {
			return u.fitting(op, u.inline(op, name), t)
		}
	}
	if base == "copy" {
		return []*ir.Value{u.converts(op, op.Operands[0], t)}
	}
	types := []*ir.Type{t}
	if t.Kind == ir.TupleType {
		types = t.Elems
	}
	if base == "all-to-all" && (t.Kind == ir.TupleType || !op.Attrs.Has("dimensions")) {
		if parts := u.exchanged(op, t); parts != nil {
			return parts
		}
	}
	kind, known := u.kinds[base]
	if known {
		full := u.synchronous(op, kind, types, t)
		if full != nil && (infers(full, types) || !mixesFloats(append(ir.Types(op.Operands), types...))) {
			u.out.Ops = append(u.out.Ops, full)
			return full.Results
		}
		if vs := u.inWidest(op, kind, types, t); vs != nil {
			return vs
		}
	}
	other := u.builder(op).Emit(ir.Unknown, op.Operands, op.Attrs, nil, []*ir.Type{t})
	other.Spelling = "hlo." + base
	if t.Kind != ir.TupleType {
		return other.Results
	}
	var vs []*ir.Value
	for i := range t.Elems {
		vs = append(vs, u.element(other.Result(), i, op))
	}
	return vs
}

// fitting is vs if there are as many as a value of type t has elements, or if
// they are one tuple of these; op asks for it.
func (u *unfuser) fitting(op *ir.Op, vs []*ir.Value, t *ir.Type) []*ir.Value {
	n := 1
	if t.Kind == ir.TupleType {
		n = len(t.Elems)
		if len(vs) == 1 && vs[0].Type.Equal(t) {
			all := make([]*ir.Value, n)
			for i := range all {
				all[i] = u.element(vs[0], i, op)
			}
			return all
		}
	}
	if len(vs) != n {
		return nil
	}
	vs = slices.Clone(vs)
	for i, v := range vs {
		if t.Kind == ir.TupleType {
			vs[i] = u.as(op, v, t.Elems[i])
		} else {
			vs[i] = u.as(op, v, t)
		}
	}
	return vs
}

// oneInstruction are the forms of ops that are one instruction each.
var oneInstruction = [...]form{plain, exchange, stretched, leveled}

// synchronous is the op of the given kind that op starts, its attributes read by
// the row of the kind; nil if it has attributes that the row does not know.
func (u *unfuser) synchronous(op *ir.Op, kind ir.Kind, types []*ir.Type, t *ir.Type) *ir.Op {
	row := rowOf(kind)
	if !kind.NumOperands().Allows(len(op.Operands)) || !kind.NumResults().Allows(len(types)) || !slices.Contains(oneInstruction[:], row.form) {
		return nil
	}
	as, ok := u.attrs(op, row)
	if !ok || row.form == exchange && !exchanges(u.m, &as, len(op.Operands), t) {
		return nil
	}
	full := &ir.Op{Kind: kind, Operands: slices.Clone(op.Operands), Attrs: as, Origin: op.Origin}
	if row.fits != nil && !row.fits(&as, op.Operands) {
		return nil
	}
	for _, name := range row.calls {
		f := u.m.Func(op.Sym(name))
		if f == nil || f.Return() == nil {
			return nil
		}
		region := u.f.CopyBlock(f.Body, make(map[*ir.Value]*ir.Value))
		region.Terminator().Kind = ir.Return
		full.Regions = append(full.Regions, region)
	}
	for i, t := range types {
		v := u.f.NewValue(t, "")
		v.Def, v.Index = full, i
		full.Results = append(full.Results, v)
	}
	return full
}

// attrs are those of op, read by row; false where they say more than that knows.
func (u *unfuser) attrs(op *ir.Op, row *row) (ir.Attrs, bool) {
	var as ir.Attrs
	for _, a := range op.Attrs {
		text, isText := a.Attr.(ir.Str)
		f := row.field(a.Name)
		switch {
		case f == nil && isText && commonAttrs[a.Name]:
			as.Set("hlo."+a.Name, text)
		case f != nil && (!isText || f.parse(u.m, string(text), &as) != nil):
			return nil, false
		}
	}
	row.complete(&as)
	allDevices(u.m, row, &as)
	return as, true
}

// exchanged are the results of an all-to-all that has an operand for each device
// of a group and gives as many, of type t: the parts of what the operands joined
// are exchanged to. nil where it has no form.
func (u *unfuser) exchanged(op *ir.Op, t *ir.Type) []*ir.Value {
	n := len(op.Operands)
	if n == 0 {
		return nil
	}
	part, types := op.Operands[0].Type, []*ir.Type{t}
	if t.Kind == ir.TupleType {
		types = t.Elems
	}
	as, ok := u.attrs(op, rowOf(ir.AllToAll))
	if !ok || groupSize(u.m, &as) != n || !part.IsTensor() || part.Rank() == 0 || len(types) != n || slices.ContainsFunc(types, func(e *ir.Type) bool { return !e.Equal(part) }) {
		return nil
	}
	if l := as.Literal("replica_groups"); l != nil && len(l.Data) == 0 {
		as.Set("replica_groups", lower.Dense(syntax.IotaLists([]int{1, n}, []int{n}, []int{0}), n))
	}
	as.Set("split_dimension", ir.I64Attr(0))
	as.Set("concat_dimension", ir.I64Attr(0))
	as.Set("split_count", ir.I64Attr(n))
	b, rows := u.builder(op), part.Shape[0]
	joined := b.Concat(0, op.Operands...)
	v := u.f.NewValue(joined.Type, op.Result().Name)
	v.Def = &ir.Op{Kind: ir.AllToAll, Operands: []*ir.Value{joined}, Results: []*ir.Value{v}, Attrs: as, Origin: op.Origin}
	u.out.Ops = append(u.out.Ops, v.Def)
	parts := make([]*ir.Value, n)
	for i := range parts {
		parts[i] = b.SliceDim(v, 0, i*rows, (i+1)*rows)
	}
	return parts
}

// dropTuples drops the tuples, elements of tuples and contexts that nothing
// uses.
func dropTuples(f *ir.Func) {
	uses := f.Uses()
	var block func(b *ir.Block)
	block = func(b *ir.Block) {
		var kept []*ir.Op
		for _, op := range slices.Backward(b.Ops) {
			for _, r := range op.Regions {
				block(r)
			}
			plumbing := op.Kind == ir.TupleOp || op.Kind == ir.GetTupleElement || op.Spelling == "hlo.context"
			if plumbing && uses[op.Result().ID] == 0 {
				for _, v := range op.Operands {
					uses[v.ID]--
				}
				continue
			}
			kept = append(kept, op)
		}
		slices.Reverse(kept)
		b.Ops = kept
	}
	block(f.Body)
}

// UserName is what the metadata of a parameter call it: state['wq'].value.
func UserName(v *ir.Value) string {
	s := &syntax.Scanner{Src: v.Attrs.Str("hlo.metadata")}
	s.End = len(s.Src)
	s.Expect("{")
	for s.Err == nil && !s.Accept("}") {
		s.Accept(",")
		name := s.Word("a name")
		s.Expect("=")
		if text, err := syntax.Unquote(s.Value()); err == nil && name == "op_name" {
			return text
		}
	}
	return ""
}
