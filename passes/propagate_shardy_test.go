package passes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"ppc/internal/shared"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/lower"
	"ppc/passes/layout"
	"ppc/passes/propagate"
	"ppc/passes/tidy"
)

// shardyPrograms is how many random programs Shardy sees.
const shardyPrograms = 400

// mustAgree is on how many of these Shardy and propagate have agreed about
// every value. It only grows.
const mustAgree = 277

// propagateAll is the stage propagate of the shared tool shardy.py for every
// file of a directory in one process.
const propagateAll = `
import glob, os, sys
os.environ.setdefault("JAX_PLATFORMS", "cpu")
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager
for name in glob.glob(sys.argv[1] + "/*.mlir"):
    with mlir.make_ir_context() as ctx, ir.Location.unknown():
        ctx.allow_unregistered_dialects = True
        m = ir.Module.parse(open(name).read())
        PassManager.parse("builtin.module(sdy-propagation-pipeline)").run(m.operation)
        open(name + ".out", "w").write(str(m))
`

// shardyPython is a python that has jax, and with it Shardy.
func shardyPython(t *testing.T) string {
	python := shared.Setting(t, "PPC_PYTHON")
	if _, err := os.Stat(python); err != nil {
		t.Skip("no python with jax: set PPC_PYTHON")
	}
	return python
}

