package pipeline

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
)

// Rotate lowers every pp.rotate to what its lowering names:
//
//   - ppermute: a manual region over the stage axis with one collective_permute.
//     Stages without a source get zeros, as a shift needs; a rotation has a pair
//     that wraps around.
//   - slice_pad: the same move as slices, pads and concatenations of the full
//     dimension. No collective is stated; partition finds the collective permute.
//
// A fill is selected by the stage index afterwards; both lowerings give the same
// bits. A single stage needs no communication.
func Rotate(_ *pass.Context, m *ir.Module) error {
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		r := &rotator{m: m, f: f, sub: f.NewSubst()}
		if err := r.block(f.Body); err != nil {
			return err
		}
	}
	return nil
}

type rotator struct {
	m   *ir.Module
	f   *ir.Func
	sub ir.Subst
}

func (r *rotator) block(b *ir.Block) error {
	out := &ir.Block{}
	for _, op := range b.Ops {
		r.sub.Apply(op.Operands)
		if op.Kind == ir.PPRotate {
			v, err := r.lower(&ir.Builder{Func: r.f, Block: out, Origin: op.Origin}, op)
			if err != nil {
				return err
			}
			v.Name = op.Result().Name
			r.sub[op.Result().ID] = v
			continue
		}
		for _, region := range op.Regions {
			if err := r.block(region); err != nil {
				return err
			}
		}
		out.Ops = append(out.Ops, op)
	}
	b.Ops = out.Ops
	return nil
}

func (r *rotator) lower(b *ir.Builder, op *ir.Op) (*ir.Value, error) {
	x, edge := op.Operands[0], op.Word("edge")
	shift := op.Int("shift")
	stages := x.Type.Shape[0]
	switch {
	case stages > 1:
	case edge == "zero":
		return b.Broadcast(b.Splat(ir.Tensor(x.Type.Elem), 0), x.Type.Shape), nil
	default: // one stage: a rotation is the identity, a shift gives the fill
		return op.Operands[len(op.Operands)-1], nil
	}
	moved, err := r.move(b, op, x, shift, edge == "wrap")
	if err != nil || edge != "fill" {
		return moved, err
	}
	last := 0
	if shift < 0 {
		last = stages - 1
	}
	stage := b.Iota(ir.Tensor(ir.I32, stages), 0)
	at := b.Compare("EQ", stage, b.Splat(stage.Type, float64(last)))
	return b.Select(b.Broadcast(at, x.Type.Shape, 0), op.Operands[1], moved), nil
}

// move is x moved by shift along dimension 0, with zeros coming in unless it wraps.
func (r *rotator) move(b *ir.Builder, op *ir.Op, x *ir.Value, shift int, wrap bool) (*ir.Value, error) {
	switch lowering := op.Attrs.Str("lowering"); lowering {
	case "ppermute":
		if len(r.m.Meshes) > 0 && r.m.Meshes[0].AxisSize(facts.StageAxis) == x.Type.Shape[0] && x.Type.Shape[0] > 1 {
			return r.permute(b, op, x, shift, wrap), nil
		}
	case "slice_pad":
	default:
		return nil, pass.Errorf(op, "pipeline: rotate = %s is no lowering; ppermute and slice_pad are", lowering)
	}
	return slicePad(b, x, shift, wrap), nil
}

// permute moves x in a manual region over the stage axis.
func (r *rotator) permute(b *ir.Builder, op *ir.Op, x *ir.Value, shift int, wrap bool) *ir.Value {
	mesh := r.m.Meshes[0].Name
	s := op.Result().Sharding.Clone()
	if s == nil {
		s = ir.Replicated(mesh, x.Type.Rank())
		s.Dims[0].Axes = ir.Axs(facts.StageAxis)
	}
	for d := range s.Dims[1:] {
		s.Dims[d+1].Open = true
	}
	shape := slices.Clone(x.Type.Shape)
	shape[0] = 1
	body := new(ir.Block)
	arg := r.f.NewArg(body, x.Type.WithShape(shape...), "")
	in := b.In(body)
	attrs := ir.AttrsOf(facts.Named("source_target_pairs", ir.AxisShift{Mesh: mesh, Axes: ir.Axs(facts.StageAxis), Shift: shift, Wrap: wrap}),
		facts.Named("channel_handle", ir.Channel{Handle: 1, Type: 1}))
	moved := in.Emit(ir.CollectivePermute, []*ir.Value{arg}, attrs, nil, nil).Results[0]
	in.Emit(ir.SdyReturn, []*ir.Value{moved}, nil, nil, nil)
	region := ir.AttrsOf(facts.Named("in_shardings", ir.PerValue{s}), facts.Named("out_shardings", ir.PerValue{s}), facts.Named("manual_axes", ir.Array{ir.Str(facts.StageAxis)}))
	return b.Emit(ir.ManualComputation, []*ir.Value{x}, region, []*ir.Block{body}, []*ir.Type{x.Type}).Results[0]
}

// slicePad moves x by one along dimension 0:
//
//	rotate_right(x) = concat(x[S-1:S], x[0:S-1])
//	shift_right(x)  = pad(x, low = 1)[0:S]
//
// and mirrored for a shift of -1.
func slicePad(b *ir.Builder, x *ir.Value, shift int, wrap bool) *ir.Value {
	n := x.Type.Shape[0]
	if wrap {
		at := n - 1
		if shift < 0 {
			at = 1
		}
		return b.Concat(0, b.SliceDim(x, 0, at, n), b.SliceDim(x, 0, 0, at))
	}
	low, high, none := make([]int, x.Type.Rank()), make([]int, x.Type.Rank()), make([]int, x.Type.Rank())
	start := 0
	if shift > 0 {
		low[0] = 1
	} else {
		high[0], start = 1, 1
	}
	padded := b.Pad(x, b.Splat(ir.Tensor(x.Type.Elem), 0), low, high, none)
	return b.SliceDim(padded, 0, start, start+n)
}
