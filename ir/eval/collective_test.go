package eval

import (
	"slices"
	"strings"
	"testing"

	"ppc/ir"
)

// grid is a module over the mesh x=2, y=2.
func grid(build func(b *ir.Builder, in values) values, params ...*ir.Type) *ir.Module {
	m := program(build, params...)
	m.Meshes = []*ir.Mesh{{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 2}}}}
	return m
}

func pairs(vs ...int) *ir.Literal { return ir.Ints64(ir.Tensor(ir.I64, len(vs)/2, 2), vs...) }

func over(axes ...string) ir.MeshAxes { return ir.MeshAxes{Mesh: "mesh", Axes: ir.Axs(axes...)} }

// Device d has the rows 10d+1, 10d+2.
func rows() [][]*ir.Literal {
	var args [][]*ir.Literal
	for d := range 4 {
		args = append(args, lits(ints([]int{2}, 10*d+1, 10*d+2)))
	}
	return args
}

// A deviceCase is a function of one row of a grid of devices, and what each device
// makes of its row.
type deviceCase struct {
	name  string
	build func(b *ir.Builder, in values) values
	want  [][]int // by device
}

func (c deviceCase) run(t *testing.T) {
	m := grid(c.build, ir.Tensor(ir.I32, 2))
	out, err := RunDevices(m, m.Main(), rows(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for d, want := range c.want {
		equal(t, out[d][0], ints([]int{len(want)}, want...))
	}
}

func deviceCases() []deviceCase {
	channel := ir.Channel{Handle: 1, Type: 1}
	add := func(b *ir.Builder) []*ir.Block { return []*ir.Block{b.Combiner(ir.Add, ir.I32)} }
	return []deviceCase{
		{"all_gather over y", func(b *ir.Builder, in values) values {
			return b.Emit(ir.AllGather, in, attrs("all_gather_dim", ir.I64Attr(0), "replica_groups", over("y"), "channel_handle", channel, "use_global_device_ids", ir.Unit{}), nil, []*ir.Type{ir.Tensor(ir.I32, 4)}).Results
		}, [][]int{{1, 2, 11, 12}, {1, 2, 11, 12}, {21, 22, 31, 32}, {21, 22, 31, 32}}},
		{"all_gather over y, x", func(b *ir.Builder, in values) values {
			return b.Emit(ir.AllGather, in, attrs("all_gather_dim", ir.I64Attr(0), "replica_groups", over("y", "x"), "channel_handle", channel, "use_global_device_ids", ir.Unit{}), nil, []*ir.Type{ir.Tensor(ir.I32, 8)}).Results
		}, [][]int{{1, 2, 21, 22, 11, 12, 31, 32}, {1, 2, 21, 22, 11, 12, 31, 32}, {1, 2, 21, 22, 11, 12, 31, 32}, {1, 2, 21, 22, 11, 12, 31, 32}}},
		{"all_gather of a list", func(b *ir.Builder, in values) values {
			return b.Emit(ir.AllGather, in, attrs("all_gather_dim", ir.I64Attr(0), "replica_groups", pairs(3, 0, 1, 2), "channel_handle", channel, "use_global_device_ids", ir.Unit{}), nil, []*ir.Type{ir.Tensor(ir.I32, 4)}).Results
		}, [][]int{{31, 32, 1, 2}, {11, 12, 21, 22}, {11, 12, 21, 22}, {31, 32, 1, 2}}},
		{"all_reduce over x", func(b *ir.Builder, in values) values {
			return b.Emit(ir.AllReduce, in, attrs("replica_groups", over("x"), "channel_handle", channel, "use_global_device_ids", ir.Unit{}), add(b), nil).Results
		}, [][]int{{22, 24}, {42, 44}, {22, 24}, {42, 44}}},
		{"all_reduce of replicas across partitions", func(b *ir.Builder, in values) values { // the only replica: all partitions
			return b.Emit(ir.AllReduce, in, attrs("replica_groups", ir.Ints64(ir.Tensor(ir.I64, 1, 1), 0), "channel_handle", channel), add(b), nil).Results
		}, [][]int{{64, 68}, {64, 68}, {64, 68}, {64, 68}}},
		{"all_reduce of everyone", func(b *ir.Builder, in values) values {
			return b.Emit(ir.AllReduce, in, attrs("replica_groups", ir.Ints64(ir.Tensor(ir.I64, 0, 0)), "channel_handle", channel), add(b), nil).Results
		}, [][]int{{64, 68}, {64, 68}, {64, 68}, {64, 68}}},
		{"reduce_scatter over y", func(b *ir.Builder, in values) values {
			return b.Emit(ir.ReduceScatter, in, attrs("scatter_dimension", ir.I64Attr(0), "replica_groups", over("y"), "channel_handle", channel, "use_global_device_ids", ir.Unit{}), add(b), []*ir.Type{ir.Tensor(ir.I32, 1)}).Results
		}, [][]int{{12}, {14}, {52}, {54}}},
		{"all_to_all over y", func(b *ir.Builder, in values) values {
			return b.Emit(ir.AllToAll, in, attrs("split_dimension", ir.I64Attr(0), "concat_dimension", ir.I64Attr(0), "split_count", ir.I64Attr(2), "replica_groups", over("y"), "channel_handle", channel), nil, nil).Results
		}, [][]int{{1, 11}, {2, 12}, {21, 31}, {22, 32}}},
		{"collective_broadcast", func(b *ir.Builder, in values) values {
			return b.Emit(ir.CollectiveBroadcast, in, attrs("replica_groups", pairs(2, 1), "channel_handle", channel), nil, nil).Results
		}, [][]int{{0, 0}, {21, 22}, {21, 22}, {0, 0}}},
		{"collective_permute", func(b *ir.Builder, in values) values {
			return b.Emit(ir.CollectivePermute, in, attrs("source_target_pairs", pairs(0, 1, 1, 2, 3, 3), "channel_handle", channel), nil, nil).Results
		}, [][]int{{0, 0}, {1, 2}, {11, 12}, {31, 32}}},
		{"collective_permute along x", func(b *ir.Builder, in values) values {
			return b.Emit(ir.CollectivePermute, in, attrs("source_target_pairs", ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("x"), Shift: 1}, "channel_handle", channel), nil, nil).Results
		}, [][]int{{0, 0}, {0, 0}, {1, 2}, {11, 12}}},
		{"collective_permute around y", func(b *ir.Builder, in values) values {
			return b.Emit(ir.CollectivePermute, in, attrs("source_target_pairs", ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("y"), Shift: -1, Wrap: true}, "channel_handle", channel), nil, nil).Results
		}, [][]int{{11, 12}, {1, 2}, {31, 32}, {21, 22}}},
		{"collective_permute along y, x", func(b *ir.Builder, in values) values {
			return b.Emit(ir.CollectivePermute, in, attrs("source_target_pairs", ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("y", "x"), Shift: 1}, "channel_handle", channel), nil, nil).Results
		}, [][]int{{0, 0}, {21, 22}, {1, 2}, {11, 12}}},
		{"collective_permute reverses", func(b *ir.Builder, in values) values {
			return b.Emit(ir.CollectivePermute, in, attrs("source_target_pairs", ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("x", "y"), Reverse: true}, "channel_handle", channel), nil, nil).Results
		}, [][]int{{31, 32}, {21, 22}, {11, 12}, {1, 2}}},
		{"partition_id", func(b *ir.Builder, in values) values {
			id := b.Convert(b.Emit(ir.PartitionID, nil, nil, nil, nil).Result(), ir.I32)
			return values{b.Broadcast(id, []int{1})}
		}, [][]int{{0}, {1}, {2}, {3}}},
	}
}

