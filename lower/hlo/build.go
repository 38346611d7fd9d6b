package hlo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower"
	"ppc/lower/hlo/syntax"
)

// none stands for what could not be built.
func (b *body) none() *node { return leaf(b.f.NewValue(ir.Token(), "")) }

// instruction builds in and returns what it computes.
func (b *body) instruction(in *syntax.Instruction) *node {
	if b.built++; b.built > maxCopies*b.instrs+1000 {
		b.FailAt(in.At, "the computations of this text are used too often: more than %d instructions in all", maxCopies*b.instrs+1000)
		return b.none()
	}
	if in.Opcode == "parameter" || in.Opcode == "constant" {
		if b.grammatical(in); b.Err != nil {
			return b.none()
		}
	}
	if in.Opcode == "parameter" {
		return b.parameter(in)
	}
	if in.Opcode == "constant" {
		return b.constant(in)
	}
	least, ok := leastOperands(in.Opcode, b.kinds)
	if !ok {
		b.FailAt(in.OpAt, "there is no opcode %s", in.Opcode)
		return b.none()
	}
	if len(in.Operands) < least {
		b.FailAt(in.OpAt, "%s has %s, want at least %d", in.Opcode, ir.Counted(len(in.Operands), "operand"), least)
		return b.none()
	}
	if b.grammatical(in); b.Err != nil {
		return b.none()
	}
	operands := make([]*node, len(in.Operands))
	for i, o := range in.Operands {
		operands[i] = b.operand(o)
	}
	if b.Err != nil {
		return b.none()
	}
	n := b.known(in, operands)
	if n == nil && b.Err == nil {
		n = b.unknown(in, operands)
	}
	if b.Err != nil {
		return b.none()
	}
	if in.Shape != nil && in.Opcode == "tuple" && in.Shape.Type.Kind == ir.TupleType && len(in.Shape.Type.Elems) == len(operands) && !ShapesAgree(in.Shape.Type, n.typ) {
		return b.unknown(in, operands)
	}
	if in.Shape != nil && !ShapesAgree(in.Shape.Type, n.typ) {
		b.FailAt(in.At, "%s is %s, its operands make %s", in.Name, BareShape(in.Shape.Type), BareShape(n.typ))
	}
	return n
}

func (b *body) parameter(in *syntax.Instruction) *node {
	i, err := syntax.ParseInt(strings.TrimSpace(in.Argument))
	if err != nil || i < 0 {
		b.FailAt(in.ArgAt, "want the number of the parameter, found %s", in.Argument)
	}
	if in.Shape == nil {
		b.FailAt(in.At, "parameter %s has no shape", in.Name)
	}
	if b.Err != nil {
		return b.none()
	}
	return b.args(in, i, in.Shape.Type)
}

func (b *body) constant(in *syntax.Instruction) *node {
	if in.Shape == nil {
		b.FailAt(in.At, "constant %s has no shape", in.Name)
		return b.none()
	}
	err := syntax.ErrBeyond
	var l *ir.Literal
	if in.Shape.Type.IsTensor() {
		l, err = syntax.ParseLiteral(in.Shape.Type, in.Argument)
	} else if e := syntax.CheckLiteral(in.Shape.Type, in.Argument); e != nil {
		err = e
	}
	attrs, extra := b.attrs(in, nil)
	if errors.Is(err, syntax.ErrBeyond) || extra {
		return b.unknown(in, nil)
	}
	if err != nil {
		b.FailAt(in.ArgAt, "%v", err)
		return leaf(b.f.NewValue(in.Shape.Type, ""))
	}
	attrs.Set("value", l)
	return b.emit(in, ir.Constant, nil, attrs, nil, []*ir.Type{l.Type})
}

