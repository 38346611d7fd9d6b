package driver

import (
	"context"
	"fmt"
	"strings"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/facts"
	"ppc/passes"
)

// strayLayers says of each pipeline of m, a program as it was read, where
// microbatches go through other layers than those that come one after the
// other.
//
// It runs the pipeline's schedule and gathers on a layer that writes down whose
// weights it got: the activation is a register of layer numbers, which the
// layer shifts by one to append its own. What the model computes does not
// matter, so a weight that is wrong is found also where the numbers hide it.
func strayLayers(ctx context.Context, m *ir.Module) ([]string, error) {
	var found []string
	for _, op := range m.Main().Body.Ops {
		if op.Kind != ir.PPPipeline {
			continue
		}
		t := newTrail(m, op)
		if t == nil {
			continue
		}
		trails, err := t.run(ctx)
		if err != nil {
			return nil, err
		}
		if stray := t.stray(trails); stray != "" {
			found = append(found, stray)
		}
	}
	return found, nil
}

// A trail is a pipeline's schedule on layers that write down their numbers.
type trail struct {
	op     *ir.Op
	module *ir.Module
	config facts.Config
	layers int
}

// newTrail makes the program that runs the pipeline op of m on such layers, nil
// where op says too little of its schedule. Their weights are stored as the
// first of op's weights is that has to be gathered.
func newTrail(m *ir.Module, op *ir.Op) *trail {
	t := &trail{op: op, config: facts.ConfigOf(op).Alone()}
	if t.layers = t.config.Pipelined; t.layers < 1 || t.config.M < 1 || t.config.S < 1 {
		return nil
	}
	layer := ir.NewFunc("layer")
	layer.Private = true
	register := ir.Tensor(ir.F32, 1, t.layers)
	x := layer.NewArg(layer.Body, register, "trail")
	w := layer.NewArg(layer.Body, ir.Tensor(ir.F32), "number")
	if like := gatheredWeight(m, op); like != nil {
		w.Type = ir.Tensor(ir.F32, shardable(m.Meshes[0], like.Sharding)...)
		w.Sharding = like.Sharding
		w.Attrs = ir.AttrsOf(ir.NamedAttr{Name: ir.KeyGathered, Attr: like.Attrs.Get(ir.KeyGathered)})
	}
	b := ir.NewBuilder(layer)
	number := w
	for d := range w.Type.Rank() {
		number = b.SliceDim(number, d, 0, 1)
	}
	b.Return(b.Concat(1, b.SliceDim(x, 1, 1, t.layers), b.Reshape(number, 1, 1)))

	main := ir.NewFunc("main")
	in := main.NewArg(main.Body, ir.Tensor(ir.F32, t.config.M, t.layers), "trails")
	ws := main.NewArg(main.Body, w.Type.WithShape(append([]int{t.layers}, w.Type.Shape...)...), "numbers")
	if w.Sharding != nil {
		ws.Sharding = w.Sharding.Prepend()
	}
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "layer", Attr: ir.Sym("layer")}, ir.NamedAttr{Name: "layers", Attr: ir.I64Attr(t.layers)},
		ir.NamedAttr{Name: "sides", Attr: ir.I64Attr(0)}, ir.NamedAttr{Name: "config", Attr: t.config.Dict()})
	b = ir.NewBuilder(main)
	b.Return(b.At(op.Origin).Emit(ir.PPPipeline, []*ir.Value{in, ws}, attrs, nil, []*ir.Type{in.Type}).Result())
	t.module = &ir.Module{Name: "trails", Meshes: m.Meshes, Funcs: []*ir.Func{main, layer}}
	return t
}

// gatheredWeight is the first weight of op's layer that is stored sharded and
// all-gathered for use.
func gatheredWeight(m *ir.Module, op *ir.Op) *ir.Value {
	layer := m.Func(op.Sym("layer"))
	if layer == nil || len(m.Meshes) == 0 {
		return nil
	}
	for _, p := range layer.Params() {
		if g, ok := p.Attrs.Get(ir.KeyGathered).(*ir.Sharding); ok && p.Sharding != nil && !g.SameLayout(p.Sharding) {
			return p
		}
	}
	return nil
}

// shardable is the smallest shape whose dimensions the axes of s divide.
func shardable(mesh *ir.Mesh, s *ir.Sharding) []int {
	shape := make([]int, len(s.Dims))
	for d := range shape {
		shape[d] = mesh.RefsSize(s.Dims[d].Axes)
	}
	return shape
}

// run returns the layer numbers, from 1, that each microbatch has seen, row by row.
// Elements that must not be read are NaN.
func (t *trail) run(ctx context.Context) (*ir.Literal, error) {
	rep := moduleReproducer(t.module, "", "check", "ppc run --check %s")
	out, err := guard(ctx, "following microbatches through the layers", rep, func() ([]*ir.Literal, error) {
		if err := passBug(passes.Run(t.module, passes.Config{Context: ctx, After: "allgather-prefetch"}), ""); err != nil {
			return nil, err
		}
		var args []*ir.Literal
		for _, p := range t.module.Main().Params() {
			vs := make([]float64, p.Type.NumElements())
			if len(args) > 0 {
				for i := range vs {
					vs[i] = float64(1 + i/(len(vs)/(t.config.S*t.config.R*t.config.L)))
				}
			}
			args = append(args, ir.Floats64(p.Type, vs...))
		}
		return eval.Run(t.module, t.module.Main(), args, eval.Options{Poison: true, Context: ctx})
	})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// stray says which stages had other layers' weights in which repeats, and how
// often; "" for nowhere.
func (t *trail) stray(trails *ir.Literal) string {
	rows := trails.Type.Shape[0]
	count, said := 0, make(map[string]bool)
	var places []string
	for at := range t.layers {
		for row := range rows {
			got := trails.Float(row*t.layers + at)
			if got == float64(1+at) {
				continue
			}
			count++
			text := t.place(at) + " has nobody's weights"
			if got >= 1 && got <= float64(t.layers) {
				text = fmt.Sprintf("%s has the weights of %s", t.place(at), t.place(int(got)-1))
			}
			if !said[text] {
				said[text] = true
				places = append(places, text)
			}
		}
	}
	if count == 0 {
		return ""
	}
	const most = 8
	if n := len(places); n > most {
		places = append(places[:most], fmt.Sprintf("and %d more", n-most))
	}
	cause := ""
	if compat := t.config.Compat; compat != "" {
		cause = fmt.Sprintf("; that is what compat = %s asks for", compat)
	}
	at := ""
	if o := t.op.Origin; o != nil && o.Pos.Line > 0 {
		at = o.Pos.String() + ": "
	}
	return fmt.Sprintf("%spipeline: wrong weights in %d of %d passes of a microbatch through a layer: %s%s", at, count, rows*t.layers, strings.Join(places, "; "), cause)
}

// place is where layer number n is.
func (t *trail) place(n int) string {
	L := max(t.config.L, 1)
	text := fmt.Sprintf("stage %d in repeat %d", n/L%t.config.S, n/L/t.config.S)
	if L > 1 {
		text += fmt.Sprintf(", layer %d", n%L)
	}
	return text
}
