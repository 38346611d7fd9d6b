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

// A cumulative sum takes time in proportion to its length, and has the bits of its windows: of floats, in the order in which
// they are folded, also with an initial value that is not zero.
func TestCumulative(t *testing.T) {
	for _, init := range []float32{0, 3} {
		for _, n := range []int{40, 60000} {
			if init != 0 && n > 40 { // where padding counts each window is folded
				continue
			}
			f := ir.NewFunc("f")
			b := ir.NewBuilder(f)
			typ := ir.Tensor(ir.F32, 2, n, 3)
			x, zero := f.NewArg(f.Body, typ, ""), f.NewArg(f.Body, ir.Tensor(ir.F32), "")
			attrs := ir.AttrsOf(ir.NamedAttr{Name: "window_dimensions", Attr: ir.Ints([]int{1, n, 1})},
				ir.NamedAttr{Name: "padding", Attr: ir.Ints64(ir.Tensor(ir.I64, 3, 2), 0, 0, n-1, 0, 0, 0)})
			run, err := Build(b.Emit(ir.ReduceWindow, []*ir.Value{x, zero}, attrs, []*ir.Block{b.Combiner(ir.Add, ir.F32)}, nil))
			if err != nil {
				t.Fatal(err)
			}
			in, out, start := numbers(typ), NewMem(typ.Bytes()), NewMem(4)
			View[float32](start)[0] = init
			run(new(Work), []Mem{out}, []Mem{in, start})
			for e, got := range View[float32](out) {
				i, sum := e/3%n, init
				for k := i + 1; k < n && init != 0; k++ {
					sum += init
				}
				if init == 0 && i > 0 {
					sum = View[float32](out)[e-3] + View[float32](in)[e]
				} else {
					for k := range i + 1 {
						sum += View[float32](in)[e-3*(i-k)]
					}
				}
				if got != sum {
					t.Fatalf("element %d of %d from %v is %v, want %v", e, n, init, got, sum)
				}
			}
		}
	}
}
