package eval

import (
	"testing"

	"ppc/ir"
)

// BenchmarkDot is the product of two matrices of 256 x 256.
func BenchmarkDot(b *testing.B) {
	t := ir.Tensor(ir.F32, 256, 256)
	m := program(func(b *ir.Builder, in values) values {
		return values{b.Dot(in[0], in[1], ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}})}
	}, t, t)
	x := ir.SplatOf(t, 0.5)
	for b.Loop() {
		if _, err := Run(m, m.Main(), lits(x, x), Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReduce is a sum over a million elements, to a scalar.
func BenchmarkReduce(b *testing.B) {
	t := ir.Tensor(ir.F32, 1<<20)
	m := program(func(b *ir.Builder, in values) values {
		return values{b.Reduce(ir.Add, in[0], b.Splat(ir.Tensor(ir.F32), 0), 0)}
	}, t)
	x := ir.SplatOf(t, 0.5)
	for b.Loop() {
		if _, err := Run(m, m.Main(), lits(x), Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
