package kernel

import (
	"testing"

	"ppc/ir"
)

// A convolution lays out some of its windows at a time: each result is what its
// window gives, and the memory beside does not grow with their number.
func TestConvolutionInParts(t *testing.T) {
	const n, k = 6000, 4001 // the windows take 6000 * 4001 elements, 92 MiB
	f := ir.NewFunc("f")
	b := ir.NewBuilder(f)
	x, w := f.NewArg(f.Body, ir.Tensor(ir.F32, 1, 1, n), ""), f.NewArg(f.Body, ir.Tensor(ir.F32, k, 1, 1), "")
	side := func(first, second, spatial int) ir.ConvSide {
		return ir.ConvSide{First: first, Second: second, Spatial: []int{spatial}}
	}
	attrs := ir.AttrsOf(
		ir.NamedAttr{Name: "dimension_numbers", Attr: ir.ConvDims{Input: side(0, 1, 2), Kernel: side(1, 2, 0), Output: side(0, 1, 2)}},
		ir.NamedAttr{Name: "feature_group_count", Attr: ir.I64Attr(1)}, ir.NamedAttr{Name: "batch_group_count", Attr: ir.I64Attr(1)},
		ir.NamedAttr{Name: "padding", Attr: ir.Ints64(ir.Tensor(ir.I64, 1, 2), k/2, k/2)})
	run, err := Build(b.Emit(ir.Convolution, []*ir.Value{x, w}, attrs, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	in, kernel, out, work := NewMem(4*n), NewMem(4*k), NewMem(4*n), new(Work)
	for i := range n {
		View[float32](in)[i] = float32(i % 7)
	}
	for i := range k {
		View[float32](kernel)[i] = float32(i % 3)
	}
	run(work, []Mem{out}, []Mem{in, kernel})
	for i, got := range View[float32](out) {
		want := 0
		for j := max(0, k/2-i); j < min(k, n+k/2-i); j++ {
			want += j % 3 * ((i + j - k/2) % 7)
		}
		if got != float32(want) {
			t.Fatalf("element %d is %v, want %d", i, got, want)
		}
	}
	bytes := 0
	for _, m := range work.temps {
		bytes += cap(m)
	}
	if bytes > 4*patchBytes {
		t.Errorf("%d bytes beside operands and results, want at most %d", bytes, 4*patchBytes)
	}
}
