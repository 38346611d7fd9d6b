package driver

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/driver/binding"
	"ppc/internal/tensorfile"
	"ppc/ir"
)

func str(s string) ir.Attr { return ir.Str(s) }

func param(t *ir.Type, attrs ...ir.NamedAttr) (*ir.Type, ir.Attrs) { return t, ir.AttrsOf(attrs...) }

// A local program of four devices, two stages of two shards, as the passes
// leave it: six layers, of which four are pipelined in two repeats.
func localModule() *ir.Module {
	mesh := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "stage", Size: 2}, {Name: "fsdp", Size: 2}}}
	m := &ir.Module{Name: "m", Meshes: []*ir.Mesh{mesh}, Form: ir.Expanded | ir.Local}
	f := ir.NewFunc("main")
	m.Funcs = []*ir.Func{f}
	arg := func(t *ir.Type, attrs ir.Attrs) { f.NewArg(f.Body, t, "").Attrs = attrs }
	weight := func(rows ir.Ints, s *ir.Sharding) ir.Attrs {
		return ir.AttrsOf(ir.NamedAttr{Name: "pp.name", Attr: str("layer.w")}, ir.NamedAttr{Name: "pp.kind", Attr: str("param")},
			ir.NamedAttr{Name: "pp.init", Attr: str("normal(0.5)")}, ir.NamedAttr{Name: "pp.layers", Attr: ir.I64Attr(6)},
			ir.NamedAttr{Name: "pp.logical", Attr: ir.Array{ir.Str("embed"), ir.Str("mlp")}},
			ir.NamedAttr{Name: "pp.rows", Attr: rows}, ir.NamedAttr{Name: "pp.sharding", Attr: s})
	}
	arg(param(ir.Tensor(ir.I32, 2, 3), ir.NamedAttr{Name: "pp.name", Attr: str("tokens")}, ir.NamedAttr{Name: "pp.kind", Attr: str("input")},
		ir.NamedAttr{Name: "pp.max", Attr: ir.I64Attr(7)}, ir.NamedAttr{Name: "pp.sharding", Attr: ir.NewSharding("mesh", ir.Axs("stage", "fsdp"), nil)}))
	arg(ir.Tensor(ir.F32, 2, 1, 2, 5), weight(ir.Ints{0, 4}, ir.NewSharding("mesh", nil, ir.Axs("stage"), ir.Axs("fsdp"), nil)))
	arg(ir.Tensor(ir.F32, 2, 2, 5), weight(ir.Ints{4, 6}, ir.NewSharding("mesh", nil, ir.Axs("fsdp"), nil)))
	arg(param(ir.Tensor(ir.F32), ir.NamedAttr{Name: "pp.name", Attr: str("scale")}, ir.NamedAttr{Name: "pp.kind", Attr: str("param")},
		ir.NamedAttr{Name: "pp.init", Attr: str("ones")}, ir.NamedAttr{Name: "pp.sharding", Attr: ir.NewSharding("mesh")}))
	return m
}

func TestPorts(t *testing.T) {
	params, _ := binding.Ports(localModule(), binding.ByName)
	for i, want := range []struct{ name, full, global string }{
		{"tokens", "i32[8, 3]", "i32[8, 3]"},
		{"layer.w", "f32[layers=6, embed=4, mlp=5]", "f32[2, 2, 4, 5]"},
		{"layer.w", "f32[layers=6, embed=4, mlp=5]", "f32[2, 4, 5]"},
		{"scale", "f32[]", "f32[]"},
	} {
		p := params[i]
		if p.Name != want.name || p.String() != want.full || binding.TypeText(p.Global, nil) != want.global {
			t.Errorf("parameter %d: %s %s of %s, want %s %s of %s", i, p.Name, binding.TypeText(p.Global, nil), p, want.name, want.global, want.full)
		}
	}
	numbered, _ := binding.Ports(localModule(), binding.ByNumber)
	if p := numbered[1]; p.Name != "in1" || p.String() != "f32[2, 2, 4, 5]" {
		t.Errorf("by number, parameter 1 is %s %s", p.Name, p)
	}
}

