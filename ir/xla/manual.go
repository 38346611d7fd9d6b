package xla

import (
	"fmt"
	"slices"

	"ppc/ir"
)

// GSPMD brackets manual regions by custom calls: SPMDFullToShardShape takes each
// device's shard of a global value, SPMDShardToFullShape makes a global value of
// the shards. The ops on shards in between become the region of a manual
// computation.

// manualRegions makes such brackets in f, in every block, manual computations.
func (im *importer) manualRegions(f *ir.Func) {
	var block func(b *ir.Block)
	block = func(b *ir.Block) {
		if slices.ContainsFunc(b.Ops, func(op *ir.Op) bool { return isCall(op, toShard) || isCall(op, toFull) }) {
			im.bracketed(f, b)
		}
		for _, op := range b.Ops {
			for _, r := range op.Regions {
				block(r)
			}
		}
	}
	block(f.Body)
}

// A bracket is the ops that become one manual computation.
type bracket struct {
	ins, outs []*ir.Op // SPMDFullToShardShape, SPMDShardToFullShape
	ops       []*ir.Op // in between
	made      []*ir.Op // in place of all
	state     int      // of being put in order: 0 not yet, 1 on the way, 2 done
}

// brackets is one block at work.
type brackets struct {
	*importer
	f    *ir.Func
	all  []*bracket
	of   map[*ir.Value]*bracket // of the values that are shards
	home map[*ir.Op]*bracket    // of the ops that become part of one
	at   map[*ir.Op]int         // the positions of the ops of the block
	out  []*ir.Op
	done map[*ir.Op]bool
}

func (im *importer) bracketed(f *ir.Func, b *ir.Block) {
	before := len(im.errs)
	s := &brackets{importer: im, f: f, of: make(map[*ir.Value]*bracket), home: make(map[*ir.Op]*bracket), at: make(map[*ir.Op]int), done: make(map[*ir.Op]bool)}
	for i, op := range b.Ops {
		s.at[op] = i
	}
	for _, op := range b.Ops {
		s.sort(op)
	}
	for _, br := range s.all {
		if len(im.errs) == before && len(br.ins)+len(br.outs) > 0 {
			s.make(br)
		}
	}
	if len(im.errs) > before {
		return
	}
	for _, op := range b.Ops {
		s.put(op)
	}
	b.Ops = s.out
}

// sort finds the bracket of op, where it has one.
func (s *brackets) sort(op *ir.Op) {
	used := slices.Concat(op.Operands, op.Captures())
	var br *bracket
	for _, v := range used {
		if o := s.of[v]; o != nil {
			br = s.merge(br, o)
		}
	}
	if isCall(op, toShard) || isCall(op, toFull) {
		if len(op.Operands) != 1 || len(op.Results) != 1 {
			s.errorf(op.Origin, "custom_call @%s: want one operand and one result", op.Str("call_target_name"))
			return
		}
	}
	switch {
	case isCall(op, toShard) && br != nil:
		s.errorf(op.Origin, "custom_call @%s of a value that is per device already: manual computations inside of each other are not read in this form; export the program with Shardy", toShard)
		return
	case isCall(op, toShard):
		br = &bracket{ins: []*ir.Op{op}}
		s.all = append(s.all, br)
	case isCall(op, toFull):
		if br == nil { // of constants alone
			br = new(bracket)
			s.all = append(s.all, br)
		}
		br.outs = append(br.outs, op)
		s.home[op] = br
		return
	case br == nil:
		return
	case op.Kind == ir.FuncReturn || op.Kind == ir.Return || op.Kind == ir.SdyReturn:
		s.errorf(op.Origin, "%s returns a shard of a value; make it global by custom_call @%s", op.Name(), toFull)
		return
	default:
		br.ops = append(br.ops, op)
	}
	s.home[op] = br
	for _, v := range op.Results {
		s.of[v] = br
	}
}

// merge makes two brackets one.
func (s *brackets) merge(a, b *bracket) *bracket {
	if a == nil || a == b {
		return b
	}
	a.ins, a.ops, a.outs = slices.Concat(a.ins, b.ins), slices.Concat(a.ops, b.ops), slices.Concat(a.outs, b.outs)
	b.ins, b.ops, b.outs = nil, nil, nil
	for v, o := range s.of {
		if o == b {
			s.of[v] = a
		}
	}
	for op, o := range s.home {
		if o == b {
			s.home[op] = a
		}
	}
	return a
}

