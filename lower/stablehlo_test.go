package lower

import (
	"strings"
	"testing"

	"ppc/internal/golden"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/ir/verify"
)

func TestStableHLOGolden(t *testing.T) {
	golden.Run(t, "../testdata/golden/stablehlo", map[string]golden.Stage{"stablehlo": func(t *testing.T, src string, _ []string) string {
		m, err := mlir.Parse("in.mlir", []byte(src))
		if err == nil {
			err = verify.Verify(m)
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := StableHLO(m)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}})
}

func TestStableHLO(t *testing.T) {
	f := ir.NewFunc("main")
	b := ir.NewBuilder(f)
	x := f.NewArg(f.Body, ir.Tensor(ir.F32, 4), "x")
	x.Attrs.Set("pp.name", ir.Str("x"))
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "all_gather_dim", Attr: ir.I64Attr(0)}, ir.NamedAttr{Name: "replica_groups", Attr: ir.MeshAxes{Mesh: "mesh", Axes: ir.Axs("a")}},
		ir.NamedAttr{Name: "channel_handle", Attr: ir.Channel{Handle: 1, Type: 1}}, ir.NamedAttr{Name: "pp.dont_care", Attr: ir.Unit{}})
	y := b.Emit(ir.AllGather, []*ir.Value{x}, attrs, nil, []*ir.Type{ir.Tensor(ir.F32, 8)}).Result()
	attrs = ir.AttrsOf(ir.NamedAttr{Name: "source_target_pairs", Attr: ir.AxisShift{Mesh: "mesh", Axes: ir.Axs("b"), Shift: 1, Wrap: true}}, ir.NamedAttr{Name: "channel_handle", Attr: ir.Channel{Handle: 2, Type: 1}})
	b.Return(b.Emit(ir.CollectivePermute, []*ir.Value{y}, attrs, nil, nil).Result())
	m := &ir.Module{Name: "m", Form: ir.Local, Funcs: []*ir.Func{f}, Meshes: []*ir.Mesh{{Name: "mesh", Axes: []ir.MeshAxis{{Name: "a", Size: 2}, {Name: "b", Size: 2}}}}}
	if err := verify.Verify(m); err != nil {
		t.Fatal(err)
	}
	text, err := StableHLO(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"mhlo.num_partitions = 4 : i32", "replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>", "source_target_pairs = dense<[[0, 1], [1, 0], [2, 3], [3, 2]]> : tensor<4x2xi64>"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %s in\n%s", want, text)
		}
	}
	for _, not := range []string{"pp.", "sdy.", "axis_shift", "mesh_axes"} {
		if strings.Contains(text, not) {
			t.Errorf("want no %s in\n%s", not, text)
		}
	}
	if _, ok := y.Def.Attrs.Get("replica_groups").(ir.MeshAxes); !ok {
		t.Error("the module was changed")
	}
	own := ir.NewFunc("main")
	b = ir.NewBuilder(own)
	b.Emit(ir.Unknown, nil, nil, nil, []*ir.Type{ir.Tensor(ir.F32)}).Spelling = "hlo.copy"
	b.Return()
	if _, err := StableHLO(&ir.Module{Funcs: []*ir.Func{own}}); err == nil || !strings.Contains(err.Error(), "hlo.copy") {
		t.Errorf("got %v, want an error that names hlo.copy", err)
	}
	m.Meshes[0].Axes = m.Meshes[0].Axes[1:]
	if _, err := StableHLO(m); err == nil {
		t.Error("want an error for a mesh without the axis")
	}
}
