package kernel

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"ppc/ir"
)

// A Mem is the elements of a tensor in row-major order, as the machine lays
// them out: aligned to 8 bytes, booleans one byte of 0 or 1, integers of less
// than a byte the lowest bits of one, small floats their bits.
type Mem []byte

// NewMem returns n zero bytes, aligned.
func NewMem(n int) Mem {
	words := make([]uint64, (n+7)/8)
	m := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
	if n >= hugePage {
		useHugePages(m)
	}
	return m
}

// hugePage is the size of the larger pages that a system may have.
const hugePage = 2 << 20

// Aligned reports whether b may be a Mem.
func Aligned(b []byte) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%8 == 0
}

// Overlap reports whether a and b share memory.
func Overlap(a, b Mem) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	x, y := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return x < y+uintptr(len(b)) && y < x+uintptr(len(a))
}

// View is m as elements of type T, which must be a number or an array of numbers.
func View[T any](m Mem) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(m))), uintptr(len(m))/unsafe.Sizeof(zero))
}

// Same reports whether a and b are the same memory.
func Same(a, b Mem) bool {
	return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
}

// A Func computes results from operands. It writes every byte of dst and keeps
// nothing. A result may be the memory of an operand where [InPlace] says so,
// and overlaps no other.
type Func func(w *Work, dst, src []Mem)

// A Work is the memory that a Func needs while it runs. It serves one
// goroutine at a time; the zero Work is ready.
type Work struct {
	Stop *atomic.Bool // once true, what a long Func computes does not matter; may be nil

	ends  ends
	tiles [4]Mem // of a carrier's elements, or of up to 16 bytes
	ins   [3]Mem
	pair  [2]Mem
	swap  [2]Mem
	outs  [1]Mem

	fused      tileOf
	fusedTemps []Mem
	fusedSrc   [3]Mem
	fusedDst   [1]Mem
	arrays     []unsafe.Pointer // of a chain
	groups     map[*instr]Mem

	seen   seen         // of what a matrixUnit splits
	blocks []splitBlock // of its left side

	temps []Mem // stack of scratch, by depth of use
	depth int
}

// tileLen is the number of elements of a tile: four tiles stay in the first
// level cache.
const tileLen = 512

func (w *Work) tile(i int) Mem {
	if w.tiles[i] == nil {
		w.tiles[i] = NewMem(tileLen * 16)
	}
	return w.tiles[i]
}

// temp returns n bytes of scratch, not cleared; who takes it puts w.depth back.
func (w *Work) temp(n int) Mem {
	if w.depth == len(w.temps) {
		w.temps = append(w.temps, nil)
	}
	if cap(w.temps[w.depth]) < n {
		w.temps[w.depth] = NewMem(n)
	}
	w.depth++
	return w.temps[w.depth-1][:n]
}

// apply runs a Func of one operand.
func (w *Work) apply(f Func, dst, src Mem) {
	w.pair[0], w.pair[1] = dst, src
	f(w, w.pair[:1], w.pair[1:])
}

// Stopped reports whether what is computed does not matter any more.
func (w *Work) Stopped() bool { return w.Stop != nil && w.Stop.Load() }

// byType is a Func for each element type that has one.
type byType [ir.Index + 1]Func

// A builder makes the Func of an op.
type builder func(op *ir.Op) (Func, error)

// A row says how ops of one kind become a Func.
type row struct {
	build builder

	// region is build for ops with a region, whose ops it builds by sub.
	region func(op *ir.Op, sub builder) (Func, error)

	// widens is the size of an element in which the Func computes, of all operands
	// and results, in memory of its own where theirs is smaller; nil: it does not.
	widens func(op *ir.Op) int

	// inPlace are the operands whose memory the result may take over, where
	// their types are of one size.
	inPlace []int
}

// Build returns the Func of op. The operands it takes are those of op and then
// the values that op's regions capture, in the order of [ir.Op.Captures].
func Build(op *ir.Op) (Func, error) {
	if !Has(op.Kind) {
		return nil, fmt.Errorf("%s has no kernel", op.Name())
	}
	for _, vs := range [][]*ir.Value{op.Operands, op.Results} {
		for _, v := range vs {
			if err := Check(v.Type); err != nil {
				return nil, fmt.Errorf("%s: %w", op.Name(), err)
			}
		}
	}
	r := table[op.Kind]
	if r.region != nil {
		return r.region(op, Build)
	}
	return r.build(op)
}

// Has reports whether ops of kind k have a kernel.
func Has(k ir.Kind) bool {
	_, ok := table[k]
	return ok
}

// Check reports whether tensors of type t can be computed with.
func Check(t *ir.Type) error {
	switch {
	case !t.IsTensor():
		return fmt.Errorf("a value of type %s is no tensor", t)
	case !t.IsStatic():
		return fmt.Errorf("%s has a size that is not known", t)
	case t.Elem == ir.InvalidDType || t.Elem == ir.Index:
		return fmt.Errorf("%s: there is nothing here that computes with elements of type %s", t, t.ElemText())
	}
	return nil
}

// Scratch is how many bytes the Func of op takes besides its operands and results, at
// the least: what it computes in wider elements than theirs.
func Scratch(op *ir.Op) int {
	widens := table[op.Kind].widens
	if widens == nil {
		return 0
	}
	n, wide := 0, widens(op)
	for _, vs := range [][]*ir.Value{op.Operands, op.Results} {
		for _, v := range vs {
			if v.Type.IsTensor() && v.Type.IsStatic() && v.Type.Elem.Size() < wide {
				n += wide * v.Type.NumElements()
			}
		}
	}
	return n
}

// InPlace returns the operands of op whose memory its result may take over.
func InPlace(op *ir.Op) []int {
	if len(op.Results) != 1 {
		return nil
	}
	var fit []int
	t := op.Results[0].Type
	for _, i := range table[op.Kind].inPlace {
		if i < len(op.Operands) {
			if u := op.Operands[i].Type; u.Elem.Size() == t.Elem.Size() && u.NumElements() == t.NumElements() {
				fit = append(fit, i)
			}
		}
	}
	return fit
}
