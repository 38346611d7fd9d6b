package runtime_test

import (
	"fmt"
	"maps"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ppc/internal/optest"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/verify"
	"ppc/runtime"
	"ppc/runtime/kernel"
	"ppc/runtime/kernel/scalar"
)

// computed are the element types that have kernels.
func computed() []ir.DType {
	var ts []ir.DType
	for _, t := range ir.DTypes() {
		if kernel.Check(ir.Tensor(t)) == nil {
			ts = append(ts, t)
		}
	}
	return ts
}

var specials = map[ir.Class][]float64{
	ir.Floating: {0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 0.5, -2.5, 1e-30, 3e38, 65520, 2.5, 1e-7},
	ir.Signed:   {0, 1, -1, 2, -2, 127, -128, -1 << 31, 1<<31 - 1, -1 << 63, 7, 64},
	ir.Unsigned: {0, 1, 2, 255, 1<<32 - 1, 1<<64 - 4096, 3, 31, 64, 9},
	ir.Boolean:  {0, 1},
	ir.Complex:  {0, 1, -1, 0.5, -2.5, 3},
}

// random makes a literal of type t: where edges is set, with the numbers that
// programs get wrong among the others.
func random(rng *rand.Rand, t *ir.Type, edges bool) *ir.Literal {
	size, n := t.Elem.Size(), t.NumElements()
	l := &ir.Literal{Type: t, Data: make([]byte, size*n)}
	part := t.Elem.Part()
	for at := 0; at < len(l.Data); at += part.Size() {
		v := rng.NormFloat64() * 3
		switch class := t.Elem.Class(); {
		case edges && rng.IntN(2) == 0:
			v = specials[class][rng.IntN(len(specials[class]))]
		case class == ir.Boolean:
			v = float64(rng.IntN(2))
		case class == ir.Unsigned:
			v = float64(rng.IntN(12))
		case class == ir.Signed:
			v = float64(rng.IntN(25) - 12)
		case t.Elem == ir.F8E8M0FNU: // has no negative numbers
			v = math.Abs(v)
		}
		if t.Elem.IsInt() {
			part.PutInt(l.Data[at:], wide(t.Elem, v))
		} else {
			part.PutFloat(l.Data[at:], v)
		}
	}
	return l
}

// wide is v as 64 bits, for unsigned types beyond the range of int64 too.
func wide(t ir.DType, v float64) int64 {
	switch {
	case v >= 1<<63:
		return int64(uint64(v))
	case v <= -(1 << 63):
		return math.MinInt64
	}
	return int64(v)
}

// How far the runtime may be from the evaluator, relative to the larger. Of
// elementwise ops the two round alike in f32 and f64, but for functions that have
// a bound of their own; 16-bit floats the
// evaluator computes in float64 where the runtime goes through f32. Sums the
// evaluator takes in float64 and in order, the runtime in the type, products
// fused and in blocks.
var (
	elementwise = map[ir.DType]float64{ir.BF16: 1.0 / 128, ir.F16: 1.0 / 1024, ir.C64: 1e-6, ir.C128: 1e-14}
	sums        = map[ir.DType]float64{ir.BF16: 1.0 / 128, ir.F16: 1.0 / 1024, ir.F32: 4e-6, ir.F64: 1e-14, ir.C64: 4e-6, ir.C128: 1e-14}
)

func sameNumbers(t *testing.T, what string, got, want *ir.Literal, tol float64) {
	t.Helper()
	if !got.Type.Equal(want.Type) {
		t.Errorf("%s: got %s, want %s", what, got.Type, want.Type)
		return
	}
	for i := range got.Type.NumElements() {
		if a, b := got.Complex(i), want.Complex(i); got.Type.Elem.IsComplex() {
			if (!near(real(a), real(b), tol) || !near(imag(a), imag(b), tol)) && !(cmplx.Abs(a-b) <= tol*cmplx.Abs(b)) {
				t.Errorf("%s: element %d is %v, want %v", what, i, a, b)
				return
			}
		} else if got.Type.Elem.IsFloat() {
			if a, b := got.Float(i), want.Float(i); !near(a, b, tol) {
				t.Errorf("%s: element %d is %v, want %v", what, i, a, b)
				return
			}
		} else if a, b := got.Int(i), want.Int(i); a != b {
			t.Errorf("%s: element %d is %d, want %d", what, i, a, b)
			return
		}
	}
}

func near(a, b, tol float64) bool {
	if a == b || a != a && b != b {
		return true
	}
	return math.Abs(a-b) <= tol*max(math.Abs(a), math.Abs(b), 1)
}

// agree runs a program of one device on random arguments in both evaluators.
func agree(t *testing.T, what string, tol map[ir.DType]float64, rng *rand.Rand, edges bool, params []*ir.Type, build func(b *ir.Builder, in []*ir.Value) []*ir.Value) {
	t.Helper()
	m := program(1, params, build)
	args := make([]*ir.Literal, len(params))
	for i, p := range params {
		args[i] = random(rng, p, edges)
	}
	agreeOn(t, what, tol, m, [][]*ir.Literal{args})
}