// Without a channel a group is of replicas; with one a permute is of partitions.
func TestReplicas(t *testing.T) {
	m := program(func(b *ir.Builder, in values) values {
		sum := b.Emit(ir.AllReduce, in, attrs("replica_groups", pairs(0, 1)), []*ir.Block{b.Combiner(ir.Add, ir.I32)}, nil).Results
		moved := b.Emit(ir.CollectivePermute, in, attrs("source_target_pairs", pairs(0, 1), "channel_handle", ir.Channel{Handle: 1, Type: 1}), nil, nil).Results
		return append(sum, moved...)
	}, ir.Tensor(ir.I32, 2))
	m.Attrs.Set("mhlo.num_replicas", ir.Int{Value: 2, Type: ir.I32})
	out, err := RunDevices(m, m.Main(), rows(), Options{}) // devices (replica, partition) = 2r + p
	if err != nil {
		t.Fatal(err)
	}
	for d, want := range [][]int{{22, 24, 0, 0}, {42, 44, 1, 2}, {22, 24, 0, 0}, {42, 44, 21, 22}} {
		equal(t, out[d][0], ints([]int{2}, want[:2]...))
		equal(t, out[d][1], ints([]int{2}, want[2:]...))
	}
}

// Devices that wait for one another are told, not waited for.
func TestDeadlock(t *testing.T) {
	m := grid(func(b *ir.Builder, in values) values {
		id := b.Convert(b.Emit(ir.PartitionID, nil, nil, nil, nil).Result(), ir.I32)
		reduce := func(handle int) *ir.Block {
			return region(b, ir.Return, func(b *ir.Builder, _ values) values {
				return b.Emit(ir.AllReduce, in, attrs("replica_groups", over("x", "y"), "channel_handle", ir.Channel{Handle: handle, Type: 1}, "use_global_device_ids", ir.Unit{}),
					[]*ir.Block{b.Combiner(ir.Add, ir.I32)}, nil).Results
			})
		}
		return b.Emit(ir.Case, values{id}, nil, []*ir.Block{reduce(1), reduce(2)}, nil).Results
	}, ir.Tensor(ir.I32, 2))
	_, err := RunDevices(m, m.Main(), rows(), Options{})
	if err == nil || !strings.Contains(err.Error(), "device 0 waits at stablehlo.all_reduce for device 1; device 1 waits at stablehlo.all_reduce for device 0") {
		t.Error(err)
	}
}

