package dialect_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ppc/ir"
	"ppc/ir/eval"
)

// testRow holds what the row of k says against what k computes.
func testRow(t *testing.T, k ir.Kind) {
	if ir.KindByName(k.String()) != k {
		t.Error("is not found by its name")
	}
	if k.Doc() == "" {
		t.Error("has no doc")
	}
	for _, s := range k.Specs() {
		if k.Spec(s.Name).Name != s.Name {
			t.Errorf("attribute %s is not found", s.Name)
		}
	}
	if k.Combines() != (k.Neutral(ir.F32) != nil) {
		t.Errorf("combines: %v, has a neutral number: %v", k.Combines(), k.Neutral(ir.F32) != nil)
	}
	if k.Combines() {
		testNeutral(t, k)
		testIdempotent(t, k)
	}
	op := exampleOp(t, k)
	testSource(t, k, op)
	testLooksBack(t, op)
	testRegions(t, k, op)
	if op == nil || k.Has(ir.Collective) || k.Has(ir.Terminator) {
		return
	}
	testLinear(t, op)
	testMoves(t, op)
	testLeftEmpty(t, op)
}

// leftEmpty says of ops why a column of their rows is empty that what they compute
// would allow.
var leftEmpty = map[ir.Kind]string{
	ir.Imag:            "Linear: what is unreduced is reduced before it, which costs bytes only where complex numbers are summed over devices",
	ir.Real:            "Linear: as of imag; Moves: a part of an element is none",
	ir.ComplexOp:       "Linear: as of imag; Moves: a part of an element is none",
	ir.ReducePrecision: "Linear: it rounds, the numbers of the test excepted",
	ir.Maximum:         "Moves: it chooses by comparing",
	ir.Minimum:         "Moves: it chooses by comparing",
	ir.Clamp:           "Moves: it chooses by comparing; Linear: between its bounds alone",
	ir.Sort:            "Moves: it chooses by comparing",
	ir.Multiply:        "Linear: in either operand, not in both",
	ir.DotGeneral:      "Linear: in either operand, not in both",
	ir.RaggedDot:       "Linear: in either operand, not in both",
	ir.Convolution:     "Linear: in either operand, not in both",
	ir.TriangularSolve: "Linear: in the second operand alone; what is unreduced is reduced before it",
	ir.RngBitGenerator: "Factors: package partition has a rule that depends on the algorithm",
	ir.BroadcastInDim:  "Moves: it repeats elements, and a weight that is repeated is no weight",
	ir.Gather:          "Moves: what it looks up in a weight is an activation; Linear: its result may be larger than its operand, and reducing it later move more bytes",
	ir.Pad:             "Moves: it has the padding value beside",
	ir.Scatter:         "Moves: it combines elements",
	ir.Reduce:          "Linear: where the initial value is known to be neutral, which that of the example is not",
	ir.ReduceWindow:    "Linear: windows that overlap make more elements of a sum than it has",
}

// testLeftEmpty: a column of the row is empty only where what op computes asks for
// that: a missing one would cost collectives that nothing but a count of them
// shows.
func testLeftEmpty(t *testing.T, op *ir.Op) {
	k := op.Kind
	apart := func(v *ir.Value) bool { return !v.Type.IsTensor() }
	if !k.Has(ir.Pure) || k.Has(ir.TensorRegions) || k.Has(ir.Relayout) || k.Has(ir.Pipeline) || op.Attrs.Has("callee") || slices.ContainsFunc(slices.Concat(op.Operands, op.Results), apart) {
		return
	}
	var empty []string
	ranked := func(v *ir.Value) bool { return v.Type.Rank() > 0 }
	if ir.FactorsOf(op) == nil && slices.ContainsFunc(slices.Concat(op.Operands, op.Results), ranked) {
		empty = append(empty, "Factors")
	}
	answers := func(v *ir.Value) bool { return v.Type.Elem == ir.I1 }
	if len(op.LinearIn()) == 0 && !slices.ContainsFunc(op.Results, answers) && computesSums(t, op) {
		empty = append(empty, "Linear")
	}
	if len(op.Moves()) == 0 && givesElements(t, op) {
		empty = append(empty, "Moves")
	}
	if (len(empty) > 0) != (leftEmpty[k] != "") {
		t.Errorf("its row lacks %v, in ir/dialect/table.go; the reason in leftEmpty, ir/dialect/row_test.go, is %q", empty, leftEmpty[k])
	}
}