// iota is 0, 1, 2, … as a tensor in a file.
func iota(dtype ir.DType, shape ...int) tensorfile.Array {
	return binding.ArrayOf(binding.Fill(ir.Tensor(dtype, shape...), func(b []byte, i int) { dtype.PutFloat(b, float64(i)) }))
}

func writeArgs(t *testing.T, arrays ...tensorfile.Named) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "args.npz")
	if err := writeArrays(t.Context(), path, arrays); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBind(t *testing.T) {
	params, _ := binding.Ports(localModule(), binding.ByName)
	path := writeArgs(t, tensorfile.Named{Name: "tokens", Array: iota(ir.I64, 8, 3)},
		tensorfile.Named{Name: "layer.w", Array: iota(ir.BF16, 6, 4, 5)}, tensorfile.Named{Name: "scale", Array: iota(ir.F32)})
	a, err := binding.Open(path, 0, params)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	m := binding.NewMachine(localModule(), binding.ByName)
	if err := m.Bind(a); err != nil {
		t.Fatal(err)
	}
	args := m.Args
	// Device 3 is stage 1, shard 1: tokens from row 6 on; layers 1 and 3 (of
	// stage 1 in both repeats) and 4 and 5, rows 2 and 3 of embed.
	for i, want := range [][]float64{{18, 19, 20, 21, 22, 23}, {30, 31}, {90, 91}, {0}} {
		for k, v := range want {
			if got := args[3][i].Float(k); got != v {
				t.Errorf("parameter %d, element %d: %g, want %g", i, k, got, v)
			}
		}
	}
	if got := args[3][1].Float(10); got != 70 {
		t.Errorf("the second repeat's weight starts with %g, want 70", got)
	}
	if !args[0][2].Type.Equal(ir.Tensor(ir.F32, 2, 2, 5)) {
		t.Errorf("layers outside have the type %s", args[0][2].Type)
	}
	if &args[0][2].Data[0] != &args[2][2].Data[0] {
		t.Error("devices with the same part do not share it")
	}
}

// What is made up depends on name, place and seed only.
func TestMadeUp(t *testing.T) {
	params, _ := binding.Ports(localModule(), binding.ByName)
	full := func(params []*binding.Port, seed uint64) []*ir.Literal {
		a, err := binding.Open("", seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out []*ir.Literal
		for _, p := range params {
			l, err := a.FileValue(p)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, p.Value(l))
		}
		return out
	}
	named := full(params, 1)
	numbered, _ := binding.Ports(localModule(), binding.ByNumber)
	byNumber, other := full(numbered, 1), full(params, 2)
	for i := range params {
		if string(named[i].Data) != string(byNumber[i].Data) {
			t.Errorf("%s: by number the values are others", params[i].Name)
		}
		if i < 3 && string(named[i].Data) == string(other[i].Data) {
			t.Errorf("%s: another seed gives the same values", params[i].Name)
		}
	}
	for i := range named[0].Type.NumElements() {
		if v := named[0].Int(i); v < 0 || v >= 7 {
			t.Errorf("token %d is %d, not below 7", i, v)
		}
	}
}