// make builds the manual computation of br.
func (s *brackets) make(br *bracket) {
	body := new(ir.Block)
	b := &ir.Builder{Func: s.f, Block: body}
	sub := make(map[*ir.Value]*ir.Value)
	m := &manualOp{body: body}
	for _, op := range br.ins {
		if !s.side(m, op, op.Result(), op.Operands[0], &m.in) {
			return
		}
		m.operands = append(m.operands, op.Operands[0])
		sub[op.Result()] = s.f.NewArg(body, op.Result().Type, op.Result().Name)
	}
	slices.SortStableFunc(br.ops, func(x, y *ir.Op) int { return s.at[x] - s.at[y] })
	for _, op := range br.ops {
		for _, v := range slices.Concat(op.Operands, op.Captures()) {
			s.pull(b, op, v, sub)
		}
		body.Ops = append(body.Ops, s.f.CopyOp(op, sub))
	}
	results := make([]*ir.Value, len(br.outs))
	for i, op := range br.outs {
		if !s.side(m, op, op.Operands[0], op.Result(), &m.out) {
			return
		}
		s.pull(b, op, op.Operands[0], sub)
		results[i] = sub[op.Operands[0]]
	}
	if len(s.errs) == 0 {
		b.Emit(ir.SdyReturn, results, nil, nil, nil)
		s.emit(br, m)
	}
}

// A manualOp is a manual computation while it is built.
type manualOp struct {
	operands []*ir.Value
	in, out  ir.PerValue
	manual   []ir.AxisRef // nil where it is not known yet
	body     *ir.Block
}

// side records the sharding of a value that op passes into or out of a manual
// computation, and whose shards are shard. It reports false after an error.
func (s *brackets) side(m *manualOp, op *ir.Op, shard, global *ir.Value, to *ir.PerValue) bool {
	d, around, err := s.outside(op, global)
	var manual []ir.AxisRef
	if err == nil {
		manual, err = s.manualOf(shard)
	}
	manual = slices.DeleteFunc(manual, func(r ir.AxisRef) bool { return slices.Contains(around, r) })
	if err == nil && m.manual != nil && !slices.Equal(manual, m.manual) {
		err = fmt.Errorf("it is manual over %s, another part of the same computation over %s", manual, m.manual)
	}
	if err != nil {
		s.errorf(op.Origin, "custom_call @%s: %v", op.Str("call_target_name"), err)
		return false
	}
	m.manual, *to = manual, append(*to, d)
	return true
}

// emit makes the op, whose results are those that the bracket hands out.
func (s *brackets) emit(br *bracket, m *manualOp) {
	var names ir.Array
	for _, a := range m.manual {
		names = append(names, ir.Str(a.Name))
	}
	var types []*ir.Type
	for _, op := range br.outs {
		types = append(types, op.Result().Type)
	}
	block := new(ir.Block)
	b := &ir.Builder{Func: s.f, Block: block, Origin: slices.Concat(br.ins, br.outs)[0].Origin}
	op := b.Emit(ir.ManualComputation, m.operands, ir.AttrsOf(ir.NamedAttr{Name: "in_shardings", Attr: m.in},
		ir.NamedAttr{Name: "manual_axes", Attr: names}, ir.NamedAttr{Name: "out_shardings", Attr: m.out}), []*ir.Block{m.body}, types)
	for i, o := range br.outs {
		v := o.Result() // keeps its uses
		v.Def, v.Index = op, i
		op.Results[i] = v
	}
	br.made = block.Ops
}

func (s *brackets) fullMesh() []ir.AxisRef {
	var axes []ir.AxisRef
	for _, a := range s.mesh.Axes {
		axes = append(axes, ir.Ax(a.Name))
	}
	return axes
}

// textOf is the sharding annotation of v, as text, and the op that has it.
func (s *brackets) textOf(v *ir.Value) (*text, *ir.Op, error) {
	if v.Def == nil {
		return nil, nil, nil
	}
	said, name := shardingOf(v.Def.Attrs)
	if name == "" {
		return nil, v.Def, fmt.Errorf("%s, which makes it, has no sharding", v.Def.Name())
	}
	return s.texts[said], v.Def, nil
}