// known builds in by the row of its opcode. It returns nil where there is no
// row, or where in says more than the row knows.
func (b *body) known(in *syntax.Instruction, operands []*node) *node {
	switch in.Opcode {
	case "tuple":
		n := tupleNode(operands)
		n.attrs = tupleAttrs(in, nil)
		return n
	case "get-tuple-element":
		return b.getElement(in, operands)
	}
	kind, ok := b.kinds[in.Opcode]
	if !ok {
		return nil
	}
	row := rowOf(kind)
	switch row.form {
	case loop:
		return b.while(in, operands)
	case branches:
		return b.conditional(in, operands)
	case call:
		return b.call(in, operands)
	case barrier:
		return b.barrier(in, operands[0])
	}
	attrs, extra := b.attrs(in, row)
	if extra || b.Err != nil {
		return nil
	}
	values := make([]*ir.Value, len(operands))
	for i, n := range operands {
		if n.typ.Kind == ir.TupleType {
			return nil
		}
		values[i] = n.value
	}
	if n := kind.NumOperands(); !n.Allows(len(values)) {
		if len(values) > n.Max && in.Shape != nil && (in.Shape.Type.Kind == ir.TupleType || kind == ir.Convolution || kind == ir.DotGeneral) {
			return nil // several at once, or with sparsity or scales of the first two
		}
		b.FailAt(in.OpAt, "%s has %s, want %s", in.Opcode, ir.Counted(len(values), "operand"), n)
		return nil
	}
	if first := kind.NumOperands().Min; (kind == ir.DynamicSlice || kind == ir.DynamicUpdateSlice) && len(values) == first+1 && values[first].Type.Rank() == 1 {
		return nil // one index with a number for each dimension
	}
	if row.form == stretched && (!values[0].Type.IsTensor() || values[0].Type.Rank() > 0) && b.find(in, "dimensions") == nil {
		return nil
	}
	if row.fits != nil && !row.fits(&attrs, values) {
		return nil
	}
	var regions []*ir.Block
	for _, name := range row.calls {
		r := b.region(in, name, nil)
		if b.Err != nil {
			return nil
		}
		regions = append(regions, r)
	}
	allDevices(b.m, row, &attrs)
	if row.form == exchange && (in.Shape == nil || !exchanges(b.m, &attrs, len(in.Operands), in.Shape.Type)) {
		return nil
	}
	results, ok := b.results(in, kind, values, attrs, regions)
	if !ok || mixed(b.f, kind, values, attrs, regions, results) {
		return nil
	}
	return b.emit(in, kind, values, attrs, regions, results)
}

// results are the types of what in computes: as written, or else as they
// follow.
func (b *body) results(in *syntax.Instruction, kind ir.Kind, operands []*ir.Value, attrs ir.Attrs, regions []*ir.Block) ([]*ir.Type, bool) {
	if in.Shape != nil {
		t := in.Shape.Type
		if t.Kind == ir.TupleType && kind.NumResults().Max > 1 && len(t.Elems) != 1 {
			return t.Elems, !slices.ContainsFunc(t.Elems, func(e *ir.Type) bool { return e.Kind == ir.TupleType })
		}
		if kind.NumResults().Min > 1 { // one where the op has several, as XLA makes random bits without a state
			return nil, false
		}
		return []*ir.Type{t}, t.Kind != ir.TupleType
	}
	if kind == ir.BroadcastInDim && len(attrs.Ints("broadcast_dimensions")) == 0 {
		return []*ir.Type{operands[0].Type}, true
	}
	if rowOf(kind).shaped {
		b.FailAt(in.At, "%s needs its shape written: it does not follow from the operands", in.Opcode)
		return nil, false
	}
	ts, r := ir.Infer(&ir.Op{Kind: kind, Operands: operands, Attrs: attrs, Regions: regions})
	if r != nil {
		b.FailAt(in.OpAt, "%s: %s", in.Opcode, r.Msg)
		return nil, false
	}
	return ts, true
}

// emitted checks the numbers of elements and operands that HLO's own parser checks. What else
// an op must keep is for the verifier.
func (b *body) emitted(in *syntax.Instruction, op *ir.Op) {
	switch op.Kind {
	case ir.Reshape:
		b.sameCount(in, op.Operands[0].Type, op.Result().Type)
	case ir.DynamicSlice:
		b.indices(in, op.Operands[0].Type, len(op.Operands)-1)
	case ir.DynamicUpdateSlice:
		b.indices(in, op.Operands[0].Type, len(op.Operands)-2)
	}
	label := map[ir.Kind]string{ir.Reduce: "stablehlo.reduce-C3", ir.DynamicSlice: "stablehlo.dynamic_slice-C2"}[op.Kind]
	if label == "" {
		return
	}
	if _, r := ir.Infer(op); r != nil && r.Label == label {
		b.FailAt(in.At, "%s: %s", in.Opcode, r.Msg)
	}
}

// indices checks that there are n dimensions of an operand that is sliced.
func (b *body) indices(in *syntax.Instruction, t *ir.Type, n int) {
	if t.Rank() != n {
		b.FailAt(in.At, "%s: %s for an operand of rank %d", in.Opcode, ir.Counted(n, "index"), t.Rank())
	}
}

