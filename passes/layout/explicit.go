package layout

import (
	"fmt"
	"strings"

	"ppc/ir"
)

// A Combining is along which axes an explicit collective combines a value, and
// how.
type Combining struct {
	Axes []ir.AxisRef
	By   ir.Kind
}

// CombiningsOf are, by ID, how the explicit collectives of f combine its values.
func CombiningsOf(f *ir.Func) map[ir.ID][]Combining {
	all := make(map[ir.ID][]Combining)
	f.Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.SdyAllReduce || op.Kind == ir.SdyReduceScatter {
			id := op.Operands[0].ID
			all[id] = append(all[id], Combining{ReductionAxes(op), ReductionOf(op)})
		}
	})
	return all
}

// AxesAttr is axes as an attribute of an explicit collective.
func AxesAttr(axes []ir.AxisRef) ir.Attr {
	return ir.Verbatim("#sdy<axis_ref_list" + axisList(axes) + ">")
}

// ListsAttr is a list of axes for each dimension, as an attribute of an explicit
// collective.
func ListsAttr(lists [][]ir.AxisRef) ir.Attr {
	texts := make([]string, len(lists))
	for d, axes := range lists {
		texts[d] = axisList(axes)
	}
	return ir.Verbatim("#sdy<list_of_axis_ref_lists[" + strings.Join(texts, ", ") + "]>")
}

// ExchangeAttr says that an all-to-all takes axes from one dimension to another.
func ExchangeAttr(axes []ir.AxisRef, from, to int) ir.Attr {
	return ir.Verbatim(fmt.Sprintf("#sdy<all_to_all_param_list[%s: %d->%d]>", axisList(axes), from, to))
}

func axisList(axes []ir.AxisRef) string {
	texts := make([]string, len(axes))
	for i, r := range axes {
		texts[i] = r.String()
	}
	return "{" + strings.Join(texts, ", ") + "}"
}
