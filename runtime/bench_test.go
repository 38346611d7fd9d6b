package runtime_test

import (
	"testing"

	"ppc/internal/paired"
	"ppc/ir"
	"ppc/runtime"
)

// small is what the tests of the compiler run by the hundred: many devices, a
// loop of some 60 ops on tiny tensors, three permutes and a gather.
func small(n int) *ir.Module {
	ring := make([][2]int, n)
	all := make([]int, n)
	for i := range ring {
		ring[i], all[i] = [2]int{i, (i + 1) % n}, i
	}
	t := ir.Tensor(ir.F64, 4, 4)
	return program(n, []*ir.Type{t}, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		return loop(b, 20, values{in[0], in[0]}, func(b *ir.Builder, i *ir.Value, args []*ir.Value) []*ir.Value {
			x, y := args[0], args[1]
			for k := range 10 {
				x = b.Add(b.Unary(ir.Tanh, x), b.Mul(x, y))
				y = b.DynamicUpdateSlice(y, b.DynamicSlice(x, values{i, b.I32(0)}, 1, 4), values{b.I32(k % 4), b.I32(0)})
			}
			x = b.Dot(x, y, ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}})
			for k := range 3 {
				x = permute(b, k+1, x, ring...)
			}
			g := b.SliceDim(gathered(b, 9, x, 0, all), 0, 0, 4)
			return values{b.Unary(ir.Tanh, b.Add(g, x)), y}
		})
	})
}

func BenchmarkSmall(b *testing.B) {
	exe, err := runtime.Load(small(16))
	if err != nil {
		b.Fatal(err)
	}
	args := perDevice(16, ir.Tensor(ir.F64, 4, 4), func(d, i int) float64 { return float64(d+i) / 100 })
	b.ReportAllocs()
	for b.Loop() {
		if _, err := exe.Run(b.Context(), args); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	m := small(16)
	for b.Loop() {
		if _, err := runtime.Load(m); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSmallTimeline is what a timeline costs on the same.
func BenchmarkSmallTimeline(b *testing.B) {
	exe, err := runtime.Load(small(16))
	if err != nil {
		b.Fatal(err)
	}
	args := perDevice(16, ir.Tensor(ir.F64, 4, 4), func(d, i int) float64 { return float64(d+i) / 100 })
	run := func(opts ...runtime.Option) error {
		_, err := exe.Run(b.Context(), args, opts...)
		return err
	}
	paired.Cost(b, func() error { return run() }, func() error { return run(runtime.WithTimeline(new(runtime.Timeline))) })
}
