package eval

import (
	"strings"
	"testing"

	"ppc/ir"
)

var scalar = ir.Tensor(ir.I32)

// region returns a block with arguments of the given types; build returns what
// it ends with, by an op of kind end.
func region(b *ir.Builder, end ir.Kind, build func(b *ir.Builder, in values) values, args ...*ir.Type) *ir.Block {
	r := new(ir.Block)
	var in values
	for _, t := range args {
		in = append(in, b.Func.NewArg(r, t, ""))
	}
	inner := b.In(r)
	inner.Emit(end, build(inner, in), nil, nil, nil)
	return r
}

func controlCases() []opCase {
	branches := func(b *ir.Builder, n int) []*ir.Block {
		var rs []*ir.Block
		for i := range n {
			rs = append(rs, region(b, ir.Return, func(b *ir.Builder, _ values) values { return values{b.I32(10 + i)} }))
		}
		return rs
	}
	return []opCase{
		{"while", lits(ints(nil, 0), ints(nil, 1), ints(nil, 5)), func(b *ir.Builder, in values) values { // 2^5; the bound is captured
			cond := region(b, ir.Return, func(b *ir.Builder, x values) values { return values{b.Compare("LT", x[0], in[2])} }, scalar, scalar)
			do := region(b, ir.Return, func(b *ir.Builder, x values) values { return values{b.Add(x[0], b.I32(1)), b.Add(x[1], x[1])} }, scalar, scalar)
			return b.Emit(ir.While, in[:2], nil, []*ir.Block{cond, do}, nil).Results
		}, lits(ints(nil, 5), ints(nil, 32))},
		{"if", lits(ir.Ints64(ir.Tensor(ir.I1), 1)), func(b *ir.Builder, in values) values {
			return b.Emit(ir.If, in, nil, branches(b, 2), nil).Results
		}, lits(ints(nil, 10))},
		{"case", lits(ints(nil, 1), ints(nil, -1), ints(nil, 3)), func(b *ir.Builder, in values) values {
			var out values
			for _, i := range in {
				out = append(out, b.Emit(ir.Case, values{i}, nil, branches(b, 3), nil).Results...)
			}
			return out
		}, lits(ints(nil, 11), ints(nil, 12), ints(nil, 12))},
		{"tuple and get_tuple_element", lits(ints(nil, 1), ints(nil, 2)), func(b *ir.Builder, in values) values {
			x := b.Emit(ir.TupleOp, in, nil, nil, nil).Results
			return b.Emit(ir.GetTupleElement, x, attrs("index", ir.Int{Value: 1, Type: ir.I32}), nil, nil).Results
		}, lits(ints(nil, 2))},
		{"optimization_barrier and custom_call", lits(count(2)), func(b *ir.Builder, in values) values {
			x := b.Emit(ir.OptimizationBarrier, in, nil, nil, nil).Results
			return b.Emit(ir.CustomCall, x, attrs("call_target_name", ir.Str("Sharding")), nil, in2types(in)).Results
		}, lits(count(2))},
		{"partition_id and replica_id", nil, func(b *ir.Builder, in values) values {
			return values{b.Emit(ir.PartitionID, nil, nil, nil, nil).Result(), b.Emit(ir.ReplicaID, nil, nil, nil, nil).Result()}
		}, lits(ir.Ints64(ir.Tensor(ir.UI32), 0), ir.Ints64(ir.Tensor(ir.UI32), 0))},
	}
}

func in2types(vs values) []*ir.Type { return ir.Types(vs) }

func function(name string, build func(b *ir.Builder, in values) values, params ...*ir.Type) *ir.Func {
	f := program(build, params...).Funcs[0]
	f.Name, f.Private = name, true
	return f
}

func TestCall(t *testing.T) {
	double := function("double", func(b *ir.Builder, in values) values { return values{b.Add(in[0], in[0])} }, scalar)
	m := program(func(b *ir.Builder, in values) values { return b.Call(double, b.Call(double, in...)...) }, scalar)
	m.Funcs = append(m.Funcs, double)
	equal(t, evaluate(t, m, Options{}, ints(nil, 3))[0], ints(nil, 12))

	self := ir.NewFunc("main")
	x := self.NewArg(self.Body, scalar, "")
	self.Results = []ir.Result{{Type: scalar}}
	b := ir.NewBuilder(self)
	b.Return(b.Call(self, x)...)
	m = &ir.Module{Funcs: []*ir.Func{self}}
	if _, err := Run(m, self, lits(ints(nil, 3)), Options{}); err == nil {
		t.Error("endless recursion gives no error")
	}
}

