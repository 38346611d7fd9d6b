package passes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"ppc/ir"
	"ppc/ir/facts"
)

// A model describes a small pipelined program for tests: layers of
// tanh(x·w1 + side)·w2 with an auxiliary scalar, the mean of each layer's
// squares. w1 and w2 are stored over fsdp and split over tensor.
// The input and both products have checkpoint names.
type model struct {
	S, M, R, L, D int
	rest          int // layers after the pipeline
	b, e, h       int // rows of a microbatch, width, hidden width
	data          int
	fsdp          int
	tensor        int
	gather        string
	prefetch      string // of gather = per_repeat
	rotate        string
	mode          string         // "explicit", or "" for auto
	remat         []ir.NamedAttr // more of the configuration
}

func (c model) layers() int { return c.S*c.R*c.L + c.rest }

func (c model) String() string {
	how := strings.TrimSuffix(c.gather+" "+c.prefetch, " ")
	return strings.TrimSpace(fmt.Sprintf("S%d M%d R%d L%d D%d +%d data%d fsdp%d tensor%d %s %s %s", c.S, c.M, c.R, c.L, c.D, c.rest, c.data, c.fsdp, c.tensor, how, c.rotate, c.mode))
}

// axes are those of the named mesh axes that the mesh has with more than one device.
func (c model) axes(names ...string) []ir.AxisRef {
	size := map[string]int{"stage": c.S, "data": c.data, "fsdp": c.fsdp, "tensor": c.tensor}
	var axes []ir.AxisRef
	for _, n := range names {
		if size[n] > 1 {
			axes = append(axes, ir.Ax(n))
		}
	}
	return axes
}

// layer is the layer function for rows rows.
func (c model) layer(name string, rows int, axes []ir.AxisRef) *ir.Func {
	f := ir.NewFunc(name)
	f.Private = true
	const elem = ir.F64
	x := f.NewArg(f.Body, ir.Tensor(elem, rows, c.e), "x")
	x.Sharding = ir.NewSharding("mesh", axes, nil)
	side := f.NewArg(f.Body, ir.Tensor(ir.I32, rows), "pos")
	side.Sharding = ir.NewSharding("mesh", axes)
	fsdp, tensor := c.axes("fsdp"), c.axes("tensor")
	w1 := c.weight(f, "w1", c.e, c.h, ir.NewSharding("mesh", fsdp, tensor))
	w2 := c.weight(f, "w2", c.h, c.e, ir.NewSharding("mesh", tensor, fsdp))
	b := ir.NewBuilder(f)
	checkpoint := func(v *ir.Value, name string) *ir.Value {
		return b.Emit(ir.PPName, []*ir.Value{v}, ir.AttrsOf(facts.Named("name", ir.Str(name))), nil, nil).Result().Named(v.Name)
	}
	x = checkpoint(x, "decoder_layer_input")
	dot := ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}
	y := checkpoint(b.Dot(x, w1, dot), "mlpwi")
	pos := b.Broadcast(b.Convert(side, elem), y.Type.Shape, 0)
	y = b.Unary(ir.Tanh, b.Add(y, b.Mul(pos, b.Splat(y.Type, 0.01)))).Named("hidden")
	y = b.Constrain(y, ir.NewSharding("mesh", axes, tensor))
	y = b.Dot(y, w2, dot).Named("y")
	if c.mode == "explicit" { // the sum over h, which is sharded along tensor, needs a sharding
		y = b.Constrain(y, ir.NewSharding("mesh", axes, nil))
	}
	y = checkpoint(y, "mlpwo")
	sq := b.Reduce(ir.Add, b.Mul(y, y), b.Splat(ir.Tensor(elem), 0), 0, 1)
	aux := b.Div(sq, b.Splat(ir.Tensor(elem), float64(rows*c.e)))
	b.Return(y, aux)
	return f
}

// weight is a layer's parameter of the given sizes and sharding.
func (c model) weight(f *ir.Func, name string, rows, cols int, s *ir.Sharding) *ir.Value {
	w := f.NewArg(f.Body, ir.Tensor(ir.F64, rows, cols), name)
	w.Sharding = s
	w.Attrs = ir.AttrsOf(facts.Named("pp.name", ir.Str(name)))
	if c.fsdp > 1 {
		w.Attrs.Set("pp.gathered", s.Without("fsdp"))
	}
	return w
}