// Devices that a mesh or a list does not have are refused.
func TestMissingDevices(t *testing.T) {
	row, channel := ir.Tensor(ir.I32, 2), ir.Channel{Handle: 1, Type: 1}
	permute := func(pairs ir.Attr) *ir.Module {
		return grid(func(b *ir.Builder, in values) values {
			return b.Emit(ir.CollectivePermute, in, attrs("source_target_pairs", pairs, "channel_handle", channel), nil, nil).Results
		}, row)
	}
	for _, c := range []struct {
		m       *ir.Module
		devices int
		want    string
	}{
		{permute(pairs(0, 9)), 4, "names device 9 of 4"},
		{permute(ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("x"), Shift: 1}), 2, " of 2"},
		{permute(ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("x"), Shift: 1}), 6, " is not on mesh @mesh of 4 devices"},
	} {
		args := slices.Repeat(rows()[:1], c.devices)
		if _, err := RunDevices(c.m, c.m.Main(), args, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// A manual computation over x shards along x only; its collectives meet, and what
// it leaves unreduced along x is the sum.
func TestManualComputation(t *testing.T) {
	global, local := ir.Tensor(ir.I32, 4, 2), ir.Tensor(ir.I32, 2, 2)
	shardedX, free := ir.NewSharding("mesh", ir.Axs("x"), ir.Axs("y")), ir.NewSharding("mesh", nil, nil)
	terms := free.Clone()
	terms.Unreduced = ir.Axs("x")
	m := grid(func(b *ir.Builder, in values) values {
		body := region(b, ir.SdyReturn, func(b *ir.Builder, x values) values {
			sum := b.Emit(ir.AllReduce, x, attrs("replica_groups", over("x"), "channel_handle", ir.Channel{Handle: 1, Type: 1}, "use_global_device_ids", ir.Unit{}),
				[]*ir.Block{b.Combiner(ir.Add, ir.I32)}, nil).Result()
			id := b.Convert(b.Emit(ir.PartitionID, nil, nil, nil, nil).Result(), ir.I32)
			return values{sum, b.Add(x[0], b.Broadcast(id, local.Shape)), x[0]}
		}, local)
		op := b.Emit(ir.ManualComputation, in, attrs("in_shardings", ir.PerValue{shardedX}, "out_shardings", ir.PerValue{free, shardedX, terms}, "manual_axes", ir.Array{ir.Str("x")}),
			[]*ir.Block{body}, []*ir.Type{local, global, local})
		return op.Results
	}, global)
	out := evaluate(t, m, Options{}, count(4, 2))
	equal(t, out[0], ints(local.Shape, 6, 8, 10, 12))
	equal(t, out[1], ints(global.Shape, 1, 2, 3, 4, 7, 8, 9, 10)) // the devices at y=0 are 0 and 2
	equal(t, out[2], ints(local.Shape, 6, 8, 10, 12))
}

// Inside of a manual computation over x another may be over y.
func TestNestedManualComputation(t *testing.T) {
	global, half, quarter := ir.Tensor(ir.I32, 2, 2), ir.Tensor(ir.I32, 1, 2), ir.Tensor(ir.I32, 1, 1)
	alongX, alongY := ir.NewSharding("mesh", ir.Axs("x"), nil), ir.NewSharding("mesh", nil, ir.Axs("y"))
	manual := func(b *ir.Builder, in values, axis string, s *ir.Sharding, local *ir.Type, build func(b *ir.Builder, in values) values) values {
		body := region(b, ir.SdyReturn, build, local)
		return b.Emit(ir.ManualComputation, in, attrs("in_shardings", ir.PerValue{s}, "out_shardings", ir.PerValue{s}, "manual_axes", ir.Array{ir.Str(axis)}),
			[]*ir.Block{body}, ir.Types(in)).Results
	}
	m := grid(func(b *ir.Builder, in values) values {
		return manual(b, in, "x", alongX, half, func(b *ir.Builder, in values) values {
			return manual(b, in, "y", alongY, quarter, func(b *ir.Builder, in values) values {
				turned := b.Emit(ir.CollectivePermute, in, attrs("source_target_pairs", ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("x"), Shift: 1, Wrap: true}, "channel_handle", ir.Channel{Handle: 1, Type: 1}), nil, nil).Result()
				id := b.Convert(b.Emit(ir.PartitionID, nil, nil, nil, nil).Result(), ir.I32)
				return values{b.Add(b.Mul(turned, b.Splat(quarter, 10)), b.Broadcast(id, quarter.Shape))}
			})
		})
	}, global)
	out := evaluate(t, m, Options{}, count(2, 2))
	equal(t, out[0], ints(global.Shape, 30, 41, 12, 23))
}

// A device that is done with an inner manual computation is not taken for one
// that has ended while another waits for it.
func TestCollectiveAfterNested(t *testing.T) {
	global, half, quarter := ir.Tensor(ir.I32, 2, 2), ir.Tensor(ir.I32, 1, 2), ir.Tensor(ir.I32, 1, 1)
	m := grid(func(b *ir.Builder, in values) values {
		manual := func(b *ir.Builder, in values, axis string, s *ir.Sharding, local *ir.Type, build func(b *ir.Builder, in values) values) values {
			return b.Emit(ir.ManualComputation, in, attrs("in_shardings", ir.PerValue{s}, "out_shardings", ir.PerValue{s}, "manual_axes", ir.Array{ir.Str(axis)}),
				[]*ir.Block{region(b, ir.SdyReturn, build, local)}, ir.Types(in)).Results
		}
		return manual(b, in, "x", ir.NewSharding("mesh", ir.Axs("x"), nil), half, func(b *ir.Builder, in values) values {
			in = manual(b, in, "y", ir.NewSharding("mesh", nil, ir.Axs("y")), quarter, func(b *ir.Builder, in values) values {
				return values{b.Unary(ir.Negate, in[0])}
			})
			return b.Emit(ir.AllReduce, in, attrs("replica_groups", over("x"), "channel_handle", ir.Channel{Handle: 1, Type: 1}, "use_global_device_ids", ir.Unit{}),
				[]*ir.Block{b.Combiner(ir.Add, ir.I32)}, nil).Results
		})
	}, global)
	for range 2000 {
		equal(t, evaluate(t, m, Options{}, count(2, 2))[0], ints(global.Shape, -4, -6, -4, -6))
	}
}

// The same program gives the same bits however the processes run.
func TestDeterministic(t *testing.T) {
	x := ir.Tensor(ir.F32, 64)
	m := grid(func(b *ir.Builder, in values) values {
		return b.Emit(ir.AllReduce, in, attrs("replica_groups", over("x", "y"), "channel_handle", ir.Channel{Handle: 1, Type: 1}, "use_global_device_ids", ir.Unit{}),
			[]*ir.Block{b.Combiner(ir.Add, ir.F32)}, nil).Results
	}, x)
	args := make([][]*ir.Literal, 4)
	for d := range args {
		vs := make([]float64, 64)
		for k := range vs {
			vs[k] = 1 / float64(1+d*64+k)
		}
		args[d] = lits(floats(ir.F32, x.Shape, vs...))
	}
	var first []byte
	for range 20 {
		out, err := RunDevices(m, m.Main(), args, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out {
			if first == nil {
				first = o[0].Data
			}
			if !slices.Equal(first, o[0].Data) {
				t.Fatal("different bits")
			}
		}
	}
}
