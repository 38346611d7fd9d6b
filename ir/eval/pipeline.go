package eval

import (
	"errors"
	"fmt"
	"slices"

	"ppc/ir"
)

// layers applies a layer function again and again: the operands of pp.stack
// and pp.pipeline, and the sums of the auxiliary scalars.
type layers struct {
	e       *exec
	sides   []*tensor
	weights []*tensor // each with a leading dimension of layers
	aux     []*tensor
}

func layersOf(e *exec) *layers {
	n := e.op.Int("sides")
	ls := &layers{e: e, sides: e.in[1 : 1+n], weights: e.in[1+n:]}
	for i := range e.op.Results[1:] {
		ls.aux = append(ls.aux, e.result(1+i))
	}
	return ls
}

// apply runs layers lo to hi of fn on x and adds their auxiliary scalars to aux.
func (ls *layers) apply(fn string, lo, hi int, x *tensor, sides, aux []*tensor) (*tensor, error) {
	f := ls.e.p.w.m.Func(fn)
	if f == nil {
		return nil, fmt.Errorf("there is no layer function %s", ir.SymbolText(fn))
	}
	for l := lo; l < hi; l++ {
		args := append([]*tensor{x}, sides...)
		for _, w := range ls.weights {
			args = append(args, w.row(l))
		}
		out, err := ls.e.p.call(f, args)
		if err != nil {
			return nil, err
		}
		if len(out) != 1+len(aux) {
			return nil, fmt.Errorf("%s returns %d values, want the activation and %d scalars", ir.SymbolText(fn), len(out), len(aux))
		}
		x = out[0]
		for i, a := range out[1:] {
			if err := accumulate(aux[i], a); err != nil {
				return nil, err
			}
		}
	}
	return x, nil
}

func accumulate(sum, x *tensor) error {
	if sum.elem != x.elem || sum.len() != x.len() {
		return fmt.Errorf("an auxiliary value is %s, want %s", x, sum)
	}
	return add.each(nil, sum, []*tensor{sum, x})
}

// stack applies every layer to the whole batch.
func stack(e *exec) ([]*tensor, error) {
	ls := layersOf(e)
	x, err := ls.apply(e.op.Sym("layer"), 0, e.op.Int("layers"), e.in[0], ls.sides, ls.aux)
	if err != nil {
		return nil, err
	}
	return append([]*tensor{x}, ls.aux...), nil
}

// pipeline is what every schedule must compute: each microbatch goes through
// the pipelined layers, one microbatch after the other, and the whole batch
// through the layers that are left. Auxiliary scalars are summed over layers
// and, in the pipeline, averaged over microbatches.
func pipeline(e *exec) ([]*tensor, error) {
	config, _ := e.op.Attrs.Get("config").(ir.Dict)
	c, ls, total := ir.Attrs(config), layersOf(e), e.op.Int("layers")
	micro, inside := c.Int("microbatches"), total
	if c.Has("pipelined") {
		inside = c.Int("pipelined")
	}
	if inside < 0 || inside > total {
		return nil, fmt.Errorf("%d of %d layers in the pipeline", inside, total)
	}
	f := e.p.w.m.Func(e.op.Sym("layer"))
	if f == nil || f.Body == nil || len(f.Params()) <= len(ls.sides) {
		return nil, fmt.Errorf("there is no layer function %s of %d values", ir.SymbolText(e.op.Sym("layer")), 1+len(ls.sides))
	}
	sums := make([]*tensor, len(ls.aux))
	for i, a := range ls.aux {
		sums[i] = a.like(a.shape)
	}
	var ys []*tensor
	for j := range micro {
		x, err := microbatch(e.in[0], j, micro)
		if err != nil {
			return nil, err
		}
		sides := slices.Clone(ls.sides)
		for i, s := range sides {
			if !e.p.is(s, f.Params()[1+i].Type) {
				if sides[i], err = microbatch(s, j, micro); err != nil {
					return nil, err
				}
			}
		}
		y, err := ls.apply(f.Name, 0, inside, x, sides, sums)
		if err != nil {
			return nil, err
		}
		ys = append(ys, y)
	}
	if micro < 1 {
		return nil, errors.New("no microbatches")
	}
	for i, s := range sums {
		if err := mean(ls.aux[i], s, micro); err != nil {
			return nil, err
		}
	}
	x := concat(0, ys)
	if inside < total {
		var err error
		if x, err = ls.apply(c.Sym("outside"), inside, total, x, ls.sides, ls.aux); err != nil {
			return nil, err
		}
	}
	return append([]*tensor{x}, ls.aux...), nil
}

// microbatch returns part j of n of x along its leading dimension.
func microbatch(x *tensor, j, n int) (*tensor, error) {
	if len(x.shape) == 0 || x.shape[0]%n != 0 {
		return nil, fmt.Errorf("%s does not split into %d microbatches", x, n)
	}
	size := x.shape[0] / n
	return x.part(0, j*size, size), nil
}

// mean sets out to sum / n.
func mean(out, sum *tensor, n int) error {
	by := newTensor(ir.I64, nil)
	by.i[0] = int64(n)
	return divide.each(nil, out, []*tensor{sum, by.converted(sum.elem)})
}

// scan repeats its region over the carries; each iteration reads one row of
// each further operand and writes one row of each further result.
func scan(e *exec) ([]*tensor, error) {
	n, trips := e.op.Int("carries"), e.op.Int("trip_count")
	carries, stacked := e.in[:n], make([]*tensor, 0, len(e.op.Results)-n)
	for i := n; i < len(e.op.Results); i++ {
		stacked = append(stacked, e.result(i))
	}
	for t := range trips {
		number := newTensor(ir.I32, nil)
		number.i[0] = int64(t)
		args := append([]*tensor{number}, carries...)
		for _, x := range e.in[n:] {
			args = append(args, x.row(t))
		}
		out, err := e.region(0, args)
		if err != nil {
			return nil, err
		}
		carries = out[:n]
		for i, y := range out[n:] {
			to := whole(stacked[i].shape)
			move(y.shape, stacked[i], lattice{t * to.step[0], to.step[1:]}, y, whole(y.shape))
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