func pipelineCases() []opCase {
	return []opCase{
		{"pp.scan", lits(ints(nil, 100), count(3, 2)), func(b *ir.Builder, in values) values {
			body := region(b, ir.PPYield, func(b *ir.Builder, x values) values { // carry + i + sum of the row, the row doubled
				sum := b.Add(b.Add(x[1], x[0]), b.Reduce(ir.Add, x[2], b.I32(0), 0))
				return values{sum, b.Add(x[2], x[2])}
			}, scalar, scalar, ir.Tensor(ir.I32, 2))
			return b.Emit(ir.PPScan, in, attrs("carries", ir.I64Attr(1), "trip_count", ir.I64Attr(3)), []*ir.Block{body}, nil).Results
		}, lits(ints(nil, 100+0+1+2+21), ints([]int{3, 2}, 2, 4, 6, 8, 10, 12))},
		{"pp.scan of nothing", lits(ints(nil, 1), ints([]int{0, 2})), func(b *ir.Builder, in values) values {
			body := region(b, ir.PPYield, func(b *ir.Builder, x values) values { return x[1:] }, scalar, scalar, ir.Tensor(ir.I32, 2))
			return b.Emit(ir.PPScan, in, attrs("carries", ir.I64Attr(1), "trip_count", ir.I64Attr(0)), []*ir.Block{body}, nil).Results
		}, lits(ints(nil, 1), ints([]int{0, 2}))},
		{"pp.rotate", lits(count(3, 1), ints([]int{3, 1}, 7, 8, 9)), func(b *ir.Builder, in values) values {
			one := func(shift int, edge string, operands ...*ir.Value) *ir.Value {
				return b.Emit(ir.PPRotate, operands, attrs("shift", ir.I64Attr(shift), "edge", ir.Str(edge)), nil, nil).Result()
			}
			return values{one(1, "wrap", in[0]), one(1, "zero", in[0]), one(1, "fill", in...), one(-1, "wrap", in[0]), one(-1, "zero", in[0]), one(-1, "fill", in...)}
		}, lits(ints([]int{3, 1}, 3, 1, 2), ints([]int{3, 1}, 0, 1, 2), ints([]int{3, 1}, 7, 1, 2),
			ints([]int{3, 1}, 2, 3, 1), ints([]int{3, 1}, 2, 3, 0), ints([]int{3, 1}, 2, 3, 9))},
		{"pp.checkpoint and pp.name", lits(ints(nil, 2)), func(b *ir.Builder, in values) values {
			body := region(b, ir.PPYield, func(b *ir.Builder, x values) values {
				y := b.Emit(ir.PPName, values{b.Mul(x[0], x[0])}, attrs("name", ir.Str("square")), nil, nil).Result()
				return values{b.Add(y, x[0])}
			}, scalar)
			return b.Emit(ir.PPCheckpoint, in, attrs("policy", ir.Dict{}), []*ir.Block{body}, nil).Results
		}, lits(ints(nil, 6))},
	}
}

// layer returns x * w + side and the sum of that, over a batch of the given size.
func layer(name string, batch int) *ir.Func {
	x := ir.Tensor(ir.F64, batch)
	return function(name, func(b *ir.Builder, in values) values {
		y := b.Add(b.Mul(in[0], b.Broadcast(in[2], x.Shape)), in[1])
		return values{y, b.Reduce(ir.Maximum, y, b.Splat(ir.Tensor(ir.F64), 0), 0)}
	}, x, x, ir.Tensor(ir.F64))
}

// A stack runs the layers on the full batch, a pipeline on each microbatch
// and, where layers remain, then on the full batch.
func TestStackAndPipeline(t *testing.T) {
	x, w := ir.Tensor(ir.F64, 4), ir.Tensor(ir.F64, 3)
	args := lits(floats(ir.F64, x.Shape, 1, 2, 3, 4), floats(ir.F64, x.Shape, 1, 0, 0, 1), floats(ir.F64, w.Shape, 2, 3, 10))
	full, micro := layer("full", 4), layer("micro", 2)
	build := func(k ir.Kind, config ir.Dict, f *ir.Func) *ir.Module {
		m := program(func(b *ir.Builder, in values) values {
			return b.Emit(k, in, attrs("layer", ir.Sym(f.Name), "layers", ir.I64Attr(3), "sides", ir.I64Attr(1), "config", config), nil, []*ir.Type{x, ir.Tensor(ir.F64)}).Results
		}, x, x, w)
		m.Funcs = append(m.Funcs, full, micro)
		return m
	}
	// (1, 2, 3, 4) -> (3, 4, 6, 9) -> (10, 12, 18, 28) -> (101, 120, 180, 281)
	want := floats(ir.F64, x.Shape, 101, 120, 180, 281)
	for _, c := range []struct {
		name string
		m    *ir.Module
		aux  float64
	}{
		{"stack", build(ir.PPStack, nil, full), 9 + 28 + 281},
		{"pipeline", build(ir.PPPipeline, ir.Dict(attrs("microbatches", ir.I64Attr(2), "layers_per_stage", ir.I64Attr(3))), micro), (4.0 + 9 + 12 + 28 + 120 + 281) / 2},
		{"partly pipelined", build(ir.PPPipeline, ir.Dict(attrs("microbatches", ir.I64Attr(2), "layers_per_stage", ir.I64Attr(2), "pipelined", ir.I64Attr(2), "outside", ir.Sym("full"))), micro), (4.0+9+12+28)/2 + 281},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := evaluate(t, c.m, Options{}, args...)
			equal(t, out[0], want)
			equal(t, out[1], floats(ir.F64, nil, c.aux))
		})
	}
	m := build(ir.PPPipeline, ir.Dict(attrs("microbatches", ir.I64Attr(3), "layers_per_stage", ir.I64Attr(3))), micro)
	if _, err := Run(m, m.Main(), args, Options{}); err == nil || !strings.Contains(err.Error(), "microbatches") {
		t.Errorf("3 microbatches of 4 rows give %v", err)
	}
}
