package lang

import (
	"math"
	"slices"

	"ppc/ir"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// A randomState is what the random numbers of a function are keyed by: the numbers
// of the rows of its microbatch in the full batch, the number of its layer and that
// of the step, so that they depend neither on the schedule nor on the mesh nor on
// rematerialisation.
type randomState struct {
	rows  *value.Tensor // over the batch axis; nil in a model, whose rows are all there
	place *ir.Value     // the layer's number and the step's; nil in a model
	sites int           // calls so far
}

// layerPlace makes the numbers of layer and step the last parameter of l.
func (e *elab) layerPlace(l *layerFunc) {
	args := l.fn.Body.Args
	i := slices.Index(args, e.random.place)
	args = append(slices.Delete(args, i, i+1), e.random.place)
	for k, a := range args {
		a.Index = k
	}
	l.fn.Body.Args = args
}

// step is the number of the step, from 0: while training a parameter of main.
func (e *elab) step() *ir.Value {
	if !e.p.Training() {
		return e.b.I32(0)
	}
	if e.model.step == nil {
		v := e.b.Func.NewArg(e.b.Func.Body, ir.Tensor(ir.I32), "step")
		v.Attrs = ir.AttrsOf(ir.NamedAttr{Name: ir.KeyName, Attr: ir.Str("pp.step")}, ir.NamedAttr{Name: ir.KeyKind, Attr: ir.Str("step")})
		e.model.step = v
	}
	return e.model.step
}

// places are layer and step of each of n layers: [n, 2].
func (e *elab) places(n int) *ir.Value {
	layer := e.b.Reshape(e.b.Iota(ir.Tensor(ir.I32, n), 0), n, 1)
	step := e.b.Broadcast(e.step(), []int{n, 1})
	return e.b.Concat(1, layer, step)
}

// words are two random 32-bit words for each element of a tensor over axes:
// threefry2x32 of (row, place in the row), keyed by seed, call, layer and step.
func (e *elab) words(axes []value.Axis) (a, b *value.Tensor) {
	if e.random == nil {
		e.random = new(randomState)
	}
	r := e.random
	r.sites++
	u := func(t *value.Tensor) *value.Tensor { return e.cast(t, ir.UI32) }
	scalar := ir.Tensor(ir.UI32)
	var layer, step *ir.Value
	if r.place != nil {
		layer, step = u(&value.Tensor{V: e.b.Reshape(e.b.SliceDim(r.place, 0, 0, 1))}).V, u(&value.Tensor{V: e.b.Reshape(e.b.SliceDim(r.place, 0, 1, 2))}).V
	} else if layer, step = e.b.Splat(scalar, math.MaxUint32), e.b.Splat(scalar, 0); e.model != nil {
		step = u(&value.Tensor{V: e.step()}).V
	}
	seed, site := e.b.Splat(scalar, float64(uint32(e.p.Seed()))), e.b.Splat(scalar, float64(r.sites))
	key0, key1 := e.threefry(seed, site, layer, step)
	row, place := e.counters(axes)
	broadcast := func(v *ir.Value) *ir.Value { return e.align(&value.Tensor{V: v}, axes).V }
	x, y := e.threefry(broadcast(key0), broadcast(key1), row, place)
	return &value.Tensor{V: x, Axes: axes}, &value.Tensor{V: y, Axes: axes}
}

// counters are the number of each element's row and its place in the row.
func (e *elab) counters(axes []value.Axis) (row, place *ir.Value) {
	shape := value.ShapeOf(axes)
	t := ir.Tensor(ir.UI32, shape...)
	row, place = e.b.Splat(t, 0), e.b.Splat(t, 0)
	stride := 1
	for d := len(axes) - 1; d >= 0; d-- {
		if axes[d].Name == e.act.Batch {
			row = e.b.Iota(t, d)
			if e.random.rows != nil {
				row = e.align(e.cast(e.random.rows, ir.UI32), axes).V
			}
			continue
		}
		place = e.b.Add(place, e.b.Mul(e.b.Iota(t, d), e.b.Splat(t, float64(stride))))
		stride *= axes[d].Size
	}
	return row, place
}

// threefry is the block cipher threefry2x32 with 20 rounds (Salmon and others,
// "Parallel random numbers: as easy as 1, 2, 3").
func (e *elab) threefry(k0, k1, x0, x1 *ir.Value) (*ir.Value, *ir.Value) {
	b, t := e.b, x0.Type
	rotations := [2][4]int{{13, 15, 26, 6}, {17, 29, 16, 24}}
	ks := [3]*ir.Value{k0, k1, b.Binary(ir.Xor, b.Binary(ir.Xor, k0, k1), b.Splat(t, 0x1BD11BDA))}
	x0, x1 = b.Add(x0, k0), b.Add(x1, k1)
	for i := range 5 {
		for _, r := range rotations[i%2] {
			x0 = b.Add(x0, x1)
			left := b.Binary(ir.ShiftLeft, x1, b.Splat(t, float64(r)))
			right := b.Binary(ir.ShiftRightLogical, x1, b.Splat(t, float64(32-r)))
			x1 = b.Binary(ir.Xor, x0, b.Binary(ir.Or, left, right))
		}
		x0 = b.Add(x0, ks[(i+1)%3])
		x1 = b.Add(b.Add(x1, ks[(i+2)%3]), b.Splat(t, float64(i+1)))
	}
	return x0, x1
}

// unit makes words numbers between 0 and 1, both excluded: 23 bits and a half,
// which every float type from f32 on holds exactly.
func (e *elab) unit(w *value.Tensor, elem ir.DType) *value.Tensor {
	high := e.b.Convert(e.b.Binary(ir.ShiftRightLogical, w.V, e.b.Splat(w.V.Type, 9)), elem)
	half := e.b.Add(high, e.b.Splat(high.Type, 0.5))
	return w.With(e.b.Mul(half, e.b.Splat(high.Type, math.Exp2(-23))))
}

func randomNormal(e *elab, c *builtinCall) value.Value {
	axes, ok := e.declared(c, "axes")
	if !ok {
		return value.Poison{}
	}
	elem := e.p.Elem(ir.F32)
	if c.has("to") {
		elem = c.elem("to")
	}
	if !elem.IsFloat() {
		return e.fail(c.place("to"), "", syntax.ErrWant, "random_normal's to", "a float", elem.String())
	}
	if e.inBlocks {
		return e.fail(c.Span, "make them before and pass them", syntax.ErrBlocksRandom, c.name)
	}
	return e.cast(e.normal(axes, wide(elem)), elem)
}

// normal is Box and Muller's transform of two uniform numbers.
func (e *elab) normal(axes []value.Axis, elem ir.DType) *value.Tensor {
	a, b := e.words(axes)
	u, v := e.unit(a, elem).V, e.unit(b, elem).V
	radius := e.b.Unary(ir.Sqrt, e.b.Mul(e.b.Unary(ir.Log, u), e.b.Splat(u.Type, -2)))
	return &value.Tensor{V: e.b.Mul(radius, e.b.Unary(ir.Cosine, e.b.Mul(v, e.b.Splat(u.Type, 2*math.Pi)))), Axes: axes}
}

func dropout(e *elab, c *builtinCall) value.Value {
	t, rate := c.tensor("x"), c.number("rate", 0)
	if !t.Elem().IsFloat() {
		return e.fail(c.Span, "cast(x, f32)", syntax.ErrFloat, c.name, t)
	}
	if rate < 0 || rate >= 1 {
		return e.fail(c.place("rate"), "", syntax.ErrRate, value.Number(rate))
	}
	if rate == 0 || !e.p.Training() {
		return t
	}
	if e.inBlocks {
		return e.fail(c.Span, "call it on the result of blocks", syntax.ErrBlocksRandom, c.name)
	}
	w, _ := e.words(t.Axes)
	u := e.b.Binary(ir.ShiftRightLogical, w.V, e.b.Splat(w.V.Type, 9)) // unit's, in integers
	keep := e.b.Compare("GE", u, e.b.Splat(u.Type, math.Ceil(rate*(1<<23)-0.5)))
	scaled := e.b.Mul(t.V, e.b.Splat(t.V.Type, 1/(1-rate)))
	return t.With(e.b.Select(keep, scaled, e.b.Splat(t.V.Type, 0)))
}
