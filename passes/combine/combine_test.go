package combine

import (
	"fmt"
	"runtime"
	"testing"

	"ppc/ir"
)

// chained is a program of so many chains of n all-reduces together, each of which reads
// what the one before it gives; the chains take turns.
func chained(n, chains int) *ir.Module {
	f := ir.NewFunc("main")
	b := ir.NewBuilder(f)
	t := ir.Tensor(ir.F32, 4)
	ends := make([]*ir.Value, chains)
	for i := range ends {
		ends[i] = f.NewArg(f.Body, t, fmt.Sprint("x", i))
	}
	for i := range n {
		v := &ends[i%chains]
		groups := ir.Ints64(ir.Tensor(ir.I64, 1, 2), 0, 1)
		*v = b.Emit(ir.AllReduce, []*ir.Value{*v}, ir.AttrsOf(ir.NamedAttr{Name: "replica_groups", Attr: groups},
			ir.NamedAttr{Name: "channel_handle", Attr: ir.Channel{Handle: i + 1, Type: 1}}), []*ir.Block{b.Combiner(ir.Add, ir.F32)}, nil).Result()
		*v = b.Unary(ir.Negate, *v)
	}
	b.Return(ends...)
	return &ir.Module{Name: "chained", Funcs: []*ir.Func{f}, Attrs: ir.AttrsOf(ir.NamedAttr{Name: ir.KeyCombine, Attr: ir.I64Attr(1 << 20)},
		ir.NamedAttr{Name: "mhlo.num_partitions", Attr: ir.I64Attr(2)})}
}

// allReduces is how many m has.
func allReduces(m *ir.Module) (n int) {
	m.Main().Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.AllReduce {
			n++
		}
	})
	return n
}

// Collectives in a chain stay as many as they are, and those of several chains become
// those of one. The work for each is the same however many there are: so is what a
// search allocates, for the ops that it has passed.
func TestCombineChains(t *testing.T) {
	for _, chains := range []int{1, 2, 4} {
		allocated := func(n int) uint64 {
			m := chained(n, chains)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := Combine(nil, m); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			if got := allReduces(m); got != n/chains {
				t.Errorf("%d all-reduces in %d chains: %d afterwards, want %d", n, chains, got, n/chains)
			}
			return after.TotalAlloc - before.TotalAlloc
		}
		if few, many := allocated(300), allocated(3_000); many > 15*few { // the square is 100 times as much
			t.Errorf("%d chains: 300 all-reduces allocate %d bytes, 3,000 allocate %d", chains, few, many)
		}
	}
}

func BenchmarkCombineChains(b *testing.B) {
	for _, chains := range []int{1, 4} {
		for _, n := range []int{2_000, 20_000, 100_000} {
			b.Run(fmt.Sprintf("chains=%d/n=%d", chains, n), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					m := chained(n, chains)
					b.StartTimer()
					if err := Combine(nil, m); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
