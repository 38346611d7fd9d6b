package mlir

import (
	"strings"

	"ppc/ir"
)

// normalize gives the inherent attributes of op, at offset at and of syntax f, the kinds that
// ir's table names, where older text has others, and fills in the ones that
// the text may leave out.
func (s *parser) normalize(at int, op *ir.Op, f *syntax) {
	if len(op.Attrs) == 0 && f != nil && !f.fills {
		return
	}
	for _, d := range defaults {
		if op.Name() == d.op && !op.Attrs.Has(d.name) {
			op.Attrs.Set(d.name, d.value)
		}
	}
	if f != nil && f.defaults != nil {
		for _, name := range implied {
			if a := op.Attrs.Get(name); a != nil && a.String() == f.defaults[name] {
				op.Attrs.Delete(name)
			}
		}
	}
	specs := op.Specs()
	for i := range specs {
		spec := &specs[i]
		a := op.Attrs.Get(spec.Name)
		if a == nil {
			continue
		}
		if l, ok := a.(*ir.Literal); ok && spec.Name != "value" && l.IsSplat() && l.Type.NumElements() > maxSplat {
			s.report(at, "attribute %s of %s has %d elements", spec.Name, op.Name(), l.Type.NumElements())
			continue
		}
		if n, ok := a.(ir.Int); ok && spec.Kind == ir.IntAttr && n.Type != ir.NumberType(spec.Name) {
			s.report(at, "attribute %s of %s is %s, want an %s", spec.Name, op.Name(), a, ir.NumberType(spec.Name))
			continue
		}
		if unit := spec.Kind == ir.UnitAttr; (unit || spec.Kind == ir.BoolAttr) && ir.Is[ir.Unit](a) != unit {
			s.report(at, "attribute %s of %s is %s, want %s", spec.Name, op.Name(), a, map[bool]string{true: "no value", false: "true or false"}[unit])
			continue
		}
		if n := converted(spec, a); n != nil {
			op.Attrs.Set(spec.Name, n)
		}
	}
}

// implied are the attributes that are dropped where they say what holds without them.
var implied = []string{"composite_attributes", "output_operand_aliases", "result_accuracy", "version"}

// defaults are the attributes that the text of an op may leave out but the op has.
var defaults = []filled{
	{"stablehlo.sort", "dimension", ir.I64Attr(-1)},
	{"stablehlo.infeed", "infeed_config", ir.Str("")},
	{"stablehlo.outfeed", "outfeed_config", ir.Str("")},
}

// filled is an attribute that ops have where their text does not say it.
type filled struct {
	op, name string
	value    ir.Attr
}

// maxSplat bounds the lists of numbers that one element stands for, which
// others will write out.
const maxSplat = 1 << 12

// converted is a as the kind of attribute that spec names, or nil where it is
// one already or cannot become one.
func converted(spec *ir.AttrSpec, a ir.Attr) ir.Attr {
	switch spec.Kind {
	case ir.IntsAttr:
		return asInts(a)
	case ir.BoolsAttr:
		return asBools(a)
	case ir.EnumAttr:
		if v, ok := a.(ir.Str); ok {
			return ir.HLOEnum(spec.Set, string(v))
		}
	case ir.ArrayAttr:
		if v, ok := a.(ir.Verbatim); ok && spec.Name == manualAxes {
			return axesOf(string(v))
		}
	}
	return nil
}

// asInts reads dense<[1, 2]> : tensor<2xi64> and [1, 2] as array<i64: 1, 2>.
func asInts(a ir.Attr) ir.Attr {
	switch v := a.(type) {
	case *ir.Literal:
		if v.Type.Rank() == 1 && v.Type.Elem.IsInt() {
			out := ir.Ints{}
			for i := range v.Type.NumElements() {
				out = append(out, int(v.Int(i)))
			}
			return out
		}
	case ir.Array:
		out := ir.Ints{}
		for _, e := range v {
			n, ok := e.(ir.Int)
			if !ok {
				return nil
			}
			out = append(out, n.Value)
		}
		return out
	}
	return nil
}

func asBools(a ir.Attr) ir.Attr {
	v, ok := a.(*ir.Literal)
	if !ok || v.Type.Rank() != 1 || v.Type.Elem != ir.I1 {
		return nil
	}
	out := ir.Bools{}
	for i := range v.Type.NumElements() {
		out = append(out, v.Int(i) != 0)
	}
	return out
}

const manualAxesOpen = "#sdy<manual_axes{"

// axesOf reads #sdy<manual_axes{"x", "y"}> as an array of strings.
func axesOf(text string) ir.Attr {
	list, ok := strings.CutPrefix(text, manualAxesOpen)
	if !ok {
		return nil
	}
	s := &parser{src: "[" + strings.TrimSuffix(list, "}>") + "]"}
	s.next()
	a := s.attr()
	if s.failed {
		return nil
	}
	return a
}

// genericAttrs are inherent attributes whose generic form is not that of
// their value.
func genericAttrs(op *ir.Op, props ir.Attrs) ir.Attrs {
	axes, ok := props.Get(manualAxes).(ir.Array)
	if op.Kind == ir.ManualComputation && ok {
		text := strings.TrimSuffix(strings.TrimPrefix(axes.String(), "["), "]")
		props.Set(manualAxes, ir.Verbatim(manualAxesOpen+text+"}>"))
	}
	return props
}