// computesSums reports whether op is linear in one of its floating-point operands,
// or in all of them together.
func computesSums(t *testing.T, op *ir.Op) bool {
	var floats [][]int
	var all []int
	for i, v := range op.Operands {
		if v.Type.IsTensor() && v.Type.Elem.IsFloat() {
			floats, all = append(floats, []int{i}), append(all, i)
		}
	}
	return slices.ContainsFunc(append(floats, all), func(in []int) bool { return len(in) > 0 && nonlinear(t, op, in, fractionsOf) == "" })
}

// exampleOp is the op of the example of k.
func exampleOp(t *testing.T, k ir.Kind) (found *ir.Op) {
	t.Helper()
	parseExample(t, k).Main().Body.Walk(func(op *ir.Op) {
		if op.Kind == k {
			found = op
		}
	})
	return found
}

// testNeutral: a number that k combines with the neutral one stays.
func testNeutral(t *testing.T, k ir.Kind) {
	for _, elem := range []ir.DType{ir.F64, ir.BF16, ir.I32, ir.I8, ir.UI8, ir.I1} {
		x := numbersOf(rand.New(rand.NewPCG(1, 1)), ir.Tensor(elem, 8))
		f := ir.NewFunc("main")
		v := f.NewArg(f.Body, x.Type, "")
		b := ir.NewBuilder(f)
		op := &ir.Op{Kind: k, Operands: []*ir.Value{v, v}}
		if _, broken := ir.Infer(op); broken != nil {
			continue
		}
		n := b.Broadcast(b.Const(k.Neutral(elem)), x.Type.Shape)
		b.Return(b.Binary(k, v, n), b.Binary(k, n, v))
		out, err := eval.Run(&ir.Module{Funcs: []*ir.Func{f}}, f, []*ir.Literal{x}, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range out {
			if !bytes.Equal(got.Expand(), x.Expand()) {
				t.Errorf("%s: combined with %s, %s is %s", elem, k.Neutral(elem), x, got)
			}
		}
	}
}

// testIdempotent: k has the trait if and only if combining any number with itself
// gives it back.
func testIdempotent(t *testing.T, k ir.Kind) {
	is := true
	for _, elem := range []ir.DType{ir.F64, ir.BF16, ir.I32, ir.I8, ir.UI8, ir.I1} {
		x := numbersOf(rand.New(rand.NewPCG(4, 1)), ir.Tensor(elem, 8))
		f := ir.NewFunc("main")
		v := f.NewArg(f.Body, x.Type, "")
		if _, broken := ir.Infer(&ir.Op{Kind: k, Operands: []*ir.Value{v, v}}); broken != nil {
			continue
		}
		b := ir.NewBuilder(f)
		b.Return(b.Binary(k, v, v))
		out, err := eval.Run(&ir.Module{Funcs: []*ir.Func{f}}, f, []*ir.Literal{x}, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		is = is && bytes.Equal(out[0].Expand(), x.Expand())
	}
	if is != k.Has(ir.Idempotent) {
		t.Errorf("combining a number with itself gives it back: %v, is idempotent: %v", is, k.Has(ir.Idempotent))
	}
}

// testSource: k has the trait if and only if it has no operands, no effect, and a
// sharding rule, by which any device computes any shard.
func testSource(t *testing.T, k ir.Kind, op *ir.Op) {
	is := k.Has(ir.Pure) && !k.Has(ir.Terminator) && k.NumOperands() == ir.Exactly(0) && op != nil && ir.FactorsOf(op) != nil
	if is != k.Has(ir.Source) {
		t.Errorf("has no operands, no effect and a sharding rule: %v, is a source: %v", is, k.Has(ir.Source))
	}
}

// testLooksBack holds what the rules of op say where other ops define its operands,
// and where these have other shardings, against what they say of it as it is: where that
// differs the row has the trait. A sharding that op states may leave axes unreduced.
func testLooksBack(t *testing.T, op *ir.Op) {
	if op == nil || len(op.Regions) > 0 {
		return
	}
	unreduced := ir.Sharding{Unreduced: ir.Axs("x"), ReducedBy: "max"}
	say := func(op *ir.Op) string {
		types, r := ir.InferOp(op)
		return fmt.Sprint(types, r)
	}
	stating := *op
	for _, a := range op.Attrs {
		if s, ok := a.Attr.(*ir.Sharding); ok {
			s = s.Clone()
			s.Unreduced, s.ReducedBy = unreduced.Unreduced, unreduced.ReducedBy
			stating.Attrs.Set(a.Name, s)
		}
	}
	looks := false
	for _, op := range []*ir.Op{op, &stating} {
		want := say(op)
		for _, sharding := range []*ir.Sharding{nil, &unreduced} {
			for _, number := range []float64{0, 1, 1000} {
				other := *op
				other.Operands = nil
				for _, x := range op.Operands {
					v := &ir.Value{ID: x.ID, Type: x.Type, Sharding: sharding}
					if x.Type.IsTensor() && x.Type.IsStatic() && x.Type.Quant == nil {
						v.Def = &ir.Op{Kind: ir.Constant, Attrs: ir.Attrs{{Name: "value", Attr: ir.SplatOf(x.Type, number)}}, Results: []*ir.Value{v}}
					} else {
						v.Block = new(ir.Block)
					}
					other.Operands = append(other.Operands, v)
				}
				looks = looks || say(&other) != want
			}
		}
	}
	if has := op.Kind.Has(ir.LooksBack); looks != has {
		t.Errorf("what the rules of %s say depends on more of its operands than their types: %v; has the trait: %v", op.Name(), looks, has)
	}
}

// testRegions: the last region of a loop takes and returns its carries; the regions
// of a branch take nothing and return its results, and there are several.
func testRegions(t *testing.T, k ir.Kind, op *ir.Op) {
	if k.Has(ir.Loop) {
		if body := op.Regions[len(op.Regions)-1]; len(op.Results) != len(body.Terminator().Operands) || len(body.Args) == 0 {
			t.Errorf("is a loop whose body has %d arguments and returns %d values, for %d results", len(body.Args), len(body.Terminator().Operands), len(op.Results))
		}
	}
	branches := op != nil && k.Has(ir.TensorRegions) && len(op.Regions) > 1
	for i := 0; branches && i < len(op.Regions); i++ {
		r := op.Regions[i]
		branches = len(r.Args) == 0 && len(r.Terminator().Operands) == len(op.Results)
	}
	if branches != k.Has(ir.Branches) {
		t.Errorf("has regions of which one gives the results: %v, branches: %v", branches, k.Has(ir.Branches))
	}
}

// testLinear: of sums of the operands in which op is linear, the result is the
// sum of the results.
func testLinear(t *testing.T, op *ir.Op) {
	if in := op.LinearIn(); len(in) > 0 {
		if why := nonlinear(t, op, in, numbersOf); why != "" {
			t.Fatal(why)
		}
	}
}

// nonlinear says why op is not linear in operands in, of some of the given numbers;
// nothing where it is.
func nonlinear(t *testing.T, op *ir.Op, in []int, numbers func(*rand.Rand, *ir.Type) *ir.Literal) string {
	r := rand.New(rand.NewPCG(2, uint64(op.Kind)))
	x := operandsOf(r, op)
	y, sum := slices.Clone(x), slices.Clone(x)
	for _, i := range in {
		x[i], y[i] = numbers(r, x[i].Type), numbers(r, x[i].Type)
		vs := make([]float64, x[i].Type.NumElements())
		for e := range vs {
			vs[e] = x[i].Float(e) + y[i].Float(e)
		}
		sum[i] = ir.Floats64(x[i].Type, vs...)
	}
	fx, fy, got := runAlone(t, op, x), runAlone(t, op, y), runAlone(t, op, sum)
	for i := range got {
		for e := range got[i].Type.NumElements() {
			if want := fx[i].Float(e) + fy[i].Float(e); got[i].Float(e) != want {
				return fmt.Sprintf("is not linear in operands %v: element %d of result %d is %v, the sum %v", in, e, i, got[i].Float(e), want)
			}
		}
	}
	return ""
}

// testMoves: the elements of the results are elements of the operands that op
// moves.
func testMoves(t *testing.T, op *ir.Op) {
	moved := op.Moves()
	if len(moved) == 0 || op.Kind == ir.BitcastConvert || op.Kind == ir.ReducePrecision {
		return
	}
	if why := computed(t, op, operandsOf(rand.New(rand.NewPCG(3, uint64(op.Kind))), op), moved); why != "" {
		t.Fatal(why)
	}
}

// computed says which element that op makes of x is none of operands in; nothing
// where there is none.
func computed(t *testing.T, op *ir.Op, x []*ir.Literal, in []int) string {
	have := make(map[float64]bool)
	for _, i := range in {
		for e := range x[i].Type.NumElements() {
			have[x[i].Float(e)] = true
		}
	}
	for i, l := range runAlone(t, op, x) {
		for e := range l.Type.NumElements() {
			if !have[l.Float(e)] {
				return fmt.Sprintf("element %d of result %d, %v, is in none of the operands %v", e, i, l.Float(e), in)
			}
		}
	}
	return ""
}

// givesElements reports whether the results of op are elements of its floating-point
// operands, for numbers that no sum or product of some makes.
func givesElements(t *testing.T, op *ir.Op) bool {
	x := operandsOf(rand.New(rand.NewPCG(5, uint64(op.Kind))), op)
	var in []int
	for i, l := range x {
		if l.Type.IsTensor() && l.Type.Elem.IsFloat() {
			x[i], in = fractionsOf(rand.New(rand.NewPCG(6, uint64(i))), l.Type), append(in, i)
		}
	}
	return len(in) > 0 && computed(t, op, x, in) == ""
}

// operandsOf are numbers for the operands of op.
func operandsOf(r *rand.Rand, op *ir.Op) []*ir.Literal {
	var ls []*ir.Literal
	for _, v := range op.Operands {
		ls = append(ls, numbersOf(r, v.Type))
	}
	return ls
}

// numbersOf are small numbers, of which sums and their halves are exact.
func numbersOf(r *rand.Rand, t *ir.Type) *ir.Literal {
	vs := make([]float64, t.NumElements())
	for i := range vs {
		if vs[i] = math.Ldexp(1, r.IntN(4)); t.Elem == ir.I1 {
			vs[i] = float64(r.IntN(2))
		}
	}
	return ir.Floats64(t, vs...)
}

// fractionsOf are numbers of both signs with fractions, of which sums are exact.
func fractionsOf(r *rand.Rand, t *ir.Type) *ir.Literal {
	vs := make([]float64, t.NumElements())
	for i := range vs {
		vs[i] = (float64(r.IntN(2048)-1024) + 0.5) / 128
	}
	return ir.Floats64(t, vs...)
}

// runAlone is what op makes of args.
func runAlone(t *testing.T, op *ir.Op, args []*ir.Literal) []*ir.Literal {
	t.Helper()
	f := ir.NewFunc("main")
	sub := make(map[*ir.Value]*ir.Value)
	c := &ir.Op{Kind: op.Kind, Attrs: op.Attrs, Regions: op.Regions, Results: op.Results}
	for _, v := range op.Operands {
		c.Operands = append(c.Operands, f.NewArg(f.Body, v.Type, ""))
	}
	c = f.CopyOp(c, sub)
	f.Body.Ops = append(f.Body.Ops, c)
	ir.NewBuilder(f).Return(c.Results...)
	out, err := eval.Run(&ir.Module{Funcs: []*ir.Func{f}}, f, args, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