// manualOf are the axes along which v is per device, in the order of the mesh.
func (s *brackets) manualOf(v *ir.Value) ([]ir.AxisRef, error) {
	t, _, err := s.textOf(v)
	if err != nil {
		return nil, err
	}
	if t != nil && t.kind == manual {
		return s.fullMesh(), nil
	}
	if t == nil || t.kind != tiled || !t.has(manual) {
		return nil, fmt.Errorf("the shard that each device has needs the sharding {manual}, or one with last_tile_dims={manual}")
	}
	_, axes, err := t.sharding(s.mesh, v.Type.Rank(), nil)
	return s.fullAxes(t, axes, err)
}

// fullAxes checks that axes, those of t that are manual, are full axes of the mesh,
// no sub-axes, and sorts them.
func (s *brackets) fullAxes(t *text, axes []ir.AxisRef, err error) ([]ir.AxisRef, error) {
	for _, a := range axes {
		if a.Size != 0 && err == nil {
			err = fmt.Errorf("%s is manual over a part of an axis of the mesh %s", t.spelling, meshText(s.mesh))
		}
	}
	slices.SortFunc(axes, func(a, b ir.AxisRef) int { return s.mesh.Axis(a.Name) - s.mesh.Axis(b.Name) })
	return axes, err
}

// outside is how v is sharded that op hands in or out, and the axes along which
// it is per device itself.
func (s *brackets) outside(op *ir.Op, v *ir.Value) (d *ir.Sharding, around []ir.AxisRef, err error) {
	t, says, err := s.textOf(v)
	if err != nil {
		return nil, nil, err
	}
	if t == nil {
		if v.Sharding == nil {
			return nil, nil, fmt.Errorf("the parameter that it takes has no sharding, so its parts are not known")
		}
		return v.Sharding.Clone(), nil, nil
	}
	open, err := openDims(says)
	if err != nil {
		return nil, nil, err
	}
	switch t.kind {
	case replicated:
		return opened(ir.Replicated(s.mesh.Name, v.Type.Rank()), open), nil, nil
	case tiled:
		d, around, err = t.sharding(s.mesh, v.Type.Rank(), open)
		around, err = s.fullAxes(t, around, err)
		return d, around, err
	}
	return nil, nil, fmt.Errorf("the global value has the sharding %s, want one that tiles it", t.spelling)
}

// pull computes v, which op of a bracket uses and which is no shard, within the
// region, which cannot capture values: it copies constants and ops on constants
// alone.
func (s *brackets) pull(b *ir.Builder, op *ir.Op, v *ir.Value, sub map[*ir.Value]*ir.Value) {
	if sub[v] != nil || s.of[v] != nil && s.home[v.Def] != nil && !isCall(v.Def, toShard) {
		return
	}
	def := v.Def
	if def == nil || !def.Kind.Has(ir.Pure) && def.Kind != ir.Call && !isCall(def, constrains) || len(def.Regions) > 0 {
		s.errorf(op.Origin, "%s uses a global value among shards; pass it in by custom_call @%s", op.Name(), toShard)
		return
	}
	for _, x := range def.Operands {
		s.pull(b, op, x, sub)
	}
	if len(s.errs) == 0 {
		b.Block.Ops = append(b.Block.Ops, s.f.CopyOp(def, sub))
	}
}

// put appends op after its operands' ops. For an op of a bracket that is the
// bracket's manual computation.
func (s *brackets) put(op *ir.Op) {
	if br := s.home[op]; br != nil {
		s.putBracket(br, op)
		return
	}
	if s.done[op] {
		return
	}
	s.done[op] = true
	s.putUsed(slices.Concat(op.Operands, op.Captures()))
	s.out = append(s.out, op)
}

func (s *brackets) putUsed(vs []*ir.Value) {
	for _, v := range vs {
		if v.Def == nil {
			continue
		}
		if br := s.maker(v); br != nil {
			s.putBracket(br, v.Def)
		} else if _, here := s.at[v.Def]; here {
			s.put(v.Def)
		}
	}
}

func (s *brackets) putBracket(br *bracket, at *ir.Op) {
	switch br.state {
	case 1:
		s.errorf(at.Origin, "shards are used before and after a global value that depends on them: this is no manual computation")
		return
	case 2:
		return
	}
	br.state = 1
	for _, op := range br.made {
		s.putUsed(op.Operands)
	}
	br.state = 2
	s.out = append(s.out, br.made...)
}

// maker is the bracket whose manual computation makes v.
func (s *brackets) maker(v *ir.Value) *bracket {
	i := slices.IndexFunc(s.all, func(br *bracket) bool { return slices.Contains(br.made, v.Def) })
	if i < 0 {
		return nil
	}
	return s.all[i]
}
