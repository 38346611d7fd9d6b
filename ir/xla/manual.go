package xla

import (
	"fmt"
	"slices"

	"ppc/ir"
)

// GSPMD brackets what is per device: SPMDFullToShardShape hands in each device's
// part of a value, SPMDShardToFullShape hands out what the parts make together.
// What is computed from parts in between is the region of a manual computation.

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

// A bracket is the ops of one manual computation while they are gathered.
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
	of   map[*ir.Value]*bracket // of the values that are parts
	home map[*ir.Op]*bracket    // of the ops that become part of one
	at   map[*ir.Op]int         // where the ops of the block stand
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
		s.errorf(op.Origin, "%s returns what one device has of a value; hand it out by custom_call @%s", op.Name(), toFull)
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
	var manual []ir.AxisRef
	body := new(ir.Block)
	b := &ir.Builder{Func: s.f, Block: body}
	sub := make(map[*ir.Value]*ir.Value)
	var in, out ir.PerValue
	operands := make([]*ir.Value, len(br.ins))
	for i, op := range br.ins {
		axes, err := s.manualOf(op)
		if err == nil && i > 0 && !slices.Equal(axes, manual) {
			err = fmt.Errorf("it is manual over %s, another part of the same computation over %s", axes, manual)
		}
		var d *ir.Sharding
		if err == nil {
			d, err = s.outside(op, op.Operands[0])
		}
		if err != nil {
			s.errorf(op.Origin, "custom_call @%s: %v", toShard, err)
			return
		}
		manual, operands[i], in = axes, op.Operands[0], append(in, d)
		sub[op.Result()] = s.f.NewArg(body, op.Result().Type, op.Result().Name)
	}
	if len(br.ins) == 0 {
		manual = s.wholeMesh()
	}
	slices.SortStableFunc(br.ops, func(x, y *ir.Op) int { return s.at[x] - s.at[y] })
	for _, op := range br.ops {
		for _, v := range slices.Concat(op.Operands, op.Captures()) {
			s.pull(b, op, v, sub)
		}
		body.Ops = append(body.Ops, s.f.CopyOp(op, sub))
	}
	results := make([]*ir.Value, len(br.outs))
	types := make([]*ir.Type, len(br.outs))
	for i, op := range br.outs {
		d, err := s.outside(op, op.Result())
		if err != nil {
			s.errorf(op.Origin, "custom_call @%s: %v", toFull, err)
			return
		}
		s.pull(b, op, op.Operands[0], sub)
		results[i], types[i], out = sub[op.Operands[0]], op.Result().Type, append(out, d)
	}
	if len(s.errs) > 0 {
		return
	}
	b.Emit(ir.SdyReturn, results, nil, nil, nil)
	s.emit(br, operands, types, body, in, out, manual)
}

// emit makes the op, whose results are those that the bracket hands out.
func (s *brackets) emit(br *bracket, operands []*ir.Value, types []*ir.Type, body *ir.Block, in, out ir.PerValue, manual []ir.AxisRef) {
	var names ir.Array
	for _, a := range manual {
		names = append(names, ir.Str(a.Name))
	}
	block := new(ir.Block)
	made := &ir.Builder{Func: s.f, Block: block}
	made.Origin = slices.Concat(br.ins, br.outs)[0].Origin
	op := made.Emit(ir.ManualComputation, operands, ir.AttrsOf(ir.NamedAttr{Name: "in_shardings", Attr: in},
		ir.NamedAttr{Name: "manual_axes", Attr: names}, ir.NamedAttr{Name: "out_shardings", Attr: out}), []*ir.Block{body}, types)
	for i, o := range br.outs {
		v := o.Result() // keeps its uses
		v.Def, v.Index = op, i
		op.Results[i] = v
	}
	br.made = block.Ops
}

func (s *brackets) wholeMesh() []ir.AxisRef {
	var axes []ir.AxisRef
	for _, a := range s.mesh.Axes {
		axes = append(axes, ir.Ax(a.Name))
	}
	return axes
}

// manualOf are the axes along which the result of op is per device.
func (s *brackets) manualOf(op *ir.Op) ([]ir.AxisRef, error) {
	said, name := shardingOf(op.Attrs)
	if name == "" {
		return nil, fmt.Errorf("it has no sharding; want {manual}")
	}
	t := s.texts[said]
	if t.kind == manual {
		return s.wholeMesh(), nil
	}
	if t.kind != tiled || !t.has(manual) {
		return nil, fmt.Errorf("its sharding is %s, want {manual} or one with last_tile_dims={manual}", said)
	}
	_, axes, err := t.sharding(s.mesh, op.Result().Type.Rank(), nil)
	for _, a := range axes {
		if a.Size != 0 && err == nil {
			err = fmt.Errorf("%s is manual over a part of an axis of the mesh %s", said, meshText(s.mesh))
		}
	}
	slices.SortFunc(axes, func(a, b ir.AxisRef) int { return s.mesh.Axis(a.Name) - s.mesh.Axis(b.Name) })
	return axes, err
}

// outside is how v is sharded that op hands in or out: as the op itself says
// where it hands out, else as where v comes from says.
func (s *brackets) outside(op *ir.Op, v *ir.Value) (*ir.Sharding, error) {
	says := v.Def
	if says == nil {
		if v.Sharding == nil {
			return nil, fmt.Errorf("its operand has no sharding, so its parts are not known")
		}
		return v.Sharding.Clone(), nil
	}
	said, name := shardingOf(says.Attrs)
	if name == "" {
		return nil, fmt.Errorf("%s, which it takes or makes, has no sharding, so its parts are not known", says.Name())
	}
	open, err := openDims(says)
	if err != nil {
		return nil, err
	}
	t := s.texts[said]
	if t.kind == replicated {
		return ir.Replicated(s.mesh.Name, v.Type.Rank()), nil
	}
	if t.kind != tiled {
		return nil, fmt.Errorf("the whole value has the sharding %s, want one that tiles it", said)
	}
	d, _, err := t.sharding(s.mesh, v.Type.Rank(), open)
	return d, err
}

// pull makes v, which op of a bracket uses and which is no part, in the region,
// where no value from outside can be used: constants and what is computed from
// them alone.
func (s *brackets) pull(b *ir.Builder, op *ir.Op, v *ir.Value, sub map[*ir.Value]*ir.Value) {
	if sub[v] != nil || s.of[v] != nil && s.home[v.Def] != nil && !isCall(v.Def, toShard) {
		return
	}
	def := v.Def
	if def == nil || !def.Kind.Has(ir.Pure) && def.Kind != ir.PartitionID || len(def.Regions) > 0 {
		s.errorf(op.Origin, "%s uses a value of the whole program among what one device has; hand it in by custom_call @%s", op.Name(), toShard)
		return
	}
	for _, x := range def.Operands {
		s.pull(b, op, x, sub)
	}
	if len(s.errs) == 0 {
		b.Block.Ops = append(b.Block.Ops, s.f.CopyOp(def, sub))
	}
}

// put appends op after all that it uses. What is in a bracket stands in its
// place.
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
		s.errorf(at.Origin, "what one device has is used on both sides of a value of the whole program: this is no manual computation")
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