func TestLayerFiles(t *testing.T) {
	p := &binding.Port{Name: "decoder.w", File: "model.layers.{layer}.w", Kind: "param", InFile: ir.Tensor(ir.F32, 3, 2), Axes: []string{"layers", "embed"}}
	var arrays []tensorfile.Named
	for _, n := range []string{"2", "0", "1"} {
		v := iota(ir.F32, 2)
		v.Data[3] = n[0]
		arrays = append(arrays, tensorfile.Named{Name: "model.layers." + n + ".w", Array: v})
	}
	a, err := binding.Open(writeArgs(t, arrays...), 0, []*binding.Port{p})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	l, err := a.FileValue(p)
	if err != nil {
		t.Fatal(err)
	}
	if l.Data[3] != '0' || l.Data[8+3] != '1' || l.Data[16+3] != '2' {
		t.Error("layers are out of order")
	}
	_, err = binding.Open(writeArgs(t, arrays[:2]...), 0, []*binding.Port{p})
	if err == nil || !strings.Contains(err.Error(), `there is no "model.layers.1.w"`) {
		t.Errorf("error %v, want one that names layer 1", err)
	}
}

func TestArgumentErrors(t *testing.T) {
	params, _ := binding.Ports(localModule(), binding.ByName)
	tokens, w, scale := iota(ir.I32, 8, 3), iota(ir.F32, 6, 4, 5), iota(ir.F32)
	for _, c := range []struct {
		name   string
		arrays []tensorfile.Named
		want   []string
	}{
		{"missing", []tensorfile.Named{{Name: "tokens", Array: tokens}, {Name: "scale", Array: scale}},
			[]string{`there is no "layer.w", a parameter f32[layers=6, embed=4, mlp=5] of the program`}},
		{"near", []tensorfile.Named{{Name: "tokens", Array: tokens}, {Name: "scale", Array: scale}, {Name: "layers.w", Array: w}}, []string{`did you mean "layers.w"`}},
		{"near input", []tensorfile.Named{{Name: "token", Array: tokens}}, []string{`there is no "tokens", an input`, `did you mean "token"`}},
		{"shape", []tensorfile.Named{{Name: "tokens", Array: iota(ir.I32, 3, 8)}, {Name: "layer.w", Array: iota(ir.F32, 4, 5)}, {Name: "scale", Array: scale}},
			[]string{`"tokens" is i32[3, 8], the program takes i32[8, 3]: the elements are as many`, `"layer.w" is f32[4, 5], the program takes f32[layers=6, embed=4, mlp=5]: the 6 layers are stacked`}},
		{"type", []tensorfile.Named{{Name: "tokens", Array: iota(ir.F32, 8, 3)}, {Name: "layer.w", Array: iota(ir.F64, 6, 4, 5)}, {Name: "scale", Array: scale}},
			[]string{`"tokens" is f32, the program takes i32: f32 is not converted to i32: store i32`, `"layer.w" is f64, the program takes f32: f32 does not hold every f64`, "--set types."}},
		{"nothing", []tensorfile.Named{{Name: "y", Array: tokens}}, []string{"holds none of the program's arguments: it has y; the program takes tokens, layer.w"}},
	} {
		_, err := binding.Open(writeArgs(t, c.arrays...), 0, params)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v\nwant one with %q", c.name, err, want)
			}
		}
	}
}

func TestConvert(t *testing.T) {
	for _, c := range []struct {
		from, to ir.DType
		v        float64
		ok       bool
	}{
		{ir.F32, ir.F64, 1.5, true}, {ir.BF16, ir.F32, 1.5, true}, {ir.F16, ir.F64, 1.5, true},
		{ir.F64, ir.F32, 1.5, false}, {ir.BF16, ir.F16, 1.5, false}, {ir.F32, ir.BF16, 1.5, false},
		{ir.I64, ir.I32, -5, true}, {ir.I64, ir.I32, 1 << 40, false}, {ir.I32, ir.UI32, -1, false},
		{ir.UI8, ir.I8, 200, false}, {ir.UI8, ir.I16, 200, true}, {ir.UI64, ir.I64, 1 << 63, false},
		{ir.I32, ir.F32, 1, false}, {ir.F32, ir.I32, 1, false}, {ir.I1, ir.I32, 1, false}, {ir.I1, ir.I1, 1, true},
		{ir.F8E4M3FN, ir.F32, 1.5, true}, {ir.F8E5M2, ir.BF16, 1.5, true}, {ir.F8E5M2, ir.F16, 1.5, true}, {ir.F8E4M3FN, ir.F8E5M2, 1.5, false}, {ir.F8E8M0FNU, ir.F16, 2, false},
		{ir.C64, ir.C128, 2, true}, {ir.F32, ir.C64, 2, false},
	} {
		l, err := binding.Convert(ir.SplatOf(ir.Tensor(c.from, 1), c.v), c.to)
		if (err == nil) != c.ok {
			t.Errorf("%s to %s: error %v", c.from, c.to, err)
		} else if err == nil && (l.Float(0) != c.v || l.Type.Elem != c.to) {
			t.Errorf("%s to %s: %g became %g", c.from, c.to, c.v, l.Float(0))
		}
	}
	if _, err := binding.Convert(&ir.Literal{Type: ir.Tensor(ir.I1, 2), Data: []byte{1, 2}}, ir.I1); err == nil {
		t.Error("2 is taken for a boolean")
	}
}