func agreeOn(t *testing.T, what string, tol map[ir.DType]float64, m *ir.Module, args [][]*ir.Literal, opts ...runtime.Option) {
	t.Helper()
	if err := verify.Verify(m); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	want, err := eval.RunDevices(m, m.Main(), args, eval.Options{})
	exe, loadErr := runtime.Load(m)
	if checkErr := runtime.Check(m); fmt.Sprint(checkErr) != fmt.Sprint(loadErr) {
		t.Errorf("%s: Check says %v, Load %v", what, checkErr, loadErr)
	}
	if err != nil && loadErr != nil { // atan2 of complex numbers, say
		return
	}
	if err != nil || loadErr != nil {
		t.Fatalf("%s: the evaluator says %v, the runtime %v", what, err, loadErr)
	}
	got, err := exe.Run(t.Context(), args, append(opts, runtime.PoisonBuffers())...)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for d := range want {
		for i, w := range want[d] {
			sameNumbers(t, fmt.Sprintf("%s: device %d: result %d", what, d, i), got[d][i], w, tol[w.Type.Elem])
		}
	}
}

// decomposes reports whether the passes make other ops of one of kind k on elements
// of type elem, or none can be: erf takes no complex numbers.
func decomposes(k ir.Kind, elem ir.DType) bool {
	op := &ir.Op{Kind: k, Operands: []*ir.Value{{Type: ir.Tensor(elem)}}}
	if op.Decomposes() || !k.Has(ir.InHLO) {
		return op.Decomposes()
	}
	_, illegal := ir.Infer(op)
	return illegal != nil
}

// hasRow reports whether ops of kind k may stand in a program for one device.
func hasRow(k ir.Kind) bool {
	return !k.Has(ir.Terminator) && !k.Has(ir.Pipeline) && !decomposes(k, ir.C64) && k != ir.Unknown && !strings.HasPrefix(k.String(), "sdy.")
}

// untested are ops that no case of their own is of.
var untested = map[ir.Kind]string{
	ir.Constant: "is in every program", ir.Call: "is of several functions: TestCall", ir.CompositeCall: "likewise", ir.CustomCall: "its target alone knows",
}

// Every op that may stand in a program for one device has a row, and a case, in
// which it computes what the evaluator says, on every element type that it takes.
func TestOp(t *testing.T) {
	cases := make(map[ir.Kind][]opCase)
	for i, c := range structureCases {
		cases[c.kind] = append(cases[c.kind], opCase{c.name, func(t *testing.T) { testStructure(t, i) }})
	}
	for _, name := range slices.Sorted(maps.Keys(collectiveCases)) {
		ks := optest.OpsOf(name)
		if len(ks) == 0 {
			t.Errorf("the case %q is called after no op", name)
		}
		for _, k := range ks {
			cases[k] = append(cases[k], opCase{name, func(t *testing.T) { testCollective(t, name) }})
		}
	}
	optest.Each(t, func(t *testing.T, k ir.Kind) {
		if has := runtime.HasRow(k); has != hasRow(k) {
			t.Errorf("%s has a row in %s: %v, want %v", k, rowsOf(k), has, hasRow(k))
		}
		if k.Has(ir.Elementwise) || k == ir.BitcastConvert {
			if runtime.HasRow(k) {
				t.Run("every type", func(t *testing.T) { testElementwise(t, k) })
			}
		} else if reason := untested[k]; hasRow(k) && len(cases[k]) == 0 && reason == "" {
			t.Errorf("%s has no case in structureCases, runtime/structure_test.go, or collectiveCases, runtime/collective_test.go", k)
		}
		for _, c := range cases[k] {
			t.Run(c.name, c.run)
		}
	})
}

// rowsOf are the files with the table that an op of kind k has a row in.
func rowsOf(k ir.Kind) string {
	if n := k.NumOperands(); k.Has(ir.Elementwise) && n.Max == 1 {
		return "runtime/kernel/unary.go"
	} else if k.Has(ir.Elementwise) && n.Max == 2 {
		return "runtime/kernel/binary.go"
	}
	return "runtime/rows.go, runtime/meetings.go or runtime/kernel/table.go"
}

type opCase struct {
	name string
	run  func(t *testing.T)
}

// testElementwise runs k on every element type that it takes.
func testElementwise(t *testing.T, k ir.Kind) {
	special := map[ir.Kind]func(t *testing.T, rng *rand.Rand, elem ir.DType){
		ir.Convert: testConvert, ir.BitcastConvert: testBitcast, ir.Compare: testCompare, ir.Select: testSelect, ir.Clamp: testClamp, ir.ReducePrecision: testReducePrecision,
	}
	rng := rand.New(rand.NewPCG(1, uint64(k)))
	n := 0
	for _, elem := range computed() {
		if test := special[k]; test != nil {
			test(t, rng, elem)
			n++
			continue
		}
		params := make([]*ir.Type, k.NumOperands().Max)
		for i := range params {
			params[i] = ir.Tensor(elem, 3, 300)
		}
		if decomposes(k, elem) || !infers(k, params) {
			continue
		}
		n++
		tol := elementwise
		if units := scalar.Bound(k, elem); units > 0 {
			unit := map[ir.DType]float64{ir.F32: 0x1p-23, ir.F64: 0x1p-52}[elem]
			tol = map[ir.DType]float64{elem: units * unit}
		}
		agree(t, elem.String(), tol, rng, !elem.IsComplex(), params, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
			return b.Emit(k, in, nil, nil, nil).Results
		})
	}
	if n == 0 {
		t.Error("no element type")
	}
}

