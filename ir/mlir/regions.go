package mlir

import (
	"slices"
	"strings"

	"ppc/ir"
)

// loop is the whole of a while: operands, both regions. The regions share the
// names of their arguments.
type loop struct{ noAttrs }

func (loop) count(n *count) { n.variadic, n.regions = true, true }
func (loop) fits(op *ir.Op) bool {
	return len(op.Regions) == 2 && op.Regions[0] != nil && op.Regions[1] != nil && sameLists(op.Operands, op.Results) &&
		sameLists(op.Regions[0].Args, op.Operands) && sameLists(op.Regions[1].Args, op.Operands)
}
func (loop) print(p *printer, op *ir.Op, f *syntax) {
	p.print("(")
	for i, a := range op.Regions[0].Args {
		if i > 0 {
			p.print(", ")
		}
		p.print(p.use(a), " = ", p.use(op.Operands[i]))
	}
	p.print(")")
	if len(op.Operands) > 0 {
		p.print(" : ")
		p.types(op.Operands)
	}
	if rest := restAttrs(op, f); len(rest) > 0 {
		p.print(" attributes ", rest.String())
	}
	p.newline()
	p.print("cond ")
	p.region(op.Regions[0], false)
	p.print(" do ")
	p.region(op.Regions[1], false)
}

// reduction is the whole of a reduce: operands in pairs, dimensions, and the
// region, which is named by its op alone where it is nothing but that.
type reduction struct{}

func (reduction) attrs() []string { return []string{"dimensions"} }
func (reduction) count(n *count)  { n.variadic, n.regions = true, true }
func (reduction) fits(op *ir.Op) bool {
	n := len(op.Operands)
	return n > 0 && n%2 == 0 && list("dimensions").fits(op) && len(op.Regions) == 1 && op.Regions[0] != nil && len(op.Regions[0].Args) == n
}

func (reduction) print(p *printer, op *ir.Op, f *syntax) {
	n := len(op.Operands) / 2
	for i := range n {
		if i > 0 {
			p.print(", ")
		}
		p.print("(", p.use(op.Operands[i]), " init: ", p.use(op.Operands[n+i]), ")")
	}
	kind := combinerOf(op)
	if kind != ir.Invalid {
		p.print(" applies ", kind.String())
	}
	p.print(" across dimensions = ")
	writeInts(&p.b, op.Ints("dimensions"))
	p.suffixDict(restAttrs(op, f))
	p.print(" : ")
	p.functional(op)
	if kind != ir.Invalid {
		return
	}
	p.newline()
	p.print(" reducer")
	args := op.Regions[0].Args
	for i := range n {
		if i > 0 {
			p.print(" ")
		}
		p.params([]*ir.Value{args[i], args[n+i]})
	}
	p.print(" ")
	p.region(op.Regions[0], false)
}

// combiners are the ops that may stand for the region of a reduce.
var combiners = []ir.Kind{ir.Add, ir.Multiply, ir.Maximum, ir.Minimum, ir.And, ir.Or, ir.Xor}

// combinerOf is the op that the region of a reduce consists of: it combines
// both arguments and returns the result. It is Invalid where the region is more.
func combinerOf(op *ir.Op) ir.Kind {
	r := op.Regions[0]
	if len(op.Operands) != 2 || len(r.Args) != 2 || len(r.Ops) != 2 || op.Operands[0] == nil {
		return ir.Invalid
	}
	body, ret := r.Ops[0], r.Ops[1]
	plain := slices.Contains(combiners, body.Kind) && ret.Kind == ir.Return && len(body.Attrs)+len(ret.Attrs) == 0 &&
		len(body.Results) == 1 && body.Results[0].Sharding == nil &&
		slices.Equal(body.Operands, r.Args) && slices.Equal(ret.Operands, body.Results)
	if !plain || !op.Operands[0].Type.IsTensor() {
		return ir.Invalid
	}
	want := ir.Tensor(op.Operands[0].Type.Elem)
	for _, v := range []*ir.Value{r.Args[0], r.Args[1], body.Results[0]} {
		if !v.Type.Equal(want) {
			return ir.Invalid
		}
	}
	return body.Kind
}

// manualComputation is the whole of an sdy.manual_computation.
type manualComputation struct{}

func (manualComputation) attrs() []string {
	return []string{"in_shardings", "manual_axes", "out_shardings"}
}
func (manualComputation) count(n *count) { n.variadic, n.regions = true, true }
func (manualComputation) fits(op *ir.Op) bool {
	_, in := op.Attrs.Get("in_shardings").(ir.PerValue)
	_, out := op.Attrs.Get("out_shardings").(ir.PerValue)
	axes, ok := op.Attrs.Get("manual_axes").(ir.Array)
	for _, a := range axes {
		_, isStr := a.(ir.Str)
		ok = ok && isStr
	}
	return in && out && ok && len(op.Regions) == 1 && op.Regions[0] != nil
}

func (manualComputation) print(p *printer, op *ir.Op, f *syntax) {
	p.print("(")
	p.uses(op.Operands)
	p.print(") in_shardings=", shardingsText(op, "in_shardings"), " out_shardings=", shardingsText(op, "out_shardings"), " manual_axes={")
	for i, a := range op.Attrs.Get("manual_axes").(ir.Array) {
		if i > 0 {
			p.print(", ")
		}
		p.print(a.String())
	}
	p.print("} ")
	p.params(op.Regions[0].Args)
	p.print(" ")
	p.region(op.Regions[0], false)
	p.suffixDict(restAttrs(op, f))
	p.print(" : ")
	p.functional(op)
}

// shardingsText is the shardings without their dialect: [<@mesh, [{}]>].
func shardingsText(op *ir.Op, name string) string {
	s := op.Attrs.Get(name).(ir.PerValue).String()
	return strings.TrimSuffix(strings.TrimPrefix(s, "#sdy.sharding_per_value<"), ">")
}
