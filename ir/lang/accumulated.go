package lang

import (
	"slices"
	"strings"

	"ppc/internal/diag"
	"ppc/ir"
	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// normalized is x divided by a number of the batch, which the optimizer makes the
// mean over all batches of a step before any of them is differentiated.
func normalized(e *elab, c *builtinCall) value.Value {
	x, by := c.tensor("x"), c.tensor("by")
	switch {
	case e.model == nil:
		return e.fail(c.Span, "return the means of both, and divide in the model", syntax.ErrNormalized, "a layer")
	case e.inBlocks:
		return e.fail(c.Span, "return the blocks, and divide what they sum up to", syntax.ErrNormalized, "blocks")
	case !x.Elem().IsFloat():
		return e.fail(c.Span, "cast(x, f32)", syntax.ErrFloat, c.name, x)
	case by.Axis(e.model.batch) >= 0 || by.Elem() == ir.I1:
		return e.fail(c.Span, "sum(…) makes it one", syntax.ErrWant, "normalized's by", "a number of the batch", value.Describe(by))
	case !e.need(c, "x", x, value.NamesOf(by.Axes)...):
		return value.Poison{}
	}
	elem := wide(x.Elem())
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "name", Attr: ir.Str("")}, ir.NamedAttr{Name: ir.KeyStopGradient, Attr: ir.Unit{}}, ir.NamedAttr{Name: ir.KeyOverBatches, Attr: ir.Unit{}})
	total := e.b.Emit(ir.PPName, []*ir.Value{e.cast(by, elem).V}, attrs, nil, nil).Results[0]
	none := e.b.Compare("EQ", total, e.b.Splat(total.Type, 0))
	some := e.b.Select(none, e.b.Splat(total.Type, 1), total)
	wideX := e.cast(x, elem)
	broadcast := func(v *ir.Value) *ir.Value { return e.align(&value.Tensor{V: v, Axes: by.Axes}, x.Axes).V }
	quotient := e.b.Div(wideX.V, broadcast(some))
	return e.cast(wideX.With(e.b.Select(broadcast(none), e.b.Splat(quotient.Type, 0), quotient)), x.Elem())
}

// noteReduced notes a value of the main function that is made of all examples:
// by a reduction over their axis, or over all axes.
func (e *elab) noteReduced(t *value.Tensor, over []string) {
	if e.model != nil && (len(t.Axes) == 0 || slices.Contains(over, e.model.batch)) {
		e.model.reduced = append(e.model.reduced, t.V)
	}
}

// noteRatio notes v, which the main function computes as a / b, tensors.
func (e *elab) noteRatio(x *syntax.BinaryExpr, v, a, b value.Value) {
	q, ok := v.(*value.Tensor)
	divisor, isTensor := b.(*value.Tensor)
	if x.Op != "/" || !ok || !isTensor || e.model == nil {
		return
	}
	at, _ := e.where(x.Span)
	count := written(atLeast(x.Y).At(), "count")
	e.model.ratios = append(e.model.ratios, ratio{Span: at, x: written(x.X.At(), "sum"), by: written(x.Y.At(), "count"), count: count, value: q.V, divisor: divisor.V})
}

// atLeast is what x holds above a number, maximum(count, 1) say, else x.
func atLeast(x syntax.Expr) syntax.Expr {
	call, ok := x.(*syntax.CallExpr)
	if !ok || len(call.Args) != 2 {
		return x
	}
	fn, _ := call.Fn.(*syntax.NameRef)
	if _, known := call.Args[1].Value.(*syntax.NumberLit); !known || fn == nil || fn.Name != "maximum" {
		return x
	}
	return call.Args[0].Value
}

// written is the expression at a place as the source has it, or a name for it
// where it is too long to repeat.
func written(at syntax.Span, name string) string {
	const most = 40
	if at.Src == nil || at.Len > most {
		return name
	}
	line := []rune(diag.LineOf(at.Src.Text, at.Line))
	if at.Col-1+at.Len > len(line) {
		return name
	}
	return strings.TrimSpace(string(line[at.Col-1 : at.Col-1+at.Len]))
}

// checkMeanOfMeans warns of results that depend on a quotient whose divisor is
// made of the examples of a batch, where a step has several batches: the results
// of the step are means over those of its batches.
func (p *builder) checkMeanOfMeans(s *modelState) {
	accumulate, _ := p.Num("train", "gradient_accumulation")
	if accumulate < 2 {
		return
	}
	main := s.module.Main()
	d := dependence{s.module, func(op *ir.Op) bool { return op.Kind == ir.PPName && op.Attrs.Has(ir.KeyOverBatches) }}
	statistics := slices.DeleteFunc(slices.Clone(s.reduced), func(v *ir.Value) bool {
		made := d.of(main, v)
		return !slices.ContainsFunc(main.Params(), func(q *ir.Value) bool { return made[q] && q.Attrs.Str(ir.KeyKind) == "input" })
	})
	said := make(map[syntax.Span]bool)
	for _, q := range s.ratios {
		made := d.of(main, q.divisor)
		if said[q.Span] || !slices.ContainsFunc(statistics, func(v *ir.Value) bool { return made[v] }) {
			continue
		}
		for i, v := range main.Return().Operands {
			if v.Type.Rank() == 0 && v.Type.Elem.IsFloat() && d.of(main, v)[q.value] {
				said[q.Span] = true
				p.Warn(q.Span, config.MeanOfMeans, "normalized("+q.x+", by: "+q.count+")", syntax.WarnMeanOfMeans, accumulate, q.by, main.Results[i].Attrs.Str(ir.KeyName))
				break
			}
		}
	}
}
