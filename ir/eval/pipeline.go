package eval

import (
	"slices"

	"ppc/ir"
)

// A layerStack is the operands of pp.stack and pp.pipeline, and the sums of
// the auxiliary scalars so far.
type layerStack struct {
	e       *exec
	sides   []*tensor
	weights []*tensor // each with a leading dimension of layers
	aux     []*tensor
}

func layersOf(e *exec) *layerStack {
	acts := e.op.Activations()
	first := acts + e.op.Int("sides")
	ls := &layerStack{e: e, sides: e.in[acts:first], weights: e.in[first:]}
	for i := range e.op.Results[acts:] {
		ls.aux = append(ls.aux, e.result(acts+i))
	}
	return ls
}

// apply runs layers lo to hi of fn on the activations xs, each with its row of the weights, and
// adds their auxiliary scalars to aux.
func (ls *layerStack) apply(fn string, lo, hi int, xs, sides, aux []*tensor) ([]*tensor, error) {
	f := ls.e.p.w.m.Func(fn)
	for l := lo; l < hi; l++ {
		args := slices.Concat(xs, sides)
		for _, w := range ls.weights {
			args = append(args, w.row(l))
		}
		out, err := ls.e.p.call(f, args)
		if err != nil {
			return nil, err
		}
		n := len(xs)
		xs = out[:n]
		for i, a := range out[n:] {
			if err := add.each(nil, aux[i], []*tensor{aux[i], a}); err != nil {
				return nil, err
			}
		}
	}
	return xs, nil
}

// stack applies every layer to the full batch.
func stack(e *exec) ([]*tensor, error) {
	ls := layersOf(e)
	xs, err := ls.apply(e.op.Sym("layer"), 0, e.op.Int("layers"), e.in[:e.op.Activations()], ls.sides, ls.aux)
	if err != nil {
		return nil, err
	}
	return slices.Concat(xs, ls.aux), nil
}

// pipeline is what every schedule must compute: each microbatch goes through the
// pipelined layers, one microbatch after the other, and the full batch through the
// layers after the pipeline. Auxiliary scalars are summed over layers and, in the
// pipeline, averaged over microbatches.
func pipeline(e *exec) ([]*tensor, error) {
	config, _ := e.op.Attrs.Get("config").(ir.Dict)
	c, ls, layers := ir.Attrs(config), layersOf(e), e.op.Int("layers")
	n, inside := max(c.Int("microbatches"), 1), layers
	if c.Has("pipelined") {
		inside = c.Int("pipelined")
	}
	sums := make([]*tensor, len(ls.aux))
	for i, a := range ls.aux {
		sums[i] = a.like(a.shape)
	}
	xs := make([]*tensor, e.op.Activations())
	ys := make([][]*tensor, len(xs))
	for j := range n {
		x, sides, err := e.microbatch(j, n)
		if err != nil {
			return nil, err
		}
		out, err := ls.apply(e.op.Sym("layer"), 0, inside, x, sides, sums)
		if err != nil {
			return nil, err
		}
		for k, y := range out {
			ys[k] = append(ys[k], y)
		}
	}
	for i, s := range sums {
		if err := mean(ls.aux[i], s, n); err != nil {
			return nil, err
		}
	}
	for k := range xs {
		xs[k] = concat(0, ys[k])
	}
	var err error
	if inside < layers {
		xs, err = ls.apply(c.Sym("outside"), inside, layers, xs, ls.sides, ls.aux)
	}
	return slices.Concat(xs, ls.aux), err
}

// microbatch returns slice j of n of the activations and of each side input. A side
// input that already has the type of the layer function's parameter is shared by
// all microbatches.
func (e *exec) microbatch(j, n int) (xs, sides []*tensor, err error) {
	acts := e.op.Activations()
	for _, v := range e.in[:acts] {
		x, err := sliceOf(v, 0, j, n)
		if err != nil {
			return nil, nil, err
		}
		xs = append(xs, x)
	}
	params := e.p.w.m.Func(e.op.Sym("layer")).Params()
	for i, s := range e.in[acts : acts+e.op.Int("sides")] {
		if !e.p.is(s, params[acts+i].Type) {
			if s, err = sliceOf(s, 0, j, n); err != nil {
				return nil, nil, err
			}
		}
		sides = append(sides, s)
	}
	return xs, sides, nil
}

// mean sets out to sum / n.
func mean(out, sum *tensor, n int) error {
	return divide.each(nil, out, []*tensor{sum, number(sum.elem, n)})
}

// scan repeats its region over the carries; each iteration reads one row of
// each further operand and writes one row of each further result. One in
// reverse runs from the last iteration to the first.
func scan(e *exec) ([]*tensor, error) {
	n, trips := e.op.Int("carries"), e.op.Int("trip_count")
	carries, stacked := e.in[:n], make([]*tensor, 0, len(e.op.Results)-n)
	for i := n; i < len(e.op.Results); i++ {
		stacked = append(stacked, e.result(i))
	}
	for k := range trips {
		t := k
		if e.op.Bool("reverse") {
			t = trips - 1 - k
		}
		args := append([]*tensor{number(ir.I32, t)}, carries...)
		for _, x := range e.in[n:] {
			args = append(args, x.row(t))
		}
		out, err := e.region(0, args)
		if err != nil {
			return nil, err
		}
		carries = out[:n]
		for i, y := range out[n:] {
			to := dense(stacked[i].shape)
			move(y.shape, stacked[i], lattice{t * to.step[0], to.step[1:]}, y, dense(y.shape))
		}
	}
	return append(slices.Clone(carries), stacked...), nil
}

// rotate moves row s of dimension 0 to row s + shift. The row that nothing
// moves to is the one that left at the other end, zeros, or that of the fill.
func rotate(e *exec) *tensor {
	x, n := e.in[0], e.in[0].shape[0]
	if n == 0 {
		return x
	}
	var edge *tensor
	in, out := 0, n-1 // the row that is filled, the row that leaves
	if e.op.Int("shift") < 0 {
		in, out = out, in
	}
	switch e.op.Word("edge") {
	case "wrap":
		edge = x.part(0, out, 1)
	case "fill":
		edge = e.in[1].part(0, in, 1)
	default:
		edge = x.like(append([]int{1}, x.shape[1:]...))
	}
	if in == 0 {
		return concat(0, []*tensor{edge, x.part(0, 0, n-1)})
	}
	return concat(0, []*tensor{x.part(0, 1, n-1), edge})
}

// checkpoint is its region: recomputation does not show in values.
func checkpoint(e *exec) ([]*tensor, error) { return e.region(0, e.in) }