// emit appends an op and returns what it computes.
func (b *body) emit(in *syntax.Instruction, kind ir.Kind, operands []*ir.Value, attrs ir.Attrs, regions []*ir.Block, results []*ir.Type) *node {
	if in.Shape != nil {
		if l := in.Shape.Layout(); l != "" {
			attrs.Set("hlo.layout", ir.Str(l))
		}
	}
	op := b.builder().At(b.origin(in)).Emit(kind, operands, attrs, regions, results)
	b.emitted(in, op)
	if len(results) == 1 {
		return leaf(op.Result().Named(in.Name))
	}
	return tupleNode(leaves(op.Results))
}

// sameCount checks that a reshape keeps the number of elements.
func (b *body) sameCount(in *syntax.Instruction, from, to *ir.Type) {
	if !from.IsStatic() || !to.IsStatic() {
		return
	}
	if n, m := to.NumElements(), from.NumElements(); n != m {
		b.FailAt(in.At, "reshape: the result has %s, the operand %d", ir.Counted(n, "element"), m)
	}
}

// unknown builds in as an op of its own name. Its attributes are text, but for
// those that name computations.
func (b *body) unknown(in *syntax.Instruction, operands []*node) *node {
	if in.Shape == nil {
		t := b.follows(in, operands)
		if t == nil {
			b.FailAt(in.At, "%s needs its shape written: it does not follow from the operands", in.Opcode)
			return nil
		}
		in.Shape = &syntax.Shape{Type: t}
	} else if in.Opcode == "after-all" { // whatever the text says
		in.Shape = &syntax.Shape{Type: ir.Token()}
	}
	var attrs ir.Attrs
	if in.Argument != "" {
		attrs.Set(argumentAttr, ir.Str(in.Argument))
	}
	for _, a := range in.Attrs {
		switch {
		case a.Name == "metadata" || a.Name == "control-predecessors":
		case syntax.ComputationAttrs[a.Name]:
			b.named(a, &attrs)
		case !instructionAttrs[a.Name]:
			b.FailAt(a.At, "%s is no attribute of an instruction%s", a.Name, syntax.Hint(a.Name, instructionAttrNames()))
		default:
			b.check(in, a)
			attrs.Set(a.Name, ir.Str(a.Text))
		}
	}
	b.checkAsync(in, operands)
	b.constraints(in, operands)
	b.nonEmpty(in)
	b.scanned(in)
	b.sameChannel(in, operands)
	if in.Opcode == "bitcast" {
		b.bitcastLayouts(in, &attrs)
	}
	values := make([]*ir.Value, len(operands))
	for i, n := range operands {
		values[i] = b.value(n)
	}
	if l := in.Shape.Layout(); l != "" {
		attrs.Set("hlo.layout", ir.Str(l))
	}
	op := b.builder().At(b.origin(in)).Emit(ir.Unknown, values, attrs, nil, []*ir.Type{in.Shape.Type})
	op.Spelling = "hlo." + in.Opcode
	return leaf(op.Result().Named(in.Name))
}

// named sets the attribute of a that names one computation, or several, as the
// functions that these become.
func (b *body) named(a syntax.Attr, attrs *ir.Attrs) {
	if strings.HasSuffix(a.Name, "_computations") {
		names := ir.Array{}
		for _, c := range b.calledAll(a) {
			names = append(names, ir.Sym(b.function(c).Name))
		}
		attrs.Set(a.Name, names)
		return
	}
	if c := b.called(a); c != nil {
		attrs.Set(a.Name, ir.Sym(b.function(c).Name))
	}
}

// calledAll are the computations that a lists.
func (b *body) calledAll(a syntax.Attr) []*syntax.Computation {
	var comps []*syntax.Computation
	for _, e := range a.List {
		if c := b.called(e); c != nil {
			comps = append(comps, c)
		}
	}
	return comps
}

// called is the computation that a names or holds.
func (b *body) called(a syntax.Attr) *syntax.Computation {
	if a.Comp == nil {
		return b.lookup(a.Text, a.At)
	}
	if name := a.Comp.Name; b.comps[name] != a.Comp { // give it a name of its own
		for i := 1; b.comps[a.Comp.Name] != nil; i++ {
			a.Comp.Name = fmt.Sprintf("%s.%d", name, i)
		}
		b.comps[a.Comp.Name] = a.Comp
		b.instrs += len(a.Comp.Instrs)
	}
	return a.Comp
}

