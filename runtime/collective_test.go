package runtime_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/runtime"
)

// collective is a program of n devices with one op, on a parameter of the
// element type.
func collective(n int, shape []int, build func(b *ir.Builder, x *ir.Value) values) func(e ir.DType) *ir.Module {
	return func(e ir.DType) *ir.Module {
		return program(n, []*ir.Type{ir.Tensor(e, shape...)}, func(b *ir.Builder, in []*ir.Value) []*ir.Value { return build(b, in[0]) })
	}
}

// onMesh gives m the mesh of the axes a of size 2 and b of size 3.
func onMesh(f func(e ir.DType) *ir.Module, ids []int) func(e ir.DType) *ir.Module {
	return func(e ir.DType) *ir.Module {
		m := f(e)
		m.Meshes = []*ir.Mesh{{Name: "mesh", Axes: []ir.MeshAxis{{Name: "a", Size: 2}, {Name: "b", Size: 3}}, DeviceIDs: ids}}
		return m
	}
}

// asReplicas makes the devices of m replicas.
func asReplicas(f func(e ir.DType) *ir.Module) func(e ir.DType) *ir.Module {
	return func(e ir.DType) *ir.Module {
		m := f(e)
		m.Attrs.Set("mhlo.num_replicas", ir.Int{Value: m.Attrs.Int("mhlo.num_partitions"), Type: ir.I32})
		m.Attrs.Delete("mhlo.num_partitions")
		return m
	}
}

// op appends a collective on x with the given attributes and result type.
func op(b *ir.Builder, k ir.Kind, x *ir.Value, t *ir.Type, regions []*ir.Block, as ...ir.NamedAttr) values {
	return b.Emit(k, values{x}, ir.AttrsOf(as...), regions, []*ir.Type{t}).Results
}

var global = attr("use_global_device_ids", ir.Unit{})

func meshAxes(names ...string) ir.NamedAttr {
	return attr("replica_groups", ir.MeshAxes{Mesh: "mesh", Axes: ir.Axs(names...)})
}

var shuffledIDs = []int{3, 1, 4, 0, 5, 2}

func broadcastTo(b *ir.Builder, x *ir.Value) values {
	return op(b, ir.CollectiveBroadcast, x, x.Type, nil, channel(1), attr("replica_groups", groups([]int{2, 0}, []int{3, 4})))
}

// sumByRegion combines x + y*1: a region of more than one op.
func sumByRegion(b *ir.Builder, e ir.DType) *ir.Block {
	r := new(ir.Block)
	x, y := b.Func.NewArg(r, ir.Tensor(e), ""), b.Func.NewArg(r, ir.Tensor(e), "")
	in := b.In(r)
	in.Emit(ir.Return, values{in.Add(x, in.Mul(y, in.Splat(y.Type, 1)))}, nil, nil, nil)
	return r
}

