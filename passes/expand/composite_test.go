package expand

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ppc/internal/optest"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/facts"
	"ppc/ir/verify"
)

// Every composite op, and no other, is made of other ops.
func TestOp(t *testing.T) {
	optest.Each(t, func(t *testing.T, k ir.Kind) {
		if has := compositions[k] != nil; has != k.Has(ir.Composite) {
			t.Fatalf("%s has a row in compositions, passes/expand/composite.go: %v; is composite in ir/dialect/table.go: %v", k, has, k.Has(ir.Composite))
		}
		if k.Has(ir.Composite) {
			testComposition(t, k)
		}
	})
}

// testComposition holds what k is made of against what the evaluator says of it,
// in each precision, on numbers that functions get wrong among others.
func testComposition(t *testing.T, k ir.Kind) {
	edges := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, -2, 1e-7, -1e-7, 1e-30, 6, -6, 9, 27, -3, -2.5, 1e20, -1e20, math.Inf(1), math.Inf(-1), math.NaN(), 0.999999, -0.999999}
	for _, elem := range []ir.DType{ir.F64, ir.F32, ir.BF16} {
		r := rand.New(rand.NewPCG(uint64(k), uint64(elem)))
		f := ir.NewFunc("main")
		m := &ir.Module{Funcs: []*ir.Func{f}, Form: ir.Rotated | ir.Gathered | ir.Staged | ir.Checkpointed | ir.Differentiated | ir.Optimized}
		b := ir.NewBuilder(f)
		typ := ir.Tensor(elem, 4, 60)
		var operands []*ir.Value
		var args []*ir.Literal
		for range k.NumOperands().Max {
			operands = append(operands, f.NewArg(f.Body, typ, ""))
			vs := make([]float64, 240)
			for i := range vs {
				vs[i] = r.NormFloat64() * []float64{0.3, 1, 10}[i%3]
				if i%4 == 0 {
					vs[i] = edges[r.IntN(len(edges))]
				}
			}
			args = append(args, ir.Floats64(typ, vs...))
		}
		b.Return(b.Emit(k, operands, ir.AttrsOf(facts.Named("k", ir.I64Attr(5))), nil, nil).Results...)
		want, err := eval.Run(m, f, args, eval.Options{})
		if err != nil {
			t.Fatalf("%s: %v", k, err)
		}
		if err := Expand(nil, m); err != nil {
			t.Fatalf("%s: %v", k, err)
		}
		m.Form |= ir.Expanded
		if err := verify.Verify(m); err != nil {
			t.Fatalf("%s: %v", k, err)
		}
		got, err := eval.Run(m, m.Main(), args, eval.Options{})
		if err != nil {
			t.Fatalf("%s: %v", k, err)
		}
		tol := map[ir.DType]float64{ir.F64: 4e-13, ir.F32: 3e-6, ir.BF16: 1.0 / 128}[elem]
		for i := range want {
			for e := range want[i].Type.NumElements() {
				x, y := want[i].Float(e), got[i].Float(e)
				if x != y && !(math.IsNaN(x) && math.IsNaN(y)) && !(math.Abs(x-y) <= tol*max(math.Abs(x), tolerable(k, elem))) {
					t.Errorf("%s of %s: %v: got %v, want %v", k, elem, args[0].Float(min(e, 239)), y, x)
					break
				}
			}
		}
	}
}

// tolerable is the magnitude below which the error is absolute: functions that
// subtract lose what stands near their zeros, and smaller numbers than a type
// has.
func tolerable(k ir.Kind, elem ir.DType) float64 {
	if k == ir.Lgamma || k == ir.Digamma || k == ir.Atanh || k == ir.Acosh {
		return 1
	}
	if elem == ir.F64 {
		return 1e-300
	}
	return 1e-30
}

// Functions of complex numbers that HLO has opcodes for are left as they are.
func TestCompositeComplex(t *testing.T) {
	f := ir.NewFunc("main")
	b := ir.NewBuilder(f)
	x := f.NewArg(f.Body, ir.Tensor(ir.C64, 3), "x")
	b.Return(b.Unary(ir.Square, x), b.Unary(ir.Asinh, x))
	m := &ir.Module{Funcs: []*ir.Func{f}}
	if err := Expand(nil, m); err != nil {
		t.Fatal(err)
	}
	var names []string
	f.Body.Walk(func(op *ir.Op) { names = append(names, op.Name()) })
	if got, want := strings.Join(names, " "), "stablehlo.multiply chlo.asinh func.return"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What Hurwitz's zeta function and the polygamma function are made of agrees with the
// evaluator, poles and what is outside of their domains included. Powers lose an ulp of
// their base for each unit of the exponent.
func TestZeta(t *testing.T) {
	xs := []float64{-2, 0, 0.5, 1, 1.0001, 1.5, 2, 2.5, 3, 4, 7.3, 12, 20, 1e6, math.Inf(1), math.NaN()}
	qs := []float64{math.Inf(-1), -3, -2.2, -1, -0.5, math.Copysign(0, -1), 0, 0.01, 0.3, 1, 2.5, 17.25, 1e3, math.Inf(1), math.NaN()}
	for _, name := range []string{"chlo.zeta", "chlo.polygamma"} {
		for elem, ulp := range map[ir.DType]float64{ir.F64: 0x1p-52, ir.F32: 0x1p-23} {
			typ := ir.Tensor(elem, len(xs), len(qs))
			var x, q []float64
			for i := range typ.NumElements() {
				x, q = append(x, xs[i/len(qs)]), append(q, qs[i%len(qs)])
			}
			f := ir.NewFunc("main")
			b := ir.NewBuilder(f)
			operands := []*ir.Value{f.NewArg(f.Body, typ, "x"), f.NewArg(f.Body, typ, "q")}
			op := b.Emit(ir.Unknown, operands, nil, nil, []*ir.Type{typ})
			op.Spelling = name
			b.Return(op.Result())
			m := &ir.Module{Funcs: []*ir.Func{f}}
			args := []*ir.Literal{ir.Floats64(typ, x...), ir.Floats64(typ, q...)}
			want, err := eval.Run(m, f, args, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := Expand(nil, m); err != nil {
				t.Fatal(err)
			}
			if err := verify.Verify(m); err != nil {
				t.Fatal(err)
			}
			got, err := eval.Run(m, f, args, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range x {
				want, got := want[0].Float(i), got[0].Float(i)
				if q[i] < 0 && x[i] != 2 && !math.IsNaN(want) && !math.IsInf(want, 0) { // the terms cancel
					continue
				}
				if want != got && !(math.IsNaN(want) && math.IsNaN(got)) && !(math.Abs(want-got) <= (8+4*x[i])*ulp*math.Abs(want)) && !(math.Abs(got-want) < 1e-36) {
					t.Errorf("%s of %v and %v as %s: got %v, want %v", name, x[i], q[i], elem, got, want)
				}
			}
		}
	}
}
