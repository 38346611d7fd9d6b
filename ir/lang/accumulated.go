package lang

import (
	"slices"
	"strings"

	"ppc/internal/diag"
	"ppc/ir"
	"ppc/ir/lang/syntax"
)

// normalized is x divided by a number of the batch, which the optimizer makes the
// mean over all batches of a step before any of them is differentiated.
func normalized(e *elab, c *builtinCall) value {
	x, by := c.tensor("x"), c.tensor("by")
	switch {
	case e.model == nil:
		return e.fail(c.Span, "return the means of both, and divide in the model", errNormalized, "a layer")
	case e.inBlocks:
		return e.fail(c.Span, "return the blocks, and divide what they sum up to", errNormalized, "blocks")
	case !x.elem().IsFloat():
		return e.fail(c.Span, "cast(x, f32)", errFloat, c.name, x)
	case by.axis(e.model.batch) >= 0 || by.elem() == ir.I1:
		return e.fail(c.Span, "sum(…) makes it one", errWant, "normalized's by", "a number of the batch", describe(by))
	case !e.need(c, "x", x, namesOf(by.axes)...):
		return poison{}
	}
	elem := wide(x.elem())
	attrs := ir.AttrsOf(ir.NamedAttr{Name: "name", Attr: ir.Str("")}, ir.NamedAttr{Name: ir.KeyStopGradient, Attr: ir.Unit{}}, ir.NamedAttr{Name: ir.KeyOverBatches, Attr: ir.Unit{}})
	total := e.b.Emit(ir.PPName, []*ir.Value{e.cast(by, elem).v}, attrs, nil, nil).Results[0]
	none := e.b.Compare("EQ", total, e.b.Splat(total.Type, 0))
	some := e.b.Select(none, e.b.Splat(total.Type, 1), total)
	wideX := e.cast(x, elem)
	spread := func(v *ir.Value) *ir.Value { return e.align(&tensor{v, by.axes}, x.axes).v }
	quotient := e.b.Div(wideX.v, spread(some))
	return e.cast(wideX.with(e.b.Select(spread(none), e.b.Splat(quotient.Type, 0), quotient)), x.elem())
}

// noteReduced notes a value of the main function that is made of all examples:
// by a reduction over their axis, or over all axes.
func (e *elab) noteReduced(t *tensor, over []string) {
	if e.model != nil && (len(t.axes) == 0 || slices.Contains(over, e.model.batch)) {
		e.model.reduced = append(e.model.reduced, t.v)
	}
}

// noteRatio notes v, which the main function computes as a / b, tensors.
func (e *elab) noteRatio(x *syntax.BinaryExpr, v, a, b value) {
	q, ok := v.(*tensor)
	divisor, isTensor := b.(*tensor)
	if x.Op != "/" || !ok || !isTensor || e.model == nil {
		return
	}
	at, _ := e.where(x.Span)
	e.model.ratios = append(e.model.ratios, ratio{Span: at, x: written(x.X.At(), "sum"), by: written(x.Y.At(), "count"), value: q.v, divisor: divisor.v})
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
func (p *program) checkMeanOfMeans(s *modelState) {
	accumulate, _ := p.num("train", "gradient_accumulation")
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
				p.Warn(q.Span, meanOfMeans, "normalized("+q.x+", by: "+q.by+")", warnMeanOfMeans, accumulate, q.by, main.Results[i].Attrs.Str(ir.KeyName))
				break
			}
		}
	}
}
