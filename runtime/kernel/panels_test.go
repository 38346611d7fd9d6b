package kernel

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ppc/ir"
)

// TestPanels holds products with operands in panels to have the bits of those that bring
// them into panels themselves.
func TestPanels(t *testing.T) {
	if fastest.vector == 0 { // panels are of the tiers with vectors
		t.Skip("no tier has panels")
	}
	for _, c := range []struct {
		l, r *ir.Type
		d    ir.Dot
		dim  int // along which there are parts
	}{
		{ir.Tensor(ir.F32, 64, 600), ir.Tensor(ir.F32, 600, 530), ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}, 0},
		{ir.Tensor(ir.F32, 64, 600), ir.Tensor(ir.F32, 600, 530), ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}, 1},
		{ir.Tensor(ir.F32, 64, 530), ir.Tensor(ir.F32, 600, 530), ir.Dot{LhsContract: []int{1}, RhsContract: []int{1}}, 0},
		{ir.Tensor(ir.F32, 64, 530), ir.Tensor(ir.F32, 600, 530), ir.Dot{LhsContract: []int{1}, RhsContract: []int{1}}, 1},
		{ir.Tensor(ir.F32, 64, 512), ir.Tensor(ir.F32, 16, 512), ir.Dot{LhsContract: []int{1}, RhsContract: []int{1}}, 0}, // a part ends within the last panel, whose rows are full squares
		{ir.Tensor(ir.F64, 64, 300), ir.Tensor(ir.F64, 300, 270), ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}, 1},
		{ir.Tensor(ir.F32, 2, 64, 260), ir.Tensor(ir.F32, 2, 260, 8, 30), ir.Dot{LhsBatch: []int{0}, RhsBatch: []int{0}, LhsContract: []int{2}, RhsContract: []int{1}}, 1},
		{ir.Tensor(ir.F32, 2, 64, 260), ir.Tensor(ir.F32, 2, 260, 8, 30), ir.Dot{LhsBatch: []int{0}, RhsBatch: []int{0}, LhsContract: []int{2}, RhsContract: []int{1}}, 2},
		{ir.Tensor(ir.F32, 2, 64, 8, 30), ir.Tensor(ir.F32, 2, 260, 8, 30), ir.Dot{LhsBatch: []int{0}, RhsBatch: []int{0}, LhsContract: []int{2, 3}, RhsContract: []int{2, 3}}, 1},
	} {
		t.Run(fmt.Sprint(c.r, c.d.RhsContract, c.dim), func(t *testing.T) {
			const n = 2
			f := ir.NewFunc("f")
			op := ir.NewBuilder(f).Dot(f.NewArg(f.Body, c.l, ""), f.NewArg(f.Body, c.r, ""), c.d).Def
			shape := slices.Clone(c.r.Shape)
			shape[c.dim] /= n
			part := c.r.WithShape(shape...)
			p := PanelsOf(op, part, c.dim)
			if p == nil {
				t.Fatal("there are no panels of it")
			}
			x, y := numbers(c.l), numbers(c.r)
			var parts []Mem
			for i := range n {
				m := NewMem(part.Bytes())
				run := ir.Product(shape[c.dim:]) * c.r.Elem.Size()
				MoveRows(m, run, y[i*run:], n*run, run, len(m)/run)
				parts = append(parts, m)
			}
			want, got, made := NewMem(op.Result().Type.Bytes()), NewMem(op.Result().Type.Bytes()), NewMem(p.Bytes())
			Poison(made, c.r.Elem)
			plain, err := Build(op)
			if err != nil {
				t.Fatal(err)
			}
			w := new(Work)
			plain(w, []Mem{want}, []Mem{x, y})
			p.Make(w, made, parts)
			p.Product(op)(w, []Mem{got}, []Mem{x, made})
			if !bytes.Equal(got, want) {
				t.Error("not the same bits")
			}
		})
	}
}

// numbers are elements of a tensor of floats of type t.
func numbers(t *ir.Type) Mem {
	r := rand.New(rand.NewPCG(uint64(t.NumElements()), 1))
	m := NewMem(t.Bytes())
	if t.Elem == ir.F64 {
		for i, x := 0, View[float64](m); i < len(x); i++ {
			x[i] = r.NormFloat64()
		}
		return m
	}
	for i, x := 0, View[float32](m); i < len(x); i++ {
		x[i] = float32(r.NormFloat64())
	}
	return m
}
