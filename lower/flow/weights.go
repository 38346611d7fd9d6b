package flow

import (
	"slices"

	"ppc/ir"
)

// chosen says, by op, which operands a result is chosen from: what such an op
// makes of a weight is that weight or a part of it, in another order or at
// another place. A lookup by index tensors (gather) is left out, since it makes
// activations of an embedding table.
var chosen = map[ir.Kind][]int{
	ir.AllToAll:            {0},
	ir.BitcastConvert:      {0},
	ir.CollectivePermute:   {0},
	ir.Convert:             {0},
	ir.DynamicSlice:        {0},
	ir.OptimizationBarrier: {0},
	ir.Reshape:             {0},
	ir.Reverse:             {0},
	ir.Select:              {1, 2},
	ir.Slice:               {0},
	ir.Transpose:           {0},
}

// Moves reports whether the results of op are chosen from v, one of its operands.
func Moves(op *ir.Op, v *ir.Value) bool {
	switch op.Kind {
	case ir.Concatenate:
		return true
	case ir.BroadcastInDim: // to dimensions of size 1
		from, to := v.Type, op.Result().Type
		return from.IsStatic() && to.IsStatic() && from.NumElements() == to.NumElements()
	}
	return slices.ContainsFunc(chosen[op.Kind], func(i int) bool { return op.Operands[i] == v })
}

// Weights says of the values of a function which are chosen from a parameter
// that is a weight, and which of these are whole again.
type Weights struct {
	Of       map[*ir.Value]*ir.Value // the parameter
	Gathered map[*ir.Value]bool      // all-gathers of weights, or of parts of them, and what is chosen from those
}

// WeightsOf follows the weights of f through loops and branches. One walk over
// the function collects which value goes where; a second follows the edges.
func WeightsOf(m *ir.Module, f *ir.Func) *Weights {
	g := edges{to: make(map[*ir.Value][]edge)}
	g.block(f.Body)
	w := &Weights{Of: make(map[*ir.Value]*ir.Value), Gathered: make(map[*ir.Value]bool)}
	var work []*ir.Value
	for _, p := range f.Params() {
		if IsWeight(m, f, p) {
			w.Of[p] = p
			work = append(work, p)
		}
	}
	for len(work) > 0 {
		v := work[0]
		work = work[1:]
		for _, e := range g.to[v] {
			whole := w.Gathered[v] || e.gathers
			if w.Of[e.to] != nil && (w.Gathered[e.to] || !whole) {
				continue
			}
			if w.Of[e.to] == nil {
				w.Of[e.to] = w.Of[v]
			}
			if whole {
				w.Gathered[e.to] = true
			}
			work = append(work, e.to)
		}
	}
	return w
}

// IsWeight reports whether p is a weight: in a program whose parameters do not say what they are, every
// floating-point one may be.
func IsWeight(m *ir.Module, f *ir.Func, p *ir.Value) bool {
	if f != m.Main() {
		return false
	}
	kind := p.Attrs.Str("pp.kind")
	return kind == "param" || kind == "" && p.Type.IsTensor() && p.Type.Elem.IsFloat()
}

// edges is where values go.
type edges struct{ to map[*ir.Value][]edge }

// An edge leads to a value that is chosen from another, or gathers it.
type edge struct {
	to      *ir.Value
	gathers bool
}

func (g *edges) add(from, to *ir.Value, gathers bool) {
	g.to[from] = append(g.to[from], edge{to, gathers})
}

func (g *edges) pairs(from, to []*ir.Value, gathers bool) {
	for i := range min(len(from), len(to)) {
		g.add(from[i], to[i], gathers)
	}
}

func (g *edges) block(b *ir.Block) {
	for _, op := range b.Ops {
		switch op.Kind {
		case ir.AllGather:
			g.pairs(op.Operands, op.Results, true)
		case ir.OptimizationBarrier:
			g.pairs(op.Operands, op.Results, false)
		case ir.While:
			body := op.Regions[1]
			g.pairs(op.Operands, body.Args, false)
			g.pairs(body.Terminator().Operands, body.Args, false)
			g.pairs(body.Args, op.Results, false)
			g.block(body)
		case ir.Case, ir.If:
			for _, r := range op.Regions {
				g.pairs(r.Terminator().Operands, op.Results, false)
				g.block(r)
			}
		default:
			for _, v := range op.Operands {
				if len(op.Results) == 1 && Moves(op, v) {
					g.add(v, op.Result(), false)
				}
			}
		}
	}
}
