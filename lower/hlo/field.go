package hlo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/lower"
)

// A field is one attribute of an instruction: its name and how its value
// stands in the attributes of the op. print returns "" where the field is left
// out.
type field struct {
	name  string
	print func(m *ir.Module, op *ir.Op) (string, error)
}

// of is a field whose text needs only the op.
func of(name string, text func(op *ir.Op) string) field {
	return field{name: name, print: func(_ *ir.Module, op *ir.Op) (string, error) { return text(op), nil }}
}

// ints is a list that is there even when it is empty.
func ints(name, attr string) field {
	return of(name, func(op *ir.Op) string { return braced(op.Ints(attr)) })
}

// single is a number in the form of a list of one.
func single(name, attr string) field {
	return of(name, func(op *ir.Op) string { return braced([]int{op.Int(attr)}) })
}

func number(name, attr string) field {
	return of(name, func(op *ir.Op) string { return strconv.Itoa(op.Int(attr)) })
}

// flag is there only when it is true.
func flag(name, attr string) field {
	return of(name, func(op *ir.Op) string {
		if op.Bool(attr) {
			return "true"
		}
		return ""
	})
}

func word(name, attr string) field {
	return of(name, func(op *ir.Op) string { return op.Word(attr) })
}

// str is a quoted string, left out where the attribute is not there.
func str(name, attr string) field {
	return of(name, func(op *ir.Op) string {
		if s, ok := op.Attrs.Get(attr).(ir.Str); ok {
			return quote(string(s))
		}
		return ""
	})
}

// always and nonEmpty say when a list is printed.
const (
	always   = true
	nonEmpty = false
)

// part is a list within the attribute attr, a struct of type T.
func part[T ir.Attr](name, attr string, at func(*T) *[]int, empty bool) field {
	return of(name, func(op *ir.Op) string {
		v, _ := op.Attrs.Get(attr).(T)
		xs := *at(&v)
		if len(xs) == 0 && !empty {
			return ""
		}
		return braced(xs)
	})
}

// partNumber is a number within the attribute attr, a struct of type T.
func partNumber[T ir.Attr](name, attr string, at func(*T) *int) field {
	return of(name, func(op *ir.Op) string {
		v, _ := op.Attrs.Get(attr).(T)
		return strconv.Itoa(*at(&v))
	})
}

// compareType is the type of a comparison where it does not follow from the
// operands.
func compareType() field {
	return of("type", func(op *ir.Op) string {
		if w := op.Word("compare_type"); w == "TOTALORDER" {
			return w
		}
		return ""
	})
}

// padding is low_high_interior of each dimension, joined by x.
func padding() field {
	return of("padding", func(op *ir.Op) string {
		low, high, interior := op.Ints("edge_padding_low"), op.Ints("edge_padding_high"), op.Ints("interior_padding")
		dims := make([]string, len(low))
		for d := range dims {
			dims[d] = fmt.Sprintf("%d_%d", low[d], high[d])
			if interior[d] != 0 {
				dims[d] += fmt.Sprintf("_%d", interior[d])
			}
		}
		return strings.Join(dims, "x")
	})
}

// slice is the range of each dimension: {[0:4], [1:7:2]}.
func slice() field {
	return of("slice", func(op *ir.Op) string {
		start, limit, strides := op.Ints("start_indices"), op.Ints("limit_indices"), op.Ints("strides")
		dims := make([]string, len(start))
		for d := range dims {
			dims[d] = fmt.Sprintf("[%d:%d]", start[d], limit[d])
			if strides[d] != 1 {
				dims[d] = fmt.Sprintf("[%d:%d:%d]", start[d], limit[d], strides[d])
			}
		}
		return "{" + strings.Join(dims, ", ") + "}"
	})
}