// infers reports whether an op of kind k takes operands of these types.
func infers(k ir.Kind, params []*ir.Type) (ok bool) {
	defer func() { ok = recover() == nil }()
	program(1, params, func(b *ir.Builder, in []*ir.Value) []*ir.Value { return b.Emit(k, in, nil, nil, nil).Results })
	return
}

func testConvert(t *testing.T, rng *rand.Rand, from ir.DType) {
	for _, to := range computed() {
		agree(t, fmt.Sprint(from, " to ", to), elementwise, rng, true, []*ir.Type{ir.Tensor(from, 700)}, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
			return []*ir.Value{b.Convert(in[0], to)}
		})
	}
}

func testBitcast(t *testing.T, rng *rand.Rand, from ir.DType) {
	for _, to := range computed() {
		if from == ir.I1 || to == ir.I1 || from.IsComplex() || to.IsComplex() {
			continue
		}
		in, out := []int{5, 8}, []int{5, 8}
		switch a, b := from.Bits(), to.Bits(); {
		case a%b != 0 && b%a != 0:
			continue
		case a > b:
			out = append(out, a/b)
		case a < b:
			in = append(in, b/a)
		}
		agree(t, fmt.Sprint(from, " to ", to), elementwise, rng, false, []*ir.Type{ir.Tensor(from, in...)}, func(b *ir.Builder, v []*ir.Value) []*ir.Value {
			return b.Emit(ir.BitcastConvert, v, nil, nil, []*ir.Type{ir.Tensor(to, out...)}).Results
		})
	}
}

func testCompare(t *testing.T, rng *rand.Rand, elem ir.DType) {
	directions := []string{"EQ", "NE", "GE", "GT", "LE", "LT"}
	if elem.IsComplex() {
		directions = directions[:2]
	}
	x := ir.Tensor(elem, 600)
	agree(t, elem.String(), elementwise, rng, true, []*ir.Type{x, x}, func(b *ir.Builder, in []*ir.Value) (out []*ir.Value) {
		for _, d := range directions {
			out = append(out, b.Compare(d, in[0], in[1]))
			if elem.IsFloat() {
				attrs := ir.AttrsOf(ir.NamedAttr{Name: "comparison_direction", Attr: ir.HLOEnum("comparison_direction", d)},
					ir.NamedAttr{Name: "compare_type", Attr: ir.HLOEnum("comparison_type", "TOTALORDER")})
				out = append(out, b.Emit(ir.Compare, in, attrs, nil, nil).Result())
			}
		}
		return out
	})
}

func testSelect(t *testing.T, rng *rand.Rand, elem ir.DType) {
	x, p := ir.Tensor(elem, 50), ir.Tensor(ir.I1, 50)
	agree(t, elem.String(), elementwise, rng, true, []*ir.Type{p, ir.Tensor(ir.I1), x, x}, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		return []*ir.Value{b.Select(in[0], in[2], in[3]), b.Select(in[1], in[2], in[3])}
	})
}

func testClamp(t *testing.T, rng *rand.Rand, elem ir.DType) {
	x, s := ir.Tensor(elem, 600), ir.Tensor(elem)
	agree(t, elem.String(), elementwise, rng, !elem.IsComplex(), []*ir.Type{x, x, s, s}, func(b *ir.Builder, in []*ir.Value) (out []*ir.Value) {
		for _, bounds := range [][2]int{{2, 3}, {1, 3}, {2, 1}, {1, 1}} {
			out = append(out, b.Emit(ir.Clamp, []*ir.Value{in[bounds[0]], in[0], in[bounds[1]]}, nil, nil, nil).Result())
		}
		return out
	})
}

func testReducePrecision(t *testing.T, rng *rand.Rand, elem ir.DType) {
	if !elem.IsFloat() {
		return
	}
	for _, bits := range [][2]int{{5, 10}, {8, 7}, {4, 3}, {11, 52}, {2, 0}} {
		agree(t, fmt.Sprint(elem, bits), elementwise, rng, true, []*ir.Type{ir.Tensor(elem, 600)}, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
			return b.Emit(ir.ReducePrecision, in, ir.AttrsOf(ir.NamedAttr{Name: "exponent_bits", Attr: ir.I64Attr(bits[0])}, ir.NamedAttr{Name: "mantissa_bits", Attr: ir.I64Attr(bits[1])}), nil, nil).Results
		})
	}
}