// lookup is the computation called name, which stands before the place that names it.
func (b *body) lookup(name string, at int) *syntax.Computation {
	c := b.comps[strings.TrimPrefix(name, "%")]
	if c == nil || c.End == 0 || c.End > at {
		b.FailAt(at, "there is no computation %s before this one", name)
		return nil
	}
	return c
}

func (b *body) getElement(in *syntax.Instruction, operands []*node) *node {
	for _, a := range in.Attrs {
		if a.Name != "index" {
			continue
		}
		i, err := syntax.ParseInt(a.Text)
		if err != nil {
			b.FailAt(a.At, "%v", err)
			return nil
		}
		n := b.element(operands[0], i, a.At, in.Name)
		if n.value != nil && n.value.Name == "" {
			n.value.Name = in.Name
		}
		return n
	}
	b.FailAt(in.OpAt, "get-tuple-element has no index")
	return nil
}

// find is the attribute of in called name, which it must have.
func (b *body) find(in *syntax.Instruction, name string) *syntax.Attr {
	for i := range in.Attrs {
		if in.Attrs[i].Name == name {
			return &in.Attrs[i]
		}
	}
	b.FailAt(in.OpAt, "%s has no %s", in.Opcode, name)
	return nil
}

// allDevices writes out the groups of devices that a collective means: the one
// of all of them, where it goes by global device ids and names none, which
// StableHLO wants named; and those of the replicas that it names, where these
// stand for all their partitions, which a type can then be checked against.
func allDevices(m *ir.Module, row *row, attrs *ir.Attrs) {
	l := attrs.Literal("replica_groups")
	replicas, partitions := max(m.Attrs.Int("mhlo.num_replicas"), 1), max(m.Attrs.Int("mhlo.num_partitions"), 1)
	if l == nil || replicas > ir.MaxDevices/partitions {
		return
	}
	global, none := attrs.Bool("use_global_device_ids"), len(l.Data) == 0
	channel, _ := attrs.Get("channel_handle").(ir.Channel)
	switch n := replicas * partitions; {
	case global && none:
		attrs.Set("replica_groups", lower.Dense(syntax.IotaLists([]int{1, n}, []int{n}, []int{0}), n))
	case !global && !none && partitions > 1 && channel.Handle > 0 && row.field("use_global_device_ids") != nil:
		groups := Rows(l)
		for i, ids := range groups {
			groups[i] = nil
			for _, id := range ids {
				for p := range partitions {
					groups[i] = append(groups[i], id*partitions+p)
				}
			}
		}
		attrs.Set("replica_groups", ragged(groups))
		attrs.Set("use_global_device_ids", ir.Unit{})
	}
}

// exchanges completes the attributes of an all-to-all, which splits and
// concatenates along one dimension into as many slices as its groups have devices.
// It reports false for the form that has an operand for each device.
func exchanges(m *ir.Module, attrs *ir.Attrs, operands int, result *ir.Type) bool {
	if !attrs.Has("split_dimension") || result.Kind == ir.TupleType || operands != 1 {
		return false
	}
	n := groupSize(m, attrs)
	if l := attrs.Literal("replica_groups"); l != nil && len(l.Data) == 0 {
		attrs.Set("replica_groups", lower.Dense(syntax.IotaLists([]int{1, n}, []int{n}, []int{0}), n))
	}
	attrs.Set("split_count", ir.I64Attr(n))
	attrs.Set("concat_dimension", ir.I64Attr(attrs.Int("split_dimension")))
	return n > 0
}

// groupSize is how many devices the groups of an all-to-all have each; 0 where
// it has none. The one of all is of partitions where it has a channel, and of
// replicas where it has none and there are some.
func groupSize(m *ir.Module, attrs *ir.Attrs) int {
	switch g := attrs.Get("replica_groups").(type) {
	case ir.MeshAxes:
		return m.Mesh(g.Mesh).RefsSize(g.Axes)
	case *ir.Literal:
		if n := g.Type.Shape[1]; n > 0 {
			return n
		}
		replicas, partitions := m.Attrs.Int("mhlo.num_replicas"), m.Attrs.Int("mhlo.num_partitions")
		if channel, _ := attrs.Get("channel_handle").(ir.Channel); replicas > 1 && (partitions < 2 || channel.Handle <= 0) {
			return replicas
		}
		return partitions
	}
	return 0
}