// Shardy gives every value of random programs the same sharding, but for the
// differences that docs/rationale.md explains: sizes that axes do not divide,
// reshards that it puts in around concatenations and results, the window dimensions
// of convolutions, the update windows of scatters, and sub-axes on parameters and
// results. PPC_SEEDS=400:2000 makes other programs than the default.
func TestPropagateLikeShardy(t *testing.T) {
	python := shardyPython(t)
	dir := t.TempDir()
	meshes := []*ir.Mesh{
		{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 4}, {Name: "y", Size: 2}}},
		{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 2}}},
	}
	programs := make(map[uint64]*ir.Module)
	from, to := seedsOf(t, shardyPrograms)
	for seed := from; seed < to; seed++ {
		m, _ := randomProgramOf(frontEndOps(), 4*seed, meshes[seed%2], 1+int(seed%12))
		if err := tidy.Dce(nil, m); err != nil {
			t.Fatal(err)
		}
		tag(m.Main())
		programs[seed] = m
		text := m.Clone()
		lower.ExpandGroups(text)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(seed, ".mlir")), []byte(mlir.Print(text)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(python, "-c", propagateAll, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	agree, explained := 0, 0
	for seed := from; seed < to; seed++ {
		name := filepath.Join(dir, fmt.Sprint(seed, ".mlir.out"))
		out, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := mlir.Parse(name, out)
		if err != nil {
			t.Fatal(err)
		}
		m := programs[seed]
		held := m.Clone()
		if err := propagate.Propagate(nil, m); err != nil {
			t.Fatalf("seed %d: %v", 4*seed, err)
		}
		switch diffs := shardingDiffs(m.Main(), theirs.Main()); {
		case len(diffs) == 0:
			agree++
		case shardsUnevenly(m.Meshes[0], theirs.Main()), hasOwnReshard(theirs.Main()), scattersWindows(m.Main()), shardsWindows(m.Main()), dropsSubAxes(m.Main(), theirs.Main()):
			explained++
		case holdWindows(held.Main()):
			if err := propagate.Propagate(nil, held); err != nil {
				t.Fatalf("seed %d, windows held: %v", 4*seed, err)
			}
			if held := shardingDiffs(held.Main(), theirs.Main()); len(held) > 0 {
				t.Errorf("seed %d: %s; with windows that do not move, %s", 4*seed, diffs[0], held[0])
				break
			}
			explained++
		default:
			t.Errorf("seed %d: %s", 4*seed, diffs[0])
		}
	}
	t.Logf("%d programs agree, %d differ as explained", agree, explained)
	if shared.Setting(t, "PPC_SEEDS") == "" && agree < mustAgree {
		t.Errorf("%d programs agree, want at least %d", agree, mustAgree)
	}
}

const tagName = "test.tag"

// tag numbers the ops of f, so that they can be matched after Shardy has changed
// it.
func tag(f *ir.Func) {
	n := 0
	f.Body.Walk(func(op *ir.Op) {
		if !op.Kind.Has(ir.Terminator) {
			n++
			op.Attrs.Set(tagName, ir.I64Attr(n))
		}
	})
}

// tagged are the ops of f by their number.
func tagged(f *ir.Func) map[int]*ir.Op {
	out := make(map[int]*ir.Op)
	f.Body.Walk(func(op *ir.Op) {
		if n := op.Attrs.Int(tagName); n > 0 {
			out[n] = op
		}
	})
	return out
}

// shardingDiffs is the values of f that have another sharding in g, constants
// aside.
func shardingDiffs(f, g *ir.Func) []string {
	var diffs []string
	compare := func(what string, t *ir.Type, a, b *ir.Sharding) {
		if t.IsTensor() && t.Rank() > 0 && !a.SameLayout(b) {
			diffs = append(diffs, fmt.Sprintf("%s %s: %s, Shardy has %s", what, t, a, b))
		}
	}
	for i, v := range f.Params() {
		compare(fmt.Sprint("parameter ", i), v.Type, v.Sharding, g.Params()[i].Sharding)
	}
	for i, r := range f.Results {
		compare(fmt.Sprint("result ", i), r.Type, r.Sharding, g.Results[i].Sharding)
	}
	free, others := layout.FreeValues(f), tagged(g)
	f.Body.Walk(func(op *ir.Op) {
		o := others[op.Attrs.Int(tagName)]
		for i, v := range op.Results {
			if o != nil && !free[v.ID] {
				compare(op.Name(), v.Type, v.Sharding, saidOf(o, i))
			}
		}
	})
	return diffs
}

// saidOf is the sharding of result i of op, which some ops state in an attribute.
func saidOf(op *ir.Op, i int) *ir.Sharding {
	if s, ok := op.Attrs.Get("sharding").(*ir.Sharding); ok {
		return s
	}
	if per, ok := op.Attrs.Get("out_shardings").(ir.PerValue); ok {
		return per[i]
	}
	return op.Results[i].Sharding
}

// shardsUnevenly reports whether some value of f is sharded along axes that do not
// divide its size.
func shardsUnevenly(mesh *ir.Mesh, f *ir.Func) bool {
	found := false
	f.Body.Walk(func(op *ir.Op) {
		found = found || slices.ContainsFunc(op.Results, func(v *ir.Value) bool {
			if !v.Type.IsTensor() {
				return false
			}
			for d, n := range v.Type.Shape {
				if n%mesh.RefsSize(v.Sharding.Axes(d)) != 0 {
					return true
				}
			}
			return false
		})
	})
	return found
}

// hasOwnReshard reports whether f has a reshard that Shardy put in.
func hasOwnReshard(f *ir.Func) bool {
	found := false
	f.Body.Walk(func(op *ir.Op) { found = found || op.Kind == ir.Reshard && !op.Attrs.Has(tagName) })
	return found
}

// scattersWindows reports whether f has windows that scatter.
func scattersWindows(f *ir.Func) bool {
	found := false
	f.Body.Walk(func(op *ir.Op) { found = found || op.Kind == ir.SelectAndScatter })
	return found
}

// shardsWindows reports whether f has a convolution whose input Shardy shards along
// the window elements where the rule here shards along the windows: the larger of
// the two first, and the other where elements are left for it.
func shardsWindows(f *ir.Func) bool {
	found := false
	f.Body.Walk(func(op *ir.Op) {
		if op.Kind != ir.Convolution {
			return
		}
		d := op.Attrs.Get("dimension_numbers").(ir.ConvDims)
		for i, w := range op.Windows() {
			in, out := op.Operands[0].Type.Shape[d.Input.Spatial[i]], op.Result().Type.Shape[d.Output.Spatial[i]]
			if w.Tiles(in) && !w.Reversed {
				found = found || 1 < out && out < w.Size
			} else {
				found = found || w.Size > 1 && (out < w.Size || in/min(in, out) > 1)
			}
		}
	})
	return found
}

// holdWindows clamps the indices of f's scatters to zero, so that no window
// moves and their sharding rules are Shardy's, which take every window for one
// that does not. It reports whether f has such indices.
func holdWindows(f *ir.Func) bool {
	held := false
	var hold func(b *ir.Block)
	hold = func(b *ir.Block) {
		ops := b.Ops
		b.Ops = nil
		for _, op := range ops {
			for _, r := range op.Regions {
				hold(r)
			}
			if op.Kind == ir.Scatter {
				in, n := (&ir.Builder{Func: f}).In(b), len(op.Results)
				zero := in.Splat(ir.Tensor(op.Operands[n].Type.Elem), 0)
				op.Operands[n] = in.Emit(ir.Clamp, []*ir.Value{zero, op.Operands[n], zero}, nil, nil, nil).Result()
				held = true
			}
			b.Ops = append(b.Ops, op)
		}
	}
	hold(f.Body)
	return held
}

// dropsSubAxes reports whether a parameter or result is sharded along a sub-axis in
// f, and not in g.
func dropsSubAxes(f, g *ir.Func) bool {
	parts := func(s *ir.Sharding) (n int) {
		for d := range s.Dims {
			for _, r := range s.Axes(d) {
				n += min(r.Size, 1)
			}
		}
		return n
	}
	at := func(f *ir.Func) (n int) {
		for _, v := range f.Params() {
			if v.Sharding != nil {
				n += parts(v.Sharding)
			}
		}
		for _, r := range f.Results {
			if r.Sharding != nil {
				n += parts(r.Sharding)
			}
		}
		return n
	}
	return at(f) > at(g)
}
