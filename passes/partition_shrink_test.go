package passes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/ir/verify"
)

// A failing is a program and its arguments, on which something goes wrong.
type failing struct {
	m    *ir.Module
	args []*ir.Literal
}

// maxTrials bounds the programs that shrink runs.
const maxTrials = 1500

// shrink makes c smaller, one edit at a time, for as long as it still fails: it
// drops what comes after a value, results, ops, carries, branches, parameters and
// shardings, puts loops and branches in their place once, and makes parameters of
// the results of ops.
func (c failing) shrink(fails func(*ir.Module, []*ir.Literal) bool) failing {
	trials := 0
	for smaller := true; smaller && trials < maxTrials; {
		smaller = false
		for _, edit := range edits {
			for i := 0; ; i++ {
				next, ok := edit(failing{c.m.Clone(), slices.Clone(c.args)}, i)
				if !ok {
					break
				}
				if next.m == nil || next.size() >= c.size() {
					continue
				}
				if trials++; trials > maxTrials {
					return c
				}
				if verify.Verify(next.m) == nil && fails(next.m, next.args) {
					c, smaller, i = next, true, i-1
				}
			}
		}
	}
	return c
}

// size is what an edit has to make less: first of all, the ops; then what is
// handed in and out, and the axes that something is sharded along.
func (c failing) size() int {
	f := c.m.Main()
	n := 100*c.ops() + 30*len(f.Results) + 10*len(f.Params())
	f.Body.Walk(func(*ir.Op) { n += 5 })
	for _, s := range c.shardings() {
		n++
		for _, d := range (*s).Dims {
			n += len(d.Axes)
		}
	}
	f.Body.Walk(func(op *ir.Op) {
		for _, r := range op.Regions {
			n += 5 * (1 + len(r.Args) + len(op.Results))
		}
	})
	return n
}

// ops is the number of ops that compute more than single numbers.
func (c failing) ops() int {
	n := 0
	c.m.Main().Body.Walk(func(op *ir.Op) {
		if op.Kind != ir.Constant && slices.ContainsFunc(op.Results, func(v *ir.Value) bool { return v.Type.IsTensor() && v.Type.Rank() > 0 }) {
			n++
		}
	})
	return n
}

// report fails the test with the smallest program that still fails, which it
// writes to a file.
func (c failing) report(t *testing.T, seed uint64, err error, equal func(*ir.Module, []*ir.Literal) error) {
	t.Helper()
	if err := verify.Verify(c.m); err != nil {
		t.Errorf("seed %d: as made: %v\n%s", seed, err, mlir.Print(c.m))
		return
	}
	c = c.shrink(func(m *ir.Module, args []*ir.Literal) bool { return stageOf(equal(m, args)) == stageOf(err) })
	text := mlir.Print(c.m)
	file := filepath.Join(t.ArtifactDir(), fmt.Sprintf("seed%d.mlir", seed))
	if werr := os.WriteFile(file, []byte(text), 0o666); werr != nil {
		t.Error(werr)
	}
	t.Errorf("seed %d: %v\nshrunk: %v\n%s\nrepeat it with: ppc lower %s --after=localize", seed, err, equal(c.m, c.args), text, file)
}

// stageOf is where a program fails: in a step that the error begins with, or in
// its results.
func stageOf(err error) string {
	if err == nil {
		return ""
	}
	step, _, ok := strings.Cut(err.Error(), ": ")
	if !ok || strings.HasPrefix(step, "result ") {
		return "result"
	}
	return step
}

// A failure shrinks to a program of a few ops: here of a partitioner whose
// permutes move nothing.
func TestShrink(t *testing.T) {
	mesh := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 2}}}
	broken := func(m *ir.Module, args []*ir.Literal) error {
		_, err := partitionedBy(m, args, func(m *ir.Module) {
			m.Main().Body.Walk(func(op *ir.Op) {
				if op.Kind == ir.CollectivePermute {
					*op = ir.Op{Kind: ir.Negate, Operands: op.Operands, Results: op.Results}
				}
			})
		})
		return err
	}
	fails := func(m *ir.Module, args []*ir.Literal) bool {
		err := broken(m, args)
		return err != nil && strings.HasPrefix(err.Error(), "result ")
	}
	ops := []func(*programMaker) *ir.Value{(*programMaker).loop, (*programMaker).branch, (*programMaker).reverse, (*programMaker).concats,
		(*programMaker).binary, (*programMaker).constrain, (*programMaker).transpose, (*programMaker).dot, (*programMaker).dynamicSlice}
	shrunk := 0
	for seed := uint64(0); shrunk < 6; seed++ {
		m, args := randomProgramOf(ops, seed, mesh, 12)
		if !fails(m, args) {
			continue
		}
		shrunk++
		if c := (failing{m, args}).shrink(fails); c.ops() > 4 || !fails(c.m, c.args) {
			t.Errorf("seed %d: shrinks to %d ops, want at most 4:\n%s", seed, c.ops(), mlir.Print(c.m))
		}
	}
}

// A failure inside of loops and branches shrinks as well as one outside: here of
// a partitioner that reverses nothing in a region.
func TestShrinkRegions(t *testing.T) {
	mesh := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 2}}}
	fails := func(m *ir.Module, args []*ir.Literal) bool {
		_, err := partitionedBy(m, args, func(m *ir.Module) {
			for _, op := range m.Main().Body.Ops {
				for _, r := range op.Regions {
					r.Walk(func(op *ir.Op) {
						if op.Kind == ir.Reverse {
							op.Attrs.Set("dimensions", ir.Ints{})
						}
					})
				}
			}
		})
		return stageOf(err) == "result"
	}
	ops := []func(*programMaker) *ir.Value{(*programMaker).loop, (*programMaker).branch, (*programMaker).reverse, (*programMaker).reverse,
		(*programMaker).binary, (*programMaker).constrain, (*programMaker).transpose, (*programMaker).dot}
	shrunk := make(map[ir.Kind]int) // by what holds the reverse
	for seed := uint64(0); shrunk[ir.While] == 0 || shrunk[ir.Case]+shrunk[ir.If] == 0; seed++ {
		m, args := randomProgramOf(ops, seed, mesh, 6)
		if !fails(m, args) {
			continue
		}
		c := failing{m, args}.shrink(fails)
		if c.ops() > 4 || !fails(c.m, c.args) {
			t.Errorf("seed %d: shrinks to %d ops, want at most 4:\n%s", seed, c.ops(), mlir.Print(c.m))
		}
		for _, op := range c.m.Main().Body.Ops {
			shrunk[op.Kind]++
		}
	}
}
