package passes

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/ir/mlir"
)

// A failing is a program and its arguments, on which something goes wrong.
type failing struct {
	m    *ir.Module
	args []*ir.Literal
}

// maxTrials bounds the programs that shrink runs.
const maxTrials = 1500

// shrink makes c smaller, one edit at a time, for as long as it still fails: it
// drops results, ops, parameters and shardings, and makes parameters of the
// results of ops.
func (c failing) shrink(fails func(*ir.Module, []*ir.Literal) bool) failing {
	trials := 0
	for smaller := true; smaller && trials < maxTrials; {
		smaller = false
		for _, edit := range []func(failing, int) (failing, bool){
			failing.withoutResult, failing.withoutOp, failing.fromParameter, failing.fromOperand, failing.withoutParameter, failing.withoutSharding,
		} {
			for i := 0; ; i++ {
				next, ok := edit(failing{c.m.Clone(), slices.Clone(c.args)}, i)
				if !ok {
					break
				}
				if next.m == nil {
					continue
				}
				if trials++; trials > maxTrials {
					return c
				}
				if next.size() < c.size() && ir.Verify(next.m) == nil && fails(next.m, next.args) {
					c, smaller, i = next, true, i-1
				}
			}
		}
	}
	return c
}

// The edits take the number of the place to edit; false says that there is no
// such place, a program without a module that nothing can be done there.

func (c failing) withoutResult(i int) (failing, bool) {
	f := c.m.Main()
	ret := f.Return()
	if i >= len(ret.Operands) || len(ret.Operands) == 1 {
		return failing{}, false
	}
	ret.Operands, f.Results = slices.Delete(ret.Operands, i, i+1), slices.Delete(f.Results, i, i+1)
	return c.cleaned(), true
}

// cleaned is c without what nothing uses.
func (c failing) cleaned() failing {
	if dce(c.m) != nil {
		return failing{}
	}
	c.m.Main().Renumber()
	return c
}

// result is the i-th result of ops outside of regions, last first; nil if there
// are not so many.
func (c failing) result(i int) *ir.Value {
	for _, op := range slices.Backward(c.m.Main().Body.Ops) {
		if i < len(op.Results) {
			return op.Results[i]
		}
		i -= len(op.Results)
	}
	return nil
}

// fromParameter makes a parameter of a result.
func (c failing) fromParameter(i int) (failing, bool) {
	v, f := c.result(i), c.m.Main()
	if v == nil || !v.Type.IsTensor() || v.Def.Kind == ir.Constant {
		return failing{}, v != nil
	}
	a := f.NewArg(f.Body, v.Type, "")
	a.Sharding = v.Sharding
	if v.Def.Kind == ir.ShardingConstraint {
		a.Sharding = v.Def.Attrs.Get("sharding").(*ir.Sharding)
	}
	g := &programMaker{r: rand.New(rand.NewPCG(uint64(i), 2))}
	c.args = append(c.args, g.literal(v.Type))
	return c.replaced(v, a), true
}

// fromOperand puts an operand of the same type in the place of a result.
func (c failing) fromOperand(i int) (failing, bool) {
	v := c.result(i)
	if v == nil {
		return failing{}, false
	}
	for _, x := range v.Def.Operands {
		if x.Type.Equal(v.Type) {
			return c.replaced(v, x), true
		}
	}
	return failing{}, true
}

func (c failing) replaced(v, by *ir.Value) failing {
	f := c.m.Main()
	sub := f.NewSubst()
	sub[v.ID] = by
	sub.ApplyBlock(f.Body)
	return c.cleaned()
}

func (c failing) withoutParameter(i int) (failing, bool) {
	f := c.m.Main()
	if i >= len(f.Params()) {
		return failing{}, false
	}
	if f.Uses()[f.Params()[i].ID] > 0 {
		return failing{}, true
	}
	f.Body.Args, c.args = slices.Delete(f.Body.Args, i, i+1), slices.Delete(c.args, i, i+1)
	for k, v := range f.Body.Args {
		v.Index = k
	}
	return c.cleaned(), true
}

// withoutSharding drops the sharding of a parameter, of a result, or its axes in
// one dimension.
func (c failing) withoutSharding(i int) (failing, bool) {
	f := c.m.Main()
	var all []**ir.Sharding
	for _, v := range f.Params() {
		all = append(all, &v.Sharding)
	}
	for k := range f.Results {
		all = append(all, &f.Results[k].Sharding)
	}
	for _, s := range all {
		if *s == nil {
			continue
		}
		if i == 0 {
			*s = nil
			return c, true
		}
		i--
		for d := range (*s).Dims {
			if len((*s).Dims[d].Axes) == 0 {
				continue
			}
			if i == 0 {
				*s = (*s).Clone()
				(*s).Dims[d].Axes = nil
				return c, true
			}
			i--
		}
	}
	return failing{}, false
}

// withoutOp drops an op whose results nothing uses.
func (c failing) withoutOp(i int) (failing, bool) {
	f := c.m.Main()
	uses := f.Uses()
	ops := f.Body.Ops
	if i >= len(ops)-1 {
		return failing{}, false
	}
	if slices.ContainsFunc(ops[i].Results, func(v *ir.Value) bool { return uses[v.ID] > 0 }) {
		return failing{}, true
	}
	f.Body.Ops = slices.Delete(slices.Clone(ops), i, i+1)
	return c.cleaned(), true
}

// size is what an edit has to make less: first of all, the ops.
func (c failing) size() int {
	f := c.m.Main()
	n := 100*c.ops() + 30*len(f.Results) + 10*len(f.Params())
	f.Body.Walk(func(*ir.Op) { n += 5 })
	count := func(s *ir.Sharding) {
		if s != nil {
			n++
			for _, d := range s.Dims {
				n += len(d.Axes)
			}
		}
	}
	for _, v := range f.Params() {
		count(v.Sharding)
	}
	for _, r := range f.Results {
		count(r.Sharding)
	}
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
	c = c.shrink(func(m *ir.Module, args []*ir.Literal) bool {
		err := equal(m, args)
		return err != nil && !strings.HasPrefix(err.Error(), "as made: ") && !strings.HasPrefix(err.Error(), "global: ")
	})
	text := mlir.Print(c.m)
	file := filepath.Join(t.ArtifactDir(), fmt.Sprintf("seed%d.mlir", seed))
	if werr := os.WriteFile(file, []byte(text), 0o666); werr != nil {
		t.Error(werr)
	}
	t.Errorf("seed %d: %v\nshrunk: %v\n%s\nrepeat it with: ppc lower %s --after=partition", seed, err, equal(c.m, c.args), text, file)
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
	shrunk := 0
	for seed := uint64(0); shrunk < 6; seed++ {
		m, args := randomProgram(seed, mesh, 12)
		if !fails(m, args) {
			continue
		}
		shrunk++
		if c := (failing{m, args}).shrink(fails); c.ops() > 3 || !fails(c.m, c.args) {
			t.Errorf("seed %d: shrinks to %d ops, want at most 3:\n%s", seed, c.ops(), mlir.Print(c.m))
		}
	}
}