// module is the typed form.
func (c model) module() *ir.Module {
	mesh := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "stage", Size: c.S}, {Name: "data", Size: c.data}, {Name: "fsdp", Size: c.fsdp}, {Name: "tensor", Size: c.tensor}}}
	m := &ir.Module{Name: "model", Meshes: []*ir.Mesh{mesh}}
	if c.mode != "" {
		m.Attrs.Set("pp.mode", ir.Str(c.mode))
	}
	outer, inner := c.axes("stage", "data", "fsdp"), c.axes("data", "fsdp")
	f := ir.NewFunc("main")
	B := c.M * c.b
	x := f.NewArg(f.Body, ir.Tensor(ir.F64, B, c.e), "x")
	x.Sharding = ir.NewSharding("mesh", outer, nil)
	x.Attrs = ir.AttrsOf(facts.Named("pp.name", ir.Str("x")), facts.Named("pp.kind", ir.Str("input")))
	pos := f.NewArg(f.Body, ir.Tensor(ir.I32, B), "pos")
	pos.Sharding = ir.NewSharding("mesh", outer)
	pos.Attrs = ir.AttrsOf(facts.Named("pp.name", ir.Str("pos")), facts.Named("pp.kind", ir.Str("input")))
	operands := []*ir.Value{x, pos}
	layer := c.layer("layer", c.b, inner)
	for _, p := range layer.Params()[2:] {
		w := f.NewArg(f.Body, p.Type.WithShape(append([]int{c.layers()}, p.Type.Shape...)...), p.Name)
		w.Sharding = p.Sharding.Prepend()
		w.Attrs = ir.AttrsOf(facts.Named("pp.name", ir.Str("layer."+p.Name)), facts.Named("pp.kind", ir.Str("param")), facts.Named("pp.layers", ir.I64Attr(c.layers())))
		operands = append(operands, w)
	}
	b := ir.NewBuilder(f)
	var config ir.Attrs
	for name, v := range map[string]int{"stages": c.S, "microbatches": c.M, "repeats": c.R, "layers_per_stage": c.L, "delay": c.D, "pipelined": c.S * c.R * c.L} {
		config.Set(name, ir.I64Attr(v))
	}
	config.Set("gather", ir.Str(c.gather))
	config.Set("prefetch", ir.Str(c.prefetch))
	config.Set("rotate", ir.Str(c.rotate))
	config.Set("checkpoint", ir.Str("iteration"))
	config.Set("outside", ir.Sym("layer_outside"))
	for _, a := range c.remat {
		config.Set(a.Name, a.Attr)
	}
	attrs := ir.AttrsOf(facts.Named("layer", ir.Sym("layer")), facts.Named("layers", ir.I64Attr(c.layers())), facts.Named("sides", ir.I64Attr(1)), facts.Named("config", ir.Dict(config)))
	op := b.Emit(ir.PPPipeline, operands, attrs, nil, []*ir.Type{x.Type, ir.Tensor(ir.F64)})
	op.Results[0].Sharding = x.Sharding
	b.Return(op.Results[0].Named("y"), op.Results[1].Named("aux"))
	f.Results[0].Attrs = ir.AttrsOf(facts.Named("pp.name", ir.Str("y")))
	f.Results[1].Attrs = ir.AttrsOf(facts.Named("pp.name", ir.Str("aux")))
	m.Funcs = []*ir.Func{f, layer, c.layer("layer_outside", B, outer)}
	return m
}

// args are random arguments of the typed form's main.
func (c model) args(m *ir.Module) []*ir.Literal {
	r := rand.New(rand.NewPCG(1, 2))
	var out []*ir.Literal
	for _, p := range m.Main().Params() {
		vs := make([]float64, p.Type.NumElements())
		for i := range vs {
			switch {
			case p.Type.Elem.IsInt():
				vs[i] = float64(r.IntN(8))
			case p.Attrs.Str("pp.kind") == "param": // of a size that dozens of layers do not amplify rounding
				vs[i] = r.NormFloat64() / math.Sqrt(float64(p.Type.Shape[1]))
			default:
				vs[i] = r.NormFloat64()
			}
		}
		out = append(out, ir.Floats64(p.Type, vs...))
	}
	return out
}
