package gradient

import (
	"ppc/ir"
)

// cotangentTypes finds the values whose cotangent has another element type than
// they have: the values that gather, slice and the like pick from a weight rounded
// for communication, up to the conversion back. The rounding saves bytes of an
// all-gather and does not lower the precision of sums: the gradient of such a
// weight is summed over iterations and devices in the weight's own type, or in the
// one that the configuration asks for.
func (d *differentiator) cotangentTypes() {
	d.cotangents = make(map[*ir.Value]ir.DType)
	for d.spreadTypes(d.f.Body) {
	}
}

// spreadTypes gives the results of the ops of b that only pick elements the
// cotangent type of their operand; it reports whether any type is new.
func (d *differentiator) spreadTypes(b *ir.Block) bool {
	changed := false
	mark := func(v *ir.Value, elem ir.DType) {
		if _, known := d.cotangents[v]; !known && elem != ir.InvalidDType && v.Type.IsTensor() && v.Type.Elem.IsFloat() {
			d.cotangents[v], changed = elem, true
		}
	}
	for _, op := range b.Ops {
		switch {
		case op.Kind == ir.PPGather || op.Kind == ir.Convert && op.Attrs.Has(ir.KeyReduceDType):
			mark(op.Result(), reducedIn(op))
		case op.Kind == ir.PPScan:
			body := op.Regions[0]
			for i, v := range op.Operands {
				mark(body.Args[1+i], d.cotangents[v])
			}
			changed = d.spreadTypes(body) || changed
			for i, v := range body.Terminator().Operands {
				mark(op.Results[i], d.cotangents[v])
				if i < op.Int("carries") {
					mark(body.Args[1+i], d.cotangents[v])
				}
			}
		case picks[op.Kind]:
			for _, x := range op.Operands {
				if x.Type.Elem == op.Results[0].Type.Elem {
					mark(op.Results[0], d.cotangents[x])
				}
			}
		}
	}
	return changed
}

// picks is the set of ops whose results are elements of their operands, unchanged.
var picks = map[ir.Kind]bool{ir.Gather: true, ir.DynamicSlice: true, ir.Slice: true, ir.Select: true, ir.Reshape: true, ir.PPName: true, ir.ShardingConstraint: true}

// reducedIn is the element type of the gradient of a weight that op rounds or
// gathers.
func reducedIn(op *ir.Op) ir.DType {
	own := op.Operands[0].Type.Elem
	if asked := ir.DTypeByName(op.Attrs.Str(ir.KeyReduceDType)); asked.IsFloat() && asked.Bits() < own.Bits() {
		return asked
	}
	return own
}

// cotangentType is the type of the cotangent of v.
func (t *tape) cotangentType(v *ir.Value) *ir.Type {
	if elem, ok := t.d.cotangents[v]; ok {
		return v.Type.WithElem(elem)
	}
	return v.Type
}
