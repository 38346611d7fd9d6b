package runtime_test

import (
	"testing"

	"ppc/ir"
	"ppc/runtime"
)

// pairs is the source-target pairs of a permute as a dense list.
func pairs(ps ...[2]int) *ir.Literal {
	var flat []int
	for _, p := range ps {
		flat = append(flat, p[0], p[1])
	}
	return ir.Ints64(ir.Tensor(ir.I64, len(ps), 2), flat...)
}

// groups is replica groups of one size as a dense list.
func groups(gs ...[]int) *ir.Literal {
	var flat []int
	for _, g := range gs {
		flat = append(flat, g...)
	}
	return ir.Ints64(ir.Tensor(ir.I64, len(gs), len(gs[0])), flat...)
}

// loop appends a while with an i32 counter from 0 to n and the given carries.
func loop(b *ir.Builder, n int, carries []*ir.Value, body func(in *ir.Builder, i *ir.Value, args []*ir.Value) []*ir.Value) []*ir.Value {
	init := append([]*ir.Value{b.I32(0)}, carries...)
	cond, do := new(ir.Block), new(ir.Block)
	for _, v := range init {
		b.Func.NewArg(cond, v.Type, "")
		b.Func.NewArg(do, v.Type, "")
	}
	c, d := b.In(cond), b.In(do)
	c.Emit(ir.Return, []*ir.Value{c.Compare("LT", cond.Args[0], c.I32(n))}, nil, nil, nil)
	out := body(d, do.Args[0], do.Args[1:])
	d.Emit(ir.Return, append([]*ir.Value{d.Add(do.Args[0], d.I32(1))}, out...), nil, nil, nil)
	return b.Emit(ir.While, init, nil, []*ir.Block{cond, do}, nil).Results[1:]
}

// program makes a module for n devices whose main function has the given
// parameters and is filled by build.
func program(n int, params []*ir.Type, build func(b *ir.Builder, args []*ir.Value) []*ir.Value) *ir.Module {
	f := ir.NewFunc("main")
	for _, t := range params {
		f.NewArg(f.Body, t, "")
	}
	b := ir.NewBuilder(f)
	b.Return(build(b, f.Params())...)
	m := &ir.Module{Name: "test", Funcs: []*ir.Func{f}}
	m.Attrs.Set("mhlo.num_partitions", ir.Int{Value: n, Type: ir.I32})
	return m
}

func channel(id int) ir.NamedAttr {
	return ir.NamedAttr{Name: "channel_handle", Attr: ir.Channel{Handle: id, Type: 1}}
}

func permute(b *ir.Builder, id int, x *ir.Value, ps ...[2]int) *ir.Value {
	return b.Emit(ir.CollectivePermute, []*ir.Value{x}, ir.AttrsOf(channel(id), ir.NamedAttr{Name: "source_target_pairs", Attr: pairs(ps...)}), nil, nil).Result()
}

func gathered(b *ir.Builder, id int, x *ir.Value, dim int, gs ...[]int) *ir.Value {
	shape := append([]int(nil), x.Type.Shape...)
	shape[dim] *= len(gs[0])
	attrs := ir.AttrsOf(channel(id), ir.NamedAttr{Name: "replica_groups", Attr: groups(gs...)}, ir.NamedAttr{Name: "use_global_device_ids", Attr: ir.Unit{}},
		ir.NamedAttr{Name: "all_gather_dim", Attr: ir.I64Attr(dim)})
	return b.Emit(ir.AllGather, []*ir.Value{x}, attrs, nil, []*ir.Type{x.Type.WithShape(shape...)}).Result()
}

func reduced(b *ir.Builder, id int, k ir.Kind, x *ir.Value, gs ...[]int) *ir.Value {
	attrs := ir.AttrsOf(channel(id), ir.NamedAttr{Name: "replica_groups", Attr: groups(gs...)}, ir.NamedAttr{Name: "use_global_device_ids", Attr: ir.Unit{}})
	return b.Emit(ir.AllReduce, []*ir.Value{x}, attrs, []*ir.Block{b.Combiner(k, x.Type.Elem)}, nil).Result()
}

// load compiles m.
func load(t testing.TB, m *ir.Module) *runtime.Executable {
	t.Helper()
	exe, err := runtime.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// perDevice gives each of n devices one argument of type t, made by value.
func perDevice(n int, t *ir.Type, value func(d, i int) float64) [][]*ir.Literal {
	args := make([][]*ir.Literal, n)
	for d := range args {
		vs := make([]float64, t.NumElements())
		for i := range vs {
			vs[i] = value(d, i)
		}
		args[d] = []*ir.Literal{ir.Floats64(t, vs...)}
	}
	return args
}

func numbers(l *ir.Literal) []float64 {
	vs := make([]float64, l.Type.NumElements())
	for i := range vs {
		vs[i] = l.Float(i)
	}
	return vs
}

// ring is four devices, a loop with a permute, a contraction, a gather and a sum.
func ring() *ir.Module {
	all := []int{0, 1, 2, 3}
	return program(4, []*ir.Type{ir.Tensor(ir.F64, 2)}, func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		w := b.Const(ir.Floats64(ir.Tensor(ir.F64, 2, 2), 1, 2, 3, 4))
		y := loop(b, 4, args, func(in *ir.Builder, _ *ir.Value, args []*ir.Value) []*ir.Value {
			s := permute(in, 1, args[0], [2]int{0, 1}, [2]int{1, 2}, [2]int{2, 3}, [2]int{3, 0})
			return []*ir.Value{in.Add(s, s)}
		})[0]
		d := b.Dot(w, y, ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}})
		total := b.Reduce(ir.Add, d, b.Splat(ir.Tensor(ir.F64), 0), 0)
		return []*ir.Value{d, gathered(b, 2, d, 0, all), reduced(b, 3, ir.Add, total, all)}
	})
}

func TestRing(t *testing.T) {
	exe := load(t, ring())
	args := perDevice(4, ir.Tensor(ir.F64, 2), func(d, i int) float64 { return float64(10*d + i) })
	trace := new(runtime.Trace)
	results, err := exe.Run(t.Context(), args, runtime.WithTrace(trace))
	if err != nil {
		t.Fatal(err)
	}
	for d := range 4 {
		x0, x1 := 16*float64(10*d), 16*float64(10*d+1) // back home, doubled four times
		if got := numbers(results[d][0]); got[0] != x0+2*x1 || got[1] != 3*x0+4*x1 {
			t.Errorf("device %d: got %v, want %v", d, got, []float64{x0 + 2*x1, 3*x0 + 4*x1})
		}
		if got, want := numbers(results[0][1])[2*d], x0+2*x1; got != want {
			t.Errorf("all_gather: got %v for device %d, want %v", got, d, want)
		}
		if got, want := results[d][2].Float(0), 16.0*(4*60+6*64); got != want {
			t.Errorf("device %d: all_reduce is %v, want %v", d, got, want)
		}
	}
	if n := trace.Count(ir.CollectivePermute); n != 16 {
		t.Errorf("%d permutes, want 16", n)
	}
}

// To load a program takes no memory for its values, nor for the zeros that devices get
// which nobody sends to.
func TestLoadTakesNoMemory(t *testing.T) {
	m := program(2, []*ir.Type{ir.Tensor(ir.F32, 1<<33)}, func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return []*ir.Value{permute(b, 1, args[0], [2]int{0, 1})}
	})
	if _, err := runtime.Load(m); err != nil { // which 32 GiB of memory would fail
		t.Fatal(err)
	}
}
