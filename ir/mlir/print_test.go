package mlir

import (
	"strings"
	"testing"

	"ppc/ir"
)

// A program of builder calls prints as MLIR would print it.
func TestPrint(t *testing.T) {
	f := ir.NewFunc("main")
	x, w := f.NewArg(f.Body, ir.Tensor(ir.F32, 4, 8), "x"), f.NewArg(f.Body, ir.Tensor(ir.F32, 8, 2), "")
	x.Sharding = ir.NewSharding("mesh", ir.Axs("data"), nil)
	b := ir.NewBuilder(f)
	y := b.Dot(x, w, ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}).Named("x")
	zero := b.Splat(ir.Tensor(ir.F32), 0)
	b.Splat(ir.Tensor(ir.F32), 1)
	y.Sharding = x.Sharding
	b.Return(b.Reduce(ir.Add, b.Unary(ir.Tanh, y), zero, 0, 1))
	m := &ir.Module{Name: "m", Funcs: []*ir.Func{f}, Form: ir.Staged, Meshes: []*ir.Mesh{{Name: "mesh", Axes: []ir.MeshAxis{{Name: "data", Size: 2}}}}}
	want := `module @m attributes {pp.form = "staged"} {
  sdy.mesh @mesh = <["data"=2]>
  func.func @main(%x: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg0: tensor<8x2xf32>) -> tensor<f32> {
    %x_0 = stablehlo.dot_general %x, %arg0, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>} : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.tanh %x_0 : tensor<4x2xf32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x2xf32>, tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
}
`
	if got := Print(m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What the verifier refuses prints, so that its errors can be shown.
func TestPrintBroken(t *testing.T) {
	f32 := ir.Tensor(ir.F32)
	far := &ir.Value{ID: 99, Type: f32}
	for _, op := range []*ir.Op{
		{Kind: ir.Add, Operands: []*ir.Value{nil, nil}, Results: []*ir.Value{nil}},
		{Kind: ir.Add, Operands: []*ir.Value{far, far}, Results: []*ir.Value{far}},
		{Kind: ir.Constant, Results: []*ir.Value{nil}},
		{Kind: ir.While, Operands: []*ir.Value{far}, Results: []*ir.Value{far, nil, {}}, Regions: []*ir.Block{nil, {Args: []*ir.Value{nil}}}},
		{Kind: ir.Reduce, Regions: []*ir.Block{nil}},
		{Kind: ir.Sort, Results: []*ir.Value{{}, {Sharding: &ir.Sharding{}}}},
		{Kind: ir.Select, Attrs: ir.Attrs{{Name: "a", Attr: ir.Unit{}}}},
		{Kind: ir.FuncReturn, Operands: []*ir.Value{nil}},
		{},
	} {
		f := ir.NewFunc("main")
		f.Body.Args = []*ir.Value{nil, {}}
		f.Body.Ops = []*ir.Op{op}
		m := &ir.Module{Funcs: []*ir.Func{f, {}}}
		for _, opts := range []Options{{}, {Generic: true}, {Locs: true}} {
			if text := PrintWith(m, opts); text == "" {
				t.Errorf("%s prints as nothing", op.Name())
			}
		}
	}
}

// A value keeps its name whatever the text calls it after printing.
func TestNamesSurvive(t *testing.T) {
	const src = `module {
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %x_0 = stablehlo.tanh %x : tensor<f32>
    %x_1 = stablehlo.tanh %x_0 : tensor<f32>
    return %x_1 : tensor<f32>
  }
}
`
	m := parse(t, src)
	for _, op := range m.Funcs[0].Body.Ops[:2] {
		if got := op.Result().Name; got != "x" {
			t.Errorf("the name is %q, want x", got)
		}
	}
	if got := Print(m); got != src {
		t.Errorf("got\n%s", got)
	}
}

// Lines are the lines of the text, and every op of main begins one of them.
func TestLines(t *testing.T) {
	m, err := Parse("a.mlir", []byte("func.func @main(%x: tensor<i32>) -> tensor<i32> {\n  %0 = stablehlo.while(%i = %x) : tensor<i32>\n  cond {\n    %1 = stablehlo.compare LT, %i, %x : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %1 : tensor<i1>\n  } do {\n    %2 = stablehlo.add %i, %x : tensor<i32>\n    stablehlo.return %2 : tensor<i32>\n  }\n  return %0 : tensor<i32>\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	begins := make(map[*ir.Op]string)
	for _, l := range Lines(m) {
		text.WriteString(l.Text + "\n")
		if l.Op != nil {
			begins[l.Op] = l.Text
		}
	}
	if text.String() != Print(m) {
		t.Errorf("the lines are\n%s\nthe text is\n%s", text.String(), Print(m))
	}
	m.Main().Body.Walk(func(op *ir.Op) {
		if !strings.Contains(begins[op], strings.TrimPrefix(op.Name(), "func.")) {
			t.Errorf("%s begins the line %q", op.Name(), begins[op])
		}
	})
}
