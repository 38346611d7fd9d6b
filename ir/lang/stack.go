package lang

import (
	"slices"

	"ppc/ir"
	"ppc/ir/lang/config"
	"ppc/ir/lang/value"
)

// A slab is so many layers of a stack that are consecutive, with the operands that
// hold their weights and what their random numbers are keyed by.
type slab struct {
	layers  int // applications of the function
	weights func(w weight) *ir.Value
	places  func() *ir.Value
}

// slab is all layers of s.
func (e *elab) slab(s *stackCall) slab {
	return slab{s.layers, func(w weight) *ir.Value { return e.parameter(s.at, w, s.name+"."+w.under+w.name, s.layers) },
		func() *ir.Value { return e.places(s.layers) }}
}

// stack applies a layer to the full batch, layer after layer.
func (e *elab) stack(s *stackCall, ops []*value.Tensor) value.Value {
	l := e.layerFor(s.decl, e.batchOf(s).Size, []string{"stage"}, s.known)
	if l.bad {
		return value.Poison{}
	}
	return e.stackOf(l, ops, e.slab(s))
}

// batchOf is the axis of the examples of a layer, with its full size.
func (e *elab) batchOf(s *stackCall) value.Axis {
	_, axes, _ := e.typ(s.decl.Params[0].Typ)
	return axes[0]
}

// stackOf applies l to the full batch once for each layer of the slab.
func (e *elab) stackOf(l *layerFunc, ops []*value.Tensor, of slab) value.Value {
	e.p.Use.Stacks = append(e.p.Use.Stacks, of.layers)
	e.p.Use.Seen(l.fn, l.elems())
	return e.stackResults(ir.PPStack, l, e.operands(l, ops, l, of), of.layers, e.p.StackAttr())
}

func (l *layerFunc) numSides() int {
	if l.rows == rowNumbers {
		return len(l.sides) - l.carried + 1
	}
	return len(l.sides) - l.carried
}

// pipeline applies a layer by the schedule of the pipeline block.
func (e *elab) pipeline(s *stackCall, ops []*value.Tensor) value.Value {
	batch, rows := e.inside(s)
	sched, ok := e.schedule(s.at, s.layers, batch, rows)
	if !ok {
		return value.Poison{}
	}
	l := e.microbatchLayer(s, sched.Microbatches, func(n int) *layerFunc { return e.layerFor(s.decl, n, nil, s.known) })
	if l.bad {
		return value.Poison{}
	}
	outside, sidesOf := "", l
	if sched.Pipelined < s.layers {
		fullBatch := e.layerFor(s.decl, batch.Size, []string{"stage"}, s.known)
		if fullBatch.bad {
			return value.Poison{}
		}
		outside, sidesOf = fullBatch.fn.Name, fullBatch
		e.p.Use.Stacks = append(e.p.Use.Stacks, s.layers-sched.Pipelined)
	}
	return e.pipelineOf(l, ops, sidesOf, e.slab(s), sched, outside)
}

// inside is the axis of the examples of a layer, and how a microbatch is sharded
// along it.
func (e *elab) inside(s *stackCall) (value.Axis, config.DimRule) {
	_, want, _ := e.typ(s.decl.Params[0].Typ)
	inside := &config.Layout{P: e.p.Program, Rules: e.p.Rules["activations"], Batch: want[0].Name}
	return want[0], inside.Apply(value.NamesOf(want))[0]
}

// pipelineOf applies l by a schedule to the layers of the slab, and to those that
// it leaves the function outside, whose side inputs are those of sidesOf.
func (e *elab) pipelineOf(l *layerFunc, ops []*value.Tensor, sidesOf *layerFunc, of slab, sched *config.Schedule, outside string) value.Value {
	e.p.checkRows(l, sched.Microbatches)
	e.p.Use.Schedules = append(e.p.Use.Schedules, sched)
	e.p.Use.Seen(l.fn, l.elems())
	return e.stackResults(ir.PPPipeline, l, e.operands(l, ops, sidesOf, of), of.layers, sched.Attr(e.p.Program, outside))
}

// operands are the activations, the side inputs, and the stacked weights, which
// become parameters of main. A side input that has no batch axis is shared: it
// gets the batch of shared, the function whose batch is the largest.
func (e *elab) operands(l *layerFunc, ops []*value.Tensor, shared *layerFunc, of slab) []*ir.Value {
	_, want, _ := e.typ(l.decl.Params[0].Typ)
	values := []*ir.Value{e.constrained(e.align(ops[0], want)).V}
	for i, sd := range l.sides {
		t := ops[i+1]
		axes := slices.Clone(sd.axes)
		for k := range axes {
			if axes[k].Name == l.batch.Name {
				if axes[k].Size = shared.batch.Size; i < l.carried {
					axes[k].Size = want[0].Size
				}
				if d := t.Axis(l.batch.Name); d >= 0 {
					axes[k].Size = t.Axes[d].Size
				}
			}
		}
		if t = e.align(t, axes); i < l.carried {
			t = e.constrained(t)
		}
		values = append(values, t.V)
	}
	if l.rows == rowNumbers {
		values = append(values, e.b.Iota(ir.Tensor(ir.I32, want[0].Size), 0))
	}
	for _, w := range l.weights {
		values = append(values, of.weights(w))
	}
	if l.rows == rowNumbers {
		values = append(values, of.places())
	}
	return values
}

// stackResults emits the op that applies l to values, and returns what it returns.
func (e *elab) stackResults(kind ir.Kind, l *layerFunc, values []*ir.Value, layers int, settings ir.Dict) value.Value {
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "layer", Attr: ir.Sym(l.fn.Name)}, ir.NamedAttr{Name: "layers", Attr: ir.I64Attr(layers)},
		ir.NamedAttr{Name: "sides", Attr: ir.I64Attr(l.numSides())}, ir.NamedAttr{Name: "config", Attr: settings})
	acts := l.numActs()
	if acts > 1 {
		attrs.Set("activations", ir.I64Attr(acts))
	}
	types := ir.TypesOf(values[:acts])
	for _, r := range l.fn.Results[acts:] {
		types = append(types, r.Type)
	}
	rs := e.b.Emit(kind, values, attrs, nil, types).Results
	var out value.Tuple
	for i, r := range rs {
		if i >= acts {
			out = append(out, &value.Tensor{V: r})
			continue
		}
		q := l.decl.Params[0]
		if i > 0 {
			q = l.sides[i-1].param
		}
		_, axes, _ := e.typ(q.Typ)
		out = append(out, e.constrained(&value.Tensor{V: r, Axes: axes}))
	}
	if len(out) == 1 {
		return out[0]
	}
	return out
}
