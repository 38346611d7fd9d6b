package lint

import (
	"fmt"
	"strings"

	"ppc/ir"
	"ppc/lower/flow"
)

// A numbering gives values numbers: those with the same number hold the same
// elements, in whatever shape, order and type. Strictly, a barrier makes a new
// value; what is computed again beyond it has another number there.
type numbering struct {
	strict, through map[*ir.Value]int
}

// sameElements are the ops whose result has the elements of their operand, as
// far as its type has them.
var sameElements = map[ir.Kind]bool{ir.Convert: true, ir.ReducePrecision: true, ir.Reshape: true, ir.Transpose: true}

// longest is the number of elements of the constants that are compared.
const longest = 64

// newNumbering walks the program in order, so operands have numbers when an op
// is reached. What a loop carries has one of its own, unless it never changes.
func newNumbering(p *program) *numbering {
	n := &numbering{make(map[*ir.Value]int), make(map[*ir.Value]int)}
	n.number(p, n.strict, opaque)
	n.number(p, n.through, transparent)
	return n
}

// A barrier is what a numbering makes of an optimization_barrier.
type barrier int

const (
	opaque      barrier = iota // its results are new values
	transparent                // they are its operands
)

func (n *numbering) number(p *program, of map[*ir.Value]int, barriers barrier) {
	byKey := make(map[string]int)
	last := 0
	fresh := func(v *ir.Value) {
		last++
		of[v] = last
	}
	var block func(b *ir.Block)
	block = func(b *ir.Block) {
		for _, a := range b.Args {
			loop := p.u.Owner[b]
			if loop != nil && loop.Kind == ir.While && flow.Invariant(loop, a.Index) {
				of[a] = of[loop.Operands[a.Index]]
			} else {
				fresh(a)
			}
		}
		for _, op := range b.Ops {
			for _, r := range op.Regions {
				block(r)
			}
			for i, v := range op.Results {
				key, same := key(op, of)
				switch {
				case sameElements[op.Kind], barriers == transparent && op.Kind == ir.OptimizationBarrier:
					of[v] = of[op.Operands[i]]
				case op.Kind == ir.While && flow.Invariant(op, i):
					of[v] = of[op.Operands[i]]
				case !same:
					fresh(v)
				default:
					key = fmt.Sprint(key, "#", i)
					if byKey[key] == 0 {
						fresh(v)
						byKey[key] = of[v]
					}
					of[v] = byKey[key]
				}
			}
		}
	}
	block(p.main.Body)
}

// key is what op computes, as text; false where two of them need not compute
// the same.
func key(op *ir.Op, of map[*ir.Value]int) (string, bool) {
	if !op.Kind.Has(ir.Pure) && op.Kind != ir.AllGather || len(op.Regions) > 0 || op.Kind == ir.OptimizationBarrier {
		return "", false
	}
	var b strings.Builder
	b.WriteString(op.Name())
	for _, a := range op.Attrs {
		switch v := a.Attr.(type) {
		case *ir.Literal:
			if v.Type.NumElements() > longest {
				return "", false
			}
			fmt.Fprintf(&b, " %s=%s", a.Name, v)
		case ir.Channel:
		default:
			if !strings.HasPrefix(a.Name, "hlo.") {
				fmt.Fprintf(&b, " %s=%v", a.Name, v)
			}
		}
	}
	for _, v := range op.Operands {
		fmt.Fprintf(&b, " %d", of[v])
	}
	fmt.Fprintf(&b, " %s", op.Results[0].Type)
	return b.String(), true
}
