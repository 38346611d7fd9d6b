package flow

import (
	"slices"

	"ppc/ir"
)

// Moves reports whether the results of op consist of elements of v, one of its
// operands: applied to a weight such an op, a slice, transpose or collective, gives
// that weight or a slice of it. A gather by index tensors does not count, since its
// result is activations, looked up in an embedding table.
func Moves(op *ir.Op, v *ir.Value) bool {
	return slices.ContainsFunc(op.Moves(), func(i int) bool { return op.Operands[i] == v })
}

// Moved are the results of op that are chosen from v, one of its operands; none
// where op computes.
func Moved(op *ir.Op, v *ir.Value) []*ir.Value {
	switch {
	case !Moves(op, v):
		return nil
	case op.Kind != ir.OptimizationBarrier:
		return op.Results
	}
	var out []*ir.Value
	for i, x := range op.Operands {
		if x == v {
			out = append(out, op.Results[i])
		}
	}
	return out
}

// Weights is the values of a function that are slices of a weight parameter, and
// those of them that have been all-gathered.
type Weights struct {
	Of       map[*ir.Value]*ir.Value // the parameter
	Gathered map[*ir.Value]bool      // all-gathers of weights, or of slices of them, and slices of those
}

// WeightsOf follows the weights of f through loops and branches. One walk over the
// function collects which value goes where; a second follows the edges. A value
// that may also be taken from something else, neither a weight nor a constant, is
// no weight: the second walk is repeated without it.
func WeightsOf(m *ir.Module, f *ir.Func) *Weights {
	g := edges{to: make(map[*ir.Value][]edge), from: make(map[*ir.Value][]*ir.Value)}
	g.block(f.Body)
	var params []*ir.Value
	for _, p := range f.Params() {
		if IsWeight(m, f, p) {
			params = append(params, p)
		}
	}
	other := make(map[*ir.Value]bool)
	for {
		w := g.follow(params, other)
		before := len(other)
		for v, from := range g.from {
			if w.Of[v] != nil && slices.ContainsFunc(from, func(x *ir.Value) bool { return !w.mayBe(x) }) {
				other[v] = true
			}
		}
		if len(other) == before {
			return w
		}
	}
}

// follow is the values reached from params by edges that do not lead to other.
func (g *edges) follow(params []*ir.Value, other map[*ir.Value]bool) *Weights {
	w := &Weights{Of: make(map[*ir.Value]*ir.Value), Gathered: make(map[*ir.Value]bool)}
	for _, p := range params {
		w.Of[p] = p
	}
	for work := slices.Clone(params); len(work) > 0; work = work[1:] {
		v := work[0]
		for _, e := range g.to[v] {
			gathered := w.Gathered[v] || e.gathers
			if other[e.to] || w.Of[e.to] != nil && (w.Gathered[e.to] || !gathered) {
				continue
			}
			if w.Of[e.to] == nil {
				w.Of[e.to] = w.Of[v]
			}
			if gathered {
				w.Gathered[e.to] = true
			}
			work = append(work, e.to)
		}
	}
	return w
}

// mayBe reports whether v is a weight, or a constant.
func (w *Weights) mayBe(v *ir.Value) bool {
	for w.Of[v] == nil {
		op := v.Def
		switch {
		case op == nil:
			return false
		case op.Kind == ir.Constant:
			return true
		case v.Index >= len(op.Operands) || op.Kind != ir.BroadcastInDim && !Moves(op, op.Operands[v.Index]):
			return false
		}
		v = op.Operands[v.Index]
	}
	return true
}

// IsWeight reports whether p is a weight: in a program whose parameters do not say what they are, every
// floating-point one may be.
func IsWeight(m *ir.Module, f *ir.Func, p *ir.Value) bool {
	if f != m.Main() {
		return false
	}
	kind := p.Attrs.Str(ir.KeyKind)
	return kind == "param" || kind == "" && p.Type.IsTensor() && p.Type.Elem.IsFloat()
}

// edges is where values go.
type edges struct {
	to   map[*ir.Value][]edge
	from map[*ir.Value][]*ir.Value
}

// An edge leads to a value that is chosen from another, or gathers it.
type edge struct {
	to      *ir.Value
	gathers bool
}

// A step is how a value comes to another: it is that, or a choice of it, or it is
// all-gathered.
type step int

const (
	same step = iota
	gathers
)

func (g *edges) add(from, to *ir.Value, by step) {
	g.from[to] = append(g.from[to], from)
	g.to[from] = append(g.to[from], edge{to, by == gathers})
}

func (g *edges) pairs(from, to []*ir.Value, by step) {
	for i := range min(len(from), len(to)) {
		g.add(from[i], to[i], by)
	}
}

func (g *edges) block(b *ir.Block) {
	for _, op := range b.Ops {
		switch op.Kind {
		case ir.AllGather:
			g.pairs(op.Operands, op.Results, gathers)
		case ir.OptimizationBarrier:
			g.pairs(op.Operands, op.Results, same)
		case ir.While:
			body := op.Regions[1]
			g.pairs(op.Operands, body.Args, same)
			g.pairs(body.Terminator().Operands, body.Args, same)
			g.pairs(body.Args, op.Results, same)
			g.block(body)
		case ir.Case, ir.If:
			for _, r := range op.Regions {
				g.pairs(r.Terminator().Operands, op.Results, same)
				g.block(r)
			}
		default:
			if len(op.Results) == 1 {
				g.moved(op)
			}
		}
	}
}

// moved adds the edges of an op that gives elements of its operands.
func (g *edges) moved(op *ir.Op) {
	moves := make(map[*ir.Value]bool)
	for _, i := range op.Moves() {
		moves[op.Operands[i]] = true
	}
	for _, v := range op.Operands {
		if moves[v] {
			g.add(v, op.Result(), same)
		}
	}
}
