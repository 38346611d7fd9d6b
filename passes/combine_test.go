package passes

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/tools/txtar"

	"ppc/internal/optest"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/facts"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/passes/combine"
)

// sameOnDevices evaluates two per-device programs on n devices, each with
// arguments of its own, and compares what they give.
func sameOnDevices(t *testing.T, got, want *ir.Module, n int, tolerance float64) {
	t.Helper()
	args := make([][]*ir.Literal, n)
	for d := range args {
		for i, p := range want.Main().Params() {
			vs := make([]float64, p.Type.NumElements())
			for k := range vs {
				vs[k] = math.Sin(float64(1 + 100*d + 10*i + k))
			}
			args[d] = append(args[d], ir.Floats64(p.Type, vs...))
		}
	}
	run := func(m *ir.Module) [][]*ir.Literal {
		out, err := eval.RunDevices(m, m.Main(), args, eval.Options{Float64: true})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	a, b := run(got), run(want)
	for d := range b {
		for i := range b[d] {
			if _, rel := optest.MaxDiff(a[d][i], b[d][i]); !(rel <= tolerance) {
				t.Errorf("device %d: result %d differs by %g", d, i, rel)
			}
		}
	}
}

// The archives show programs that compute the same before and after.
func TestCombineArchives(t *testing.T) {
	paths, err := filepath.Glob("../testdata/golden/passes/combine_*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var ms []*ir.Module
			for _, f := range txtar.Parse(data).Files {
				m, err := mlir.Parse(f.Name, f.Data)
				if err != nil {
					t.Fatal(err)
				}
				ms = append(ms, m)
			}
			sameOnDevices(t, ms[1], ms[0], 4, 1e-14)
		})
	}
}

// Collectives along any dimensions of a tensor become one of each kind over
// each axis, all-gathers one for each dimension, and move the same bytes.
func TestCombineDimensions(t *testing.T) {
	mesh := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 3}}}
	f := ir.NewFunc("main")
	shape := []int{6, 12, 18}
	x := f.NewArg(f.Body, ir.Tensor(ir.F32, shape...), "x")
	b := ir.NewBuilder(f)
	var out []*ir.Value
	channel := 0
	emit := func(k ir.Kind, x *ir.Value, to *ir.Type, regions []*ir.Block, attrs ...ir.NamedAttr) {
		channel++
		as := ir.AttrsOf(append(attrs, facts.Named("channel_handle", ir.Channel{Handle: channel, Type: 1}))...)
		out = append(out, b.Emit(k, []*ir.Value{x}, as, regions, []*ir.Type{to}).Result())
	}
	// scaled is the type of x with n times as much along dimension d, and less along e.
	scaled := func(d, n, e, less int) *ir.Type {
		s := slices.Clone(shape)
		s[d] *= n
		s[e] /= less
		return x.Type.WithShape(s...)
	}
	for _, a := range mesh.Axes {
		groups, ids := facts.Named("replica_groups", ir.MeshAxes{Mesh: "mesh", Axes: ir.Axs(a.Name)}), facts.Named("use_global_device_ids", ir.Unit{})
		for d := range shape {
			emit(ir.ReduceScatter, x, scaled(d, 1, d, a.Size), []*ir.Block{b.Combiner(ir.Add, ir.F32)}, groups, ids, facts.Named("scatter_dimension", ir.I64Attr(d)))
			for range 2 {
				emit(ir.AllGather, x, scaled(d, a.Size, d, 1), nil, groups, ids, facts.Named("all_gather_dim", ir.I64Attr(d)))
			}
			for e := range shape {
				emit(ir.AllToAll, x, scaled(e, a.Size, d, a.Size), nil, groups, facts.Named("split_dimension", ir.I64Attr(d)), facts.Named("concat_dimension", ir.I64Attr(e)), facts.Named("split_count", ir.I64Attr(a.Size)))
			}
		}
		for range 2 {
			pairs := ir.AxisShift{Mesh: "mesh", Axes: ir.Axs(a.Name), Shift: 1, Wrap: true}
			emit(ir.CollectivePermute, b.Unary(ir.Negate, x), x.Type, nil, facts.Named("source_target_pairs", pairs))
		}
	}
	b.Return(out...)
	m := &ir.Module{Name: "m", Meshes: []*ir.Mesh{mesh}, Funcs: []*ir.Func{f}, Form: ir.Local}
	m.Attrs.Set("pp.combine", ir.I64Attr(1<<30))
	if err := verify.Verify(m); err != nil {
		t.Fatal(err)
	}
	combined := m.Clone()
	if err := runOne(byName("combine"), combined, nil, new(verify.Checker)); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int)
	combined.Main().Body.Walk(func(op *ir.Op) {
		if op.Kind.Has(ir.Collective) {
			got[op.Name()]++
		}
	})
	if want := "map[stablehlo.all_gather:6 stablehlo.all_to_all:2 stablehlo.collective_permute:2 stablehlo.reduce_scatter:2]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
	sameOnDevices(t, combined, m, 6, 0)
}

// Whatever the number of bytes that combine may take, no op has more than those
// more alive beside it, and more of them leave fewer collectives.
func TestCombineMemory(t *testing.T) {
	c := make(lawCase, len(lawFactors))
	c[factorAt("stages")], c[factorAt("mesh")], c[factorAt("repeats")], c[factorAt("scan_iterations")] = 1, 2, 1, 1
	typed, err := c.load(c.text(), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := Run(typed, Config{After: "skip-bubbles"}); err != nil {
		t.Fatal(err)
	}
	fewest := math.MaxInt
	for _, limit := range []int{facts.SmallBytes, 100, 300, 1000, 10000} {
		m := typed.Clone()
		m.Attrs.Set("pp.combine", ir.I64Attr(limit))
		was := aliveBeside(m.Main())
		if err := combine.Combine(nil, m); err != nil {
			t.Fatal(err)
		}
		for op, n := range aliveBeside(m.Main()) {
			if before, ok := was[op]; ok && n > before+limit {
				t.Errorf("combine = %d: %s %v has %d bytes alive beside it, had %d", limit, op.Name(), op.Origin, n, before)
			}
		}
		n := 0
		m.Main().Body.Walk(func(op *ir.Op) {
			if op.Kind.Has(ir.Collective) {
				n++
			}
		})
		if n >= fewest {
			t.Errorf("combine = %d leaves %d collectives, less left %d", limit, n, fewest)
		}
		fewest = n
	}
}

// aliveBeside is, by op of f's body, the bytes of what ops of it computed and
// what the op or a later one uses.
func aliveBeside(f *ir.Func) map[*ir.Op]int {
	last := make(map[*ir.Value]int)
	for at, op := range f.Body.Ops {
		(&ir.Block{Ops: []*ir.Op{op}}).Walk(func(op *ir.Op) {
			for _, v := range slices.Concat(op.Operands, op.Results) {
				last[v] = at
			}
		})
	}
	alive := make(map[*ir.Op]int)
	for at, op := range f.Body.Ops {
		for _, v := range op.Results {
			for _, beside := range f.Body.Ops[at : last[v]+1] {
				alive[beside] += facts.BytesOf(v.Type)
			}
		}
	}
	return alive
}