var collectiveCases = map[string]func(e ir.DType) *ir.Module{
	"collective_permute": collective(4, []int{3}, func(b *ir.Builder, x *ir.Value) values {
		return values{permute(b, 1, x, [2]int{0, 1}, [2]int{1, 3}, [2]int{2, 2}), x}
	}),
	"collective_permute of replicas": asReplicas(collective(4, []int{3}, func(b *ir.Builder, x *ir.Value) values {
		return op(b, ir.CollectivePermute, x, x.Type, nil, attr("source_target_pairs", pairs([2]int{3, 0}, [2]int{0, 2})))
	})),
	"collective_permute along an axis": onMesh(collective(6, []int{3}, func(b *ir.Builder, x *ir.Value) (out values) {
		for _, a := range []ir.AxisShift{{Axes: ir.Axs("b"), Shift: 1}, {Axes: ir.Axs("b"), Shift: -2, Wrap: true}, {Axes: ir.Axs("a"), Shift: 1, Wrap: true},
			{Axes: ir.Axs("b", "a"), Shift: 2, Wrap: true}, {Axes: ir.Axs("a", "b"), Shift: -1}, {Axes: ir.Axs("b"), Reverse: true}, {Axes: ir.Axs("a", "b"), Shift: 1, Reverse: true}} {
			a.Mesh = "mesh"
			out = append(out, op(b, ir.CollectivePermute, x, x.Type, nil, channel(len(out)+1), attr("source_target_pairs", a))...)
		}
		return out
	}), nil),
	"collective_permute along an axis, shuffled": onMesh(collective(6, []int{3}, func(b *ir.Builder, x *ir.Value) values {
		return op(b, ir.CollectivePermute, x, x.Type, nil, channel(1), attr("source_target_pairs", ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("b"), Shift: 1}))
	}), shuffledIDs),
	"all_gather": collective(4, []int{2, 3}, func(b *ir.Builder, x *ir.Value) values {
		return values{gathered(b, 1, x, 0, []int{0, 2}, []int{3, 1}), gathered(b, 2, x, 1, []int{3, 2, 1, 0}), gathered(b, 3, x, 1, []int{3}, []int{2}, []int{1}, []int{0})}
	}),
	"all_gather on axes": onMesh(collective(6, []int{2}, func(b *ir.Builder, x *ir.Value) (out values) {
		for i, axes := range [][]string{{"a"}, {"b"}, {"a", "b"}, {"b", "a"}} {
			n := []int{2, 3, 6, 6}[i]
			out = append(out, op(b, ir.AllGather, x, x.Type.WithShape(2*n), nil, channel(i+1), meshAxes(axes...), global, attr("all_gather_dim", ir.I64Attr(0)))...)
		}
		return out
	}), shuffledIDs),
	"all_reduce": collective(4, []int{5}, func(b *ir.Builder, x *ir.Value) values {
		return values{reduced(b, 1, ir.Add, x, []int{0, 1, 2, 3}), reduced(b, 2, ir.Maximum, x, []int{2, 0}, []int{1, 3}), reduced(b, 3, ir.Multiply, x, []int{3}, []int{2}, []int{1}, []int{0})}
	}),
	"all_reduce by region": collective(4, []int{5}, func(b *ir.Builder, x *ir.Value) values {
		return op(b, ir.AllReduce, x, x.Type, []*ir.Block{sumByRegion(b, x.Type.Elem)}, channel(1), global, attr("replica_groups", groups([]int{3, 1, 0, 2})))
	}),
	"all_reduce of all": collective(4, []int{5}, func(b *ir.Builder, x *ir.Value) values {
		return op(b, ir.AllReduce, x, x.Type, []*ir.Block{b.Combiner(ir.Add, x.Type.Elem)}, channel(1), attr("replica_groups", groups([]int{0})))
	}),
	"all_reduce of replicas": asReplicas(collective(4, []int{5}, func(b *ir.Builder, x *ir.Value) values {
		return op(b, ir.AllReduce, x, x.Type, []*ir.Block{b.Combiner(ir.Add, x.Type.Elem)}, attr("replica_groups", groups([]int{0, 3}, []int{1, 2})))
	})),
	"reduce_scatter": collective(4, []int{3, 8}, func(b *ir.Builder, x *ir.Value) values {
		return op(b, ir.ReduceScatter, x, x.Type.WithShape(3, 2), []*ir.Block{b.Combiner(ir.Add, x.Type.Elem)}, channel(1), global,
			attr("replica_groups", groups([]int{2, 1, 0, 3})), attr("scatter_dimension", ir.I64Attr(1)))
	}),
	"all_to_all": collective(6, []int{4, 6}, func(b *ir.Builder, x *ir.Value) values {
		exchange := func(id int, t *ir.Type, split, concat, n int, gs ...[]int) *ir.Value {
			return op(b, ir.AllToAll, x, t, nil, channel(id), attr("replica_groups", groups(gs...)), attr("split_dimension", ir.I64Attr(split)),
				attr("concat_dimension", ir.I64Attr(concat)), attr("split_count", ir.I64Attr(n)))[0]
		}
		return values{exchange(1, x.Type.WithShape(12, 2), 1, 0, 3, []int{0, 2, 4}, []int{5, 3, 1}),
			exchange(2, x.Type, 0, 0, 2, []int{0, 5}, []int{2, 1}, []int{3, 4}), exchange(3, x.Type.WithShape(2, 12), 0, 1, 2, []int{0, 1}, []int{2, 3}, []int{4, 5})}
	}),
	"collective_broadcast": collective(5, []int{3}, broadcastTo),
	"partition_id and replica_id": collective(3, []int{1}, func(b *ir.Builder, x *ir.Value) values {
		return values{b.Emit(ir.PartitionID, nil, nil, nil, nil).Result(), b.Emit(ir.ReplicaID, nil, nil, nil, nil).Result()}
	}),
	"partition_id and replica_id of replicas": asReplicas(collective(3, []int{1}, func(b *ir.Builder, x *ir.Value) values {
		return values{b.Emit(ir.PartitionID, nil, nil, nil, nil).Result(), b.Emit(ir.ReplicaID, nil, nil, nil, nil).Result()}
	})),
}