// Arrays of raw bytes, as NumPy's extensions write types of a byte and less, are read as what the
// program takes, if that is such a type, and are written so.
func TestRawBytes(t *testing.T) {
	raw := tensorfile.Array{DType: tensorfile.Unsaid, Shape: []int{3}, Data: []byte{0xfe, 14, 2}}
	for _, c := range []struct {
		elem ir.DType
		want []float64 // nil: refused
	}{
		{ir.I4, []float64{-2, -2, 2}}, {ir.UI4, []float64{14, 14, 2}}, {ir.I2, []float64{-2, -2, -2}}, {ir.F8E5M2, []float64{math.NaN(), 0x1.8p-12, 0x1p-15}},
		{ir.F4E2M1FN, []float64{-4, -4, 1}}, {ir.I8, nil}, {ir.I1, nil}, {ir.F32, nil},
	} {
		p := &binding.Port{Name: "x", InFile: ir.Tensor(c.elem, 3), Global: ir.Tensor(c.elem, 3)}
		a, err := binding.Open(writeArgs(t, tensorfile.Named{Name: "x", Array: raw}), 0, []*binding.Port{p})
		if (err == nil) != (c.want != nil) {
			t.Errorf("%s: error %v", c.elem, err)
			continue
		} else if err != nil {
			if !strings.Contains(err.Error(), "it does not say what they are, the program takes "+c.elem.String()) {
				t.Errorf("%s: %v", c.elem, err)
			}
			continue
		}
		l, err := a.FileValue(p)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if got := l.Float(i); got != want && !(got != got && want != want) {
				t.Errorf("%s: element %d is %v, want %v", c.elem, i, got, want)
			}
		}
		if out := binding.ArrayOf(l); out.Data[2] != 2&(1<<c.elem.Bits()-1) {
			t.Errorf("%s: 2 is written as %d", c.elem, out.Data[2])
		}
	}
}

func TestStackedPorts(t *testing.T) {
	f := ir.NewFunc("main")
	f.NewArg(f.Body, ir.Tensor(ir.F32, 3), "")
	m := &ir.Module{Funcs: []*ir.Func{f}, Form: ir.Local}
	m.Attrs.Set("mhlo.num_partitions", ir.Int{Value: 2, Type: ir.I32})
	params, _ := binding.Ports(m, binding.ByNumber)
	p := params[0]
	if got := p.String(); got != "f32[2, 3]" {
		t.Fatalf("in a file the parameter is %s", got)
	}
	l := binding.LiteralOf(ptr(iota(ir.F32, 2, 3)))
	parts := p.Shards(l)
	if parts[1].Float(0) != 3 || len(parts) != 2 {
		t.Errorf("device 1 gets %g first", parts[1].Float(0))
	}
	if !slices.Equal(p.Join(parts).Data, l.Data) {
		t.Error("join does not undo parts")
	}
}

func ptr[T any](v T) *T { return &v }
