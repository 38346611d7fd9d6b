package runtime

import (
	"slices"

	"ppc/ir"
	"ppc/runtime/kernel"
)

// An op in a loop that reads nothing but constants, such as one of those that make a causal mask or the angles of
// rotary embeddings, makes the same in every iteration of every run. It is folded: the first run computes it once for
// all devices, as a constant. A broadcast that is read by others stays, since a group of ops reads its operand in its place.

const (
	mostFolded    = 1 << 20  // bytes of a value
	mostFoldedAll = 16 << 20 // and of all that are kept
)

// findFolded finds the ops of f that are folded.
func (c *compiler) findFolded(f *ir.Func) map[*ir.Op]bool {
	if c.checks || c.exe.unfused {
		return nil
	}
	var same []*ir.Op // those that could be, in order
	known := make(map[*ir.Op]bool)
	read := make(map[*ir.Value]bool) // by what is not folded
	var block func(b *ir.Block, loop bool)
	block = func(b *ir.Block, loop bool) {
		for _, op := range b.Ops {
			if loop && !slices.ContainsFunc(op.Operands, func(v *ir.Value) bool { return !known[v.Def] && !isConstant(v) }) && foldable(op) {
				known[op] = true
				same = append(same, op)
				continue
			}
			for _, v := range op.Operands {
				read[v] = true
			}
			for _, r := range op.Regions {
				block(r, loop || op.Kind == ir.While)
			}
		}
	}
	block(f.Body, false)
	folded := make(map[*ir.Op]bool)
	for _, op := range slices.Backward(same) {
		v := op.Result()
		size := 0
		if read[v] {
			size = v.Type.Bytes()
		}
		if read[v] && (op.Kind == ir.BroadcastInDim || op.Kind == ir.Reshape) || c.exe.folded+size > mostFoldedAll {
			for _, x := range op.Operands {
				read[x] = true
			}
			continue
		}
		c.exe.folded += size
		folded[op] = true
	}
	return folded
}

func isConstant(v *ir.Value) bool {
	return v.Def != nil && v.Def.Kind == ir.Constant && !v.Def.Attrs.Has(ir.KeyDontCare) && v.Type.Bytes() <= mostFolded
}

// foldable reports whether op computes its result from its operands alone, at little expense.
func foldable(op *ir.Op) bool {
	if !op.Kind.Has(ir.Elementwise) && !op.Kind.Has(ir.Source) && len(op.Moves()) == 0 || op.Kind == ir.Constant {
		return false
	}
	if !op.Kind.Has(ir.Pure) || !kernel.Has(op.Kind) || len(op.Results) != 1 || len(op.Regions) > 0 || op.Attrs.Has(ir.KeyDontCare) {
		return false
	}
	t := op.Result().Type
	if !t.IsTensor() || kernel.Check(t) != nil || t.Bytes() > mostFolded {
		return false
	}
	_, err := kernel.Build(op)
	return err == nil
}

// A folder computes folded ops, each once.
type folder struct {
	work kernel.Work
	made map[*ir.Value]kernel.Mem
}

// of is the memory of v.
func (f *folder) of(v *ir.Value) kernel.Mem {
	if m, ok := f.made[v]; ok {
		return m
	}
	op := v.Def
	if op.Kind == ir.Constant {
		return kernel.FromLiteral(op.Literal("value"))
	}
	run, err := kernel.Build(op)
	if err != nil {
		panic(err) // foldable has built it
	}
	src := make([]kernel.Mem, len(op.Operands))
	for i, x := range op.Operands {
		src[i] = f.of(x)
	}
	m := kernel.NewMem(v.Type.Bytes())
	run(&f.work, []kernel.Mem{m}, src)
	f.made[v] = m
	return m
}