// randomArgs are arguments for each of n devices.
func randomArgs(rng *rand.Rand, m *ir.Module, n int) [][]*ir.Literal {
	args := make([][]*ir.Literal, n)
	for d := range args {
		for _, p := range m.Main().Params() {
			args[d] = append(args[d], random(rng, p.Type, false))
		}
	}
	return args
}

func devicesOf(m *ir.Module) int {
	return max(m.NumDevices(), m.Attrs.Int("mhlo.num_replicas"))
}

func testCollective(t *testing.T, name string) {
	build := collectiveCases[name]
	rng := rand.New(rand.NewPCG(3, 0))
	for _, e := range computed() {
		if e == ir.I1 && strings.Contains(name, "region") {
			continue
		}
		m := build(e)
		args := randomArgs(rng, m, devicesOf(m))
		agreeOn(t, e.String(), sums, m, args)
		agreeOn(t, e.String()+" shuffled", sums, m, args, runtime.Shuffle(rng.Uint64()), runtime.Workers(3))
	}
}

func TestLoadErrors(t *testing.T) {
	f := ir.Tensor(ir.F32, 4)
	for _, test := range []struct {
		m    *ir.Module
		want string
	}{
		{collective(4, []int{4}, func(b *ir.Builder, x *ir.Value) values { return values{permute(b, 1, x, [2]int{0, 4})} })(ir.F32),
			"source_target_pairs has (0, 4), which is not within 0 and 3"},
		{collective(4, []int{4}, func(b *ir.Builder, x *ir.Value) values { return values{reduced(b, 1, ir.Add, x, []int{0, 1})} })(ir.F32), "device 2"},
		{collective(1, []int{4}, func(b *ir.Builder, x *ir.Value) values {
			return b.Emit(ir.CustomCall, values{x}, ir.AttrsOf(attr("call_target_name", ir.Str("lapack"))), nil, []*ir.Type{f}).Results
		})(ir.F32), `no implementation of the target "lapack"`},
		{asReplicas(func(e ir.DType) *ir.Module {
			m := collective(2, []int{4}, func(b *ir.Builder, x *ir.Value) values { return values{x} })(e)
			m.Meshes = []*ir.Mesh{{Name: "mesh", Axes: []ir.MeshAxis{{Name: "a", Size: 1 << 40}}}}
			m.Attrs.Set("mhlo.num_partitions", ir.Int{Value: 1 << 40, Type: ir.I32})
			return m
		})(ir.F32), "more than 1048576 devices"},
	} {
		_, err := runtime.Load(test.m)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

// A random program: elementwise ops, data movement, collectives, loops and
// branches over a handful of values that die early and late.
func randomProgram(rng *rand.Rand, n int) *ir.Module {
	t := ir.Tensor(ir.F64, 4, 4)
	id := 0
	var grow func(b *ir.Builder, pool values, steps, depth int) values
	grow = func(b *ir.Builder, pool values, steps, depth int) values {
		pick := func() *ir.Value { return pool[rng.IntN(len(pool))] }
		all := rng.Perm(n)
		for range steps {
			x, y := pick(), pick()
			id++
			var v *ir.Value
			switch rng.IntN(12) {
			case 0, 1:
				v = b.Binary([]ir.Kind{ir.Add, ir.Subtract, ir.Maximum, ir.Minimum}[rng.IntN(4)], x, y)
			case 2:
				v = b.Unary([]ir.Kind{ir.Tanh, ir.Negate, ir.Logistic}[rng.IntN(3)], x)
			case 3:
				v = b.Unary(ir.Tanh, b.Dot(x, y, ir.Dot{LhsContract: []int{rng.IntN(2)}, RhsContract: []int{rng.IntN(2)}}))
			case 4:
				v = b.Reshape(b.Transpose(b.Reshape(x, 2, 8), 1, 0), 4, 4)
			case 5:
				v = b.Broadcast(b.Reduce(ir.Add, x, b.Splat(ir.Tensor(ir.F64), 0), rng.IntN(2)), []int{4, 4}, rng.IntN(2))
			case 6:
				v = b.DynamicUpdateSlice(x, b.SliceDim(y, 0, 1, 2), values{b.I32(rng.IntN(4)), b.I32(0)})
			case 7:
				ps := make([][2]int, n)
				for i := range ps {
					ps[i] = [2]int{all[i], all[(i+1)%n]}
				}
				v = permute(b, id, x, ps[:rng.IntN(n)+1]...)
			case 8:
				v = b.SliceDim(gathered(b, id, x, 0, all), 0, 0, 4)
			case 9:
				v = b.Unary(ir.Tanh, reduced(b, id, ir.Add, x, all))
			case 10:
				if depth == 0 {
					continue
				}
				trips := rng.IntN(4)
				outer := pool
				vs := loop(b, trips, values{x, y, x}, func(in *ir.Builder, i *ir.Value, args []*ir.Value) []*ir.Value {
					inner := grow(in, append(append(values{}, outer...), args...), 4, depth-1)
					return values{inner[rng.IntN(len(inner))], args[rng.IntN(3)], inner[len(inner)-1]}
				})
				v = vs[rng.IntN(3)]
			case 11:
				if depth == 0 {
					continue
				}
				zero := b.Splat(ir.Tensor(ir.F64), 0)
				p := b.Compare("LT", b.Reduce(ir.Add, reduced(b, id, ir.Add, x, all), zero, 0, 1), zero)
				yes, no := new(ir.Block), new(ir.Block)
				for _, r := range []*ir.Block{yes, no} {
					in := b.In(r)
					inner := grow(in, pool, 3, depth-1)
					in.Emit(ir.Return, values{inner[rng.IntN(len(inner))]}, nil, nil, nil)
				}
				v = b.Emit(ir.If, values{p}, nil, []*ir.Block{yes, no}, nil).Result()
			}
			pool = append(pool, v)
		}
		return pool
	}
	return program(n, []*ir.Type{t, t}, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		pool := grow(b, in, 12, 2)
		return values{pool[len(pool)-1], pool[rng.IntN(len(pool))], pool[len(pool)-2]}
	})
}

// Random programs agree with the evaluator to the bit, in any order of events
// and on any number of cores, and so when run many at a time.
func TestRandomPrograms(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(4, seed))
		n := 1 + rng.IntN(5)
		m := randomProgram(rng, n)
		args := randomArgs(rng, m, n)
		what := fmt.Sprint("seed ", seed)
		agreeOn(t, what, sums, m, args)
		agreeOn(t, what, sums, m, args, runtime.Shuffle(seed), runtime.Workers(1+rng.IntN(4)))
	}
}

// One Executable runs many times at once, on arguments that the runs share.
func TestConcurrentRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 0))
	m := randomProgram(rng, 4)
	args := randomArgs(rng, m, 4)
	exe := load(t, m)
	want, err := exe.Run(t.Context(), args)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 16 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			got, err := exe.Run(t.Context(), args)
			if err != nil {
				t.Fatal(err)
			}
			for d := range want {
				for k := range want[d] {
					sameNumbers(t, fmt.Sprint("device ", d), got[d][k], want[d][k], 0)
				}
			}
		})
	}
}
