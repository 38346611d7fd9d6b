package passes

import (
	"fmt"
	"math/rand/v2"

	"ppc/ir"
)

// A model describes a small pipelined program for tests: layers of
// tanh(x·w + side) with an auxiliary scalar, mean(x·x) of each layer.
type model struct {
	S, M, R, L, D int
	rest          int // layers after the pipeline
	b, e          int // rows of a microbatch, width
	fsdp, data    int
	gather        string
	rotate        string
}

func (c model) layers() int { return c.S*c.R*c.L + c.rest }

func (c model) String() string {
	return fmt.Sprintf("S%d M%d R%d L%d D%d +%d %s %s fsdp%d data%d", c.S, c.M, c.R, c.L, c.D, c.rest, c.gather, c.rotate, c.fsdp, c.data)
}

func (c model) batchAxes() []ir.AxisRef {
	var axes []ir.AxisRef
	if c.data > 1 {
		axes = append(axes, ir.Ax("data"))
	}
	if c.fsdp > 1 {
		axes = append(axes, ir.Ax("fsdp"))
	}
	return axes
}

func (c model) weightAxes() []ir.AxisRef {
	if c.fsdp > 1 {
		return ir.Axs("fsdp")
	}
	return nil
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
	w := f.NewArg(f.Body, ir.Tensor(elem, c.e, c.e), "w")
	w.Sharding = ir.NewSharding("mesh", c.weightAxes(), nil)
	w.Attrs = ir.AttrsOf(named("pp.name", ir.Str("w")), named("pp.gathered", ir.Replicated("mesh", 2)))
	b := ir.NewBuilder(f)
	y := b.Dot(x, w, ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}})
	pos := b.Broadcast(b.Convert(side, elem), y.Type.Shape, 0)
	y = b.Unary(ir.Tanh, b.Add(y, b.Mul(pos, b.Splat(y.Type, 0.01)))).Named("y")
	sq := b.Reduce(ir.Add, b.Mul(y, y), b.Splat(ir.Tensor(elem), 0), 0, 1)
	aux := b.Div(sq, b.Splat(ir.Tensor(elem), float64(rows*c.e)))
	b.Return(y, aux)
	return f
}

// module is the typed form.
func (c model) module() *ir.Module {
	mesh := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "stage", Size: c.S}, {Name: "data", Size: c.data}, {Name: "fsdp", Size: c.fsdp}}}
	m := &ir.Module{Name: "model", Meshes: []*ir.Mesh{mesh}}
	outer := append(ir.Axs("stage"), c.batchAxes()...)
	if c.S == 1 {
		outer = c.batchAxes()
	}
	f := ir.NewFunc("main")
	B := c.M * c.b
	x := f.NewArg(f.Body, ir.Tensor(ir.F64, B, c.e), "x")
	x.Sharding = ir.NewSharding("mesh", outer, nil)
	x.Attrs = ir.AttrsOf(named("pp.name", ir.Str("x")), named("pp.kind", ir.Str("input")))
	pos := f.NewArg(f.Body, ir.Tensor(ir.I32, B), "pos")
	pos.Sharding = ir.NewSharding("mesh", outer)
	pos.Attrs = ir.AttrsOf(named("pp.name", ir.Str("pos")), named("pp.kind", ir.Str("input")))
	w := f.NewArg(f.Body, ir.Tensor(ir.F64, c.layers(), c.e, c.e), "w")
	w.Sharding = ir.NewSharding("mesh", nil, c.weightAxes(), nil)
	w.Attrs = ir.AttrsOf(named("pp.name", ir.Str("layer.w")), named("pp.kind", ir.Str("param")), named("pp.layers", ir.I64Attr(c.layers())))
	b := ir.NewBuilder(f)
	var config ir.Attrs
	for name, v := range map[string]int{"stages": c.S, "microbatches": c.M, "repeats": c.R, "layers_per_stage": c.L, "delay": c.D, "pipelined": c.S * c.R * c.L} {
		config.Set(name, ir.I64Attr(v))
	}
	config.Set("gather", ir.Str(c.gather))
	config.Set("rotate", ir.Str(c.rotate))
	config.Set("checkpoint", ir.Str("iteration"))
	config.Set("outside", ir.Sym("layer_outside"))
	attrs := ir.AttrsOf(named("layer", ir.Sym("layer")), named("layers", ir.I64Attr(c.layers())), named("sides", ir.I64Attr(1)), named("config", ir.Dict(config)))
	op := b.Emit(ir.PPPipeline, []*ir.Value{x, pos, w}, attrs, nil, []*ir.Type{x.Type, ir.Tensor(ir.F64)})
	op.Results[0].Sharding = x.Sharding
	b.Return(op.Results[0].Named("y"), op.Results[1].Named("aux"))
	f.Results[0].Attrs = ir.AttrsOf(named("pp.name", ir.Str("y")))
	f.Results[1].Attrs = ir.AttrsOf(named("pp.name", ir.Str("aux")))
	m.Funcs = []*ir.Func{f, c.layer("layer", c.b, c.batchAxes()), c.layer("layer_outside", B, outer)}
	return m
}

// args are random arguments of the typed form's main.
func (c model) args(m *ir.Module) []*ir.Literal {
	r := rand.New(rand.NewPCG(1, 2))
	var out []*ir.Literal
	for _, p := range m.Main().Params() {
		vs := make([]float64, p.Type.NumElements())
		for i := range vs {
			if vs[i] = r.NormFloat64(); p.Type.Elem.IsInt() {
				vs[i] = float64(r.IntN(8))
			}
		}
		out = append(out, ir.Floats64(p.Type, vs...))
	}
	return out
}