// window is the windows of a reduction: {size=1x2 stride=1x2 pad=0_0x1_1}.
func window() field {
	return of("window", func(op *ir.Op) string {
		size := op.Ints("window_dimensions")
		parts := []string{"size=" + byDim(size)}
		for _, p := range []struct{ name, attr string }{{"stride", "window_strides"}, {"lhs_dilate", "base_dilations"}, {"rhs_dilate", "window_dilations"}} {
			if xs := op.Ints(p.attr); len(xs) > 0 && !all(xs, 1) {
				parts = append(parts, p.name+"="+byDim(xs))
			}
		}
		if l := op.Literal("padding"); l != nil && !l.IsAll(0) {
			pads := make([]string, len(size))
			for d := range pads {
				pads[d] = fmt.Sprintf("%d_%d", l.Int(2*d), l.Int(2*d+1))
			}
			parts = append(parts, "pad="+strings.Join(pads, "x"))
		}
		return "{" + strings.Join(parts, " ") + "}"
	})
}

func byDim(xs []int) string {
	ss := make([]string, len(xs))
	for i, x := range xs {
		ss[i] = strconv.Itoa(x)
	}
	return strings.Join(ss, "x")
}

func all(xs []int, v int) bool {
	for _, x := range xs {
		if x != v {
			return false
		}
	}
	return true
}

// sortDimension counts a negative dimension from the end, as StableHLO does.
func sortDimension() field {
	return of("dimensions", func(op *ir.Op) string {
		d := op.Int("dimension")
		if d < 0 {
			d += op.Operands[0].Type.Rank()
		}
		return braced([]int{d})
	})
}

// precision is the precision of each operand where one is not the default.
func precision() field {
	return of("operand_precision", func(op *ir.Op) string {
		list, _ := op.Attrs.Get("precision_config").(ir.Array)
		words := make([]string, len(list))
		special := false
		for i, a := range list {
			e, _ := a.(ir.Enum)
			words[i] = strings.ToLower(e.Value)
			special = special || e.Value != "DEFAULT"
		}
		if !special {
			return ""
		}
		return "{" + strings.Join(words, ",") + "}"
	})
}

// apiVersion is how the target of a custom call is called.
func apiVersion() field {
	names := []string{1: "", 2: "API_VERSION_STATUS_RETURNING", 3: "API_VERSION_STATUS_RETURNING_UNIFIED", 4: "API_VERSION_TYPED_FFI"}
	return of("api_version", func(op *ir.Op) string {
		if v := op.Int("api_version"); v > 1 && v < len(names) {
			return names[v]
		}
		return ""
	})
}

// channelID is there where devices, and not replicas, communicate.
func channelID() field {
	return of("channel_id", func(op *ir.Op) string {
		if ch, ok := op.Attrs.Get("channel_handle").(ir.Channel); ok && ch.Handle > 0 {
			return strconv.Itoa(ch.Handle)
		}
		return ""
	})
}

func globalIDs() field { return flag("use_global_device_ids", "use_global_device_ids") }

func groups() field {
	return field{name: "replica_groups", print: func(m *ir.Module, op *ir.Op) (string, error) {
		switch g := op.Attrs.Get("replica_groups").(type) {
		case *ir.Literal:
			return listsText(rows(g)), nil
		case ir.MeshAxes:
			mesh, err := lower.MeshOf(m, g.Mesh, g.Axes...)
			if err != nil {
				return "", err
			}
			return groupsText(mesh, g.Axes), nil
		}
		return "", errors.New("replica_groups are missing")
	}}
}

func pairs() field {
	return field{name: "source_target_pairs", print: func(m *ir.Module, op *ir.Op) (string, error) {
		switch p := op.Attrs.Get("source_target_pairs").(type) {
		case *ir.Literal:
			return listsText(rows(p)), nil
		case ir.AxisShift:
			mesh, err := lower.MeshOf(m, p.Mesh, p.Axis)
			if err != nil {
				return "", err
			}
			return listsText(lower.Pairs(mesh, p)), nil
		}
		return "", errors.New("source_target_pairs are missing")
	}}
}

// algorithm is the algorithm of a contraction.
func algorithm() field {
	return of("algorithm", func(op *ir.Op) string { return op.Str("algorithm") })
}
