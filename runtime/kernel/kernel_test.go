package kernel

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ppc/ir"
	"ppc/runtime/kernel/scalar"
)

// Carriers take floats as ir does, bit for bit.
func TestCarriers(t *testing.T) {
	for elem, c := range carriers {
		elem := ir.DType(elem)
		if c == nil || c.as != ir.F32 {
			continue
		}
		wide, narrow, want := NewMem(4), NewMem(elem.Size()), NewMem(elem.Size())
		check := func(x float32) {
			View[float32](wide)[0] = x
			c.narrow(narrow, wide)
			if elem.PutFloat(want, float64(x)); !bytes.Equal(narrow, want) {
				t.Errorf("%s: %v (%#x) becomes %#x, want %#x", elem, x, math.Float32bits(x), narrow, want)
			}
		}
		for b := range 1 << elem.Bits() {
			code := NewMem(elem.Size())
			for i := range code {
				code[i] = byte(b >> (8 * i))
			}
			c.widen(wide, code)
			x := View[float32](wide)[0]
			if want := float32(elem.GetFloat(code)); math.Float32bits(x) != math.Float32bits(want) && (x == x || want == want) {
				t.Errorf("%s: %#x is %v, want %v", elem, b, x, want)
			}
			bits := math.Float32bits(x)
			for _, d := range []uint32{0, 1, 0x7ff, 0x800, 0x1000, 0x1001, 0x8000, 0x7fff, 0x8001} {
				if x := math.Float32frombits(bits + d); x == x {
					check(x)
				}
			}
		}
		check(float32(math.NaN()))
		check(float32(math.Inf(1)))
		check(float32(math.Inf(-1)))
	}
}

// A Copy of any box is the loop over its elements.
func TestCopy(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		rank := rng.IntN(5)
		shape, perm := make([]int, rank), rng.Perm(rank)
		for d := range shape {
			shape[d] = 1 + rng.IntN(4)
			if rng.IntN(10) == 0 {
				shape[d] = 40
			}
		}
		if ir.Product(shape) > 5000 {
			continue
		}
		// The source: dimensions in another order, some reversed, some repeated.
		moved := make([]int, rank)
		for i, d := range perm {
			moved[i] = shape[d]
		}
		own, from, at := ir.Strides(moved), make([]int, rank), 0
		for i, d := range perm {
			switch from[d] = own[i]; rng.IntN(4) {
			case 0:
				at += (shape[d] - 1) * own[i]
				from[d] = -own[i]
			case 1:
				from[d] = 0
			}
		}
		elem := []int{1, 2, 4, 8, 16}[rng.IntN(5)]
		src, got, want := NewMem(elem*ir.Product(shape)), NewMem(elem*ir.Product(shape)), NewMem(elem*ir.Product(shape))
		for i := range src {
			src[i] = byte(rng.Uint32())
		}
		NewCopy(elem, shape, ir.Strides(shape), from).Run(got, src, 0, at)
		idx := make([]int, rank)
		for e := range ir.Product(shape) {
			s := at
			for d, i := range idx {
				s += i * from[d]
			}
			copy(want[e*elem:(e+1)*elem], src[s*elem:])
			advance(idx, shape, make([]int, rank))
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("shape %v, strides %v from %d, %d bytes: wrong", shape, from, at, elem)
		}
	}
}

// A sort ends with a permutation, whatever the comparator says.
func TestMergeSortInconsistent(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		x := rng.Perm(n)
		scalar.MergeSort(x, make([]int, n), func(a, b int) bool { return rng.IntN(2) == 0 })
		slices.Sort(x)
		for i, v := range x {
			if i != v {
				t.Fatalf("%d numbers: no permutation", n)
			}
		}
	}
}

// Nothing allocates per element, and the common kernels not at all.
func TestAllocations(t *testing.T) {
	f := ir.NewFunc("f")
	b := ir.NewBuilder(f)
	x := f.NewArg(f.Body, ir.Tensor(ir.F32, 64, 64), "")
	h := f.NewArg(f.Body, ir.Tensor(ir.BF16, 64, 64), "")
	zero := b.Splat(ir.Tensor(ir.F32), 0)
	for _, v := range []*ir.Value{b.Add(x, x), b.Add(h, h), b.Compare("GT", x, x), b.Transpose(x, 1, 0), b.Reduce(ir.Add, x, zero, 0), b.Reduce(ir.Add, x, zero, 1),
		b.Convert(h, ir.I32), b.DynamicSlice(x, []*ir.Value{b.I32(0), b.I32(3)}, 4, 8), b.Dot(x, x, ir.Dot{LhsContract: []int{0}, RhsContract: []int{1}}), b.Broadcast(zero, []int{9}, []int{}...)} {
		run, err := Build(v.Def)
		if err != nil {
			t.Fatal(err)
		}
		w, dst := new(Work), []Mem{NewMem(v.Type.Bytes())}
		var src []Mem
		for _, o := range v.Def.Operands {
			src = append(src, NewMem(o.Type.Bytes()))
		}
		if n := testing.AllocsPerRun(10, func() { run(w, dst, src) }); n > 0 {
			t.Errorf("%s: %v allocations", v.Def.Name(), n)
		}
	}
}
