package rounding

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"ppc/ir"
)

// ExposeTerms makes the terms of the sums that scalar results of main are made
// of results too, so that their rounding can be looked at one by one: that of
// a sum may be nothing by chance.
func ExposeTerms(m *ir.Module) {
	f := m.Main()
	ret := f.Return()
	seen := make(map[string]bool)
	for i, r := range slices.Clone(f.Results) {
		name := r.Attrs.Str(ir.KeyName)
		if name == "" {
			name = fmt.Sprint("out", i)
		}
		if !scalarFloat(ret.Operands[i]) || seen[name] {
			continue
		}
		seen[name] = true
		for _, t := range termsOf(ret.Operands[i]) {
			ret.Operands = append(ret.Operands, t)
			f.Results = append(f.Results, ir.Result{Type: t.Type, Attrs: ir.AttrsOf(ir.NamedAttr{Name: "pp.terms_of", Attr: ir.Str(name)})})
		}
	}
}

func scalarFloat(v *ir.Value) bool {
	return v.Type.IsTensor() && v.Type.Rank() == 0 && v.Type.Elem.IsFloat()
}

// termsOf are the operands of the reductions that v is computed from by
// operations on single numbers alone.
func termsOf(v *ir.Value) []*ir.Value {
	var terms []*ir.Value
	seen := make(map[*ir.Value]bool)
	var visit func(v *ir.Value)
	visit = func(v *ir.Value) {
		if seen[v] || v.Def == nil || !scalarFloat(v) {
			return
		}
		seen[v] = true
		if t := v.Def.Operands; v.Def.Kind == ir.Reduce && len(v.Def.Results) == 1 && t[0].Type.Elem.IsFloat() {
			terms = append(terms, t[0])
			return
		}
		for _, x := range v.Def.Operands {
			visit(x)
		}
	}
	visit(v)
	return terms
}

// OfSum is the relative error of the sum of the terms want where they are rounded to own: what
// these have, as if the errors of the examples, or other parts of the terms, were independent, and
// what the additions lose, each the part lost of a term, which is much where terms cancel.
func OfSum(want, own *ir.Literal, lost float64) float64 {
	n := want.Type.NumElements()
	row := n / leadingRows(want.Type.Shape)
	sum, squares := 0.0, 0.0
	for lo := 0; lo < n; lo += row {
		off := 0.0
		for k := lo; k < lo+row; k++ {
			sum += want.Float(k)
			off += own.Float(k) - want.Float(k)
			squares += lost * want.Float(k) * lost * want.Float(k)
		}
		squares += off * off
	}
	rel := math.Sqrt(squares) / math.Abs(sum)
	if sum == 0 || math.IsInf(rel, 0) || math.IsNaN(rel) {
		return 0
	}
	return rel
}

// leadingRows is the product of the fewest leading sizes that is at least 16,
// or of all.
func leadingRows(shape []int) int {
	rows := 1
	for _, n := range shape {
		if rows < 16 {
			rows *= n
		}
	}
	return max(rows, 1)
}

// Moved is l with every number moved at random by up to what rounding to its type costs.
func Moved(l *ir.Literal, r *rand.Rand) *ir.Literal {
	t, out := l.Type.Elem, &ir.Literal{Type: l.Type, Data: slices.Clone(l.Data)}
	unit := Unit(t)
	for at := 0; at < len(out.Data); at += t.Size() {
		v := t.GetFloat(out.Data[at:])
		t.PutFloat(out.Data[at:], v+v*unit*(2*r.Float64()-1))
	}
	return out
}
