package hlo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/lower/hlo/syntax"
)

// A windowPart is a part of a window that has a number for each dimension.
type windowPart struct {
	name  string
	usual int // left out where all numbers are this
	of    func(w ir.Window) int
	attr  string
}

// windowParts are those of an op whose attributes have the given names.
func windowParts(size, base, dilation string) []windowPart {
	return []windowPart{
		{"size", -1, func(w ir.Window) int { return w.Size }, size},
		{"stride", 1, func(w ir.Window) int { return w.Stride }, "window_strides"},
		{"lhs_dilate", 1, func(w ir.Window) int { return w.Base }, base},
		{"rhs_dilate", 1, func(w ir.Window) int { return w.Dilation }, dilation},
		{"rhs_reversal", 0, func(w ir.Window) int {
			if w.Reversed {
				return 1
			}
			return 0
		}, "window_reversal"},
	}
}

// window is the windows of a reduction: {size=1x2 stride=1x2 pad=0_0x1_1}.
func window() field {
	return absent(of("window", windowText, windowParser(windowParts("window_dimensions", "base_dilations", "window_dilations"))), "window_dimensions", ir.Ints{})
}

// convWindow is the windows of a convolution, whose sizes its kernel has.
func convWindow() field {
	return of("window", windowText, windowParser(windowParts(kernelSize, "lhs_dilation", "rhs_dilation")))
}

// kernelSize is the attribute of a convolution, while it is read, that holds
// what the text says of the size of its windows.
const kernelSize = "hlo.kernel_size"

func windowText(op *ir.Op) string {
	ws := op.Windows()
	if len(ws) == 0 {
		return "" // of a scalar
	}
	var parts []string
	for _, p := range windowParts("", "", "") {
		xs := make([]int, len(ws))
		for d, w := range ws {
			xs[d] = p.of(w)
		}
		if !all(xs, p.usual) {
			parts = append(parts, p.name+"="+byDim(xs))
		}
	}
	pads := make([]string, len(ws))
	some := false
	for d, w := range ws {
		pads[d] = fmt.Sprintf("%d_%d", w.Low, w.High)
		some = some || w.Low != 0 || w.High != 0
	}
	if some {
		parts = append(parts, "pad="+strings.Join(pads, "x"))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

// windowParser reads a window as the attributes that parts name.
func windowParser(known []windowPart) func(text string, as *ir.Attrs) error {
	return func(text string, as *ir.Attrs) error {
		if !strings.HasPrefix(text, "{") {
			return fmt.Errorf("want a window in braces, found %s", text)
		}
		as.Set(known[0].attr, ir.Ints{})
		for _, p := range strings.FieldsFunc(text[1:len(text)-1], func(r rune) bool { return r == ' ' || r == ',' || r == '\n' || r == '\t' }) {
			name, value, _ := strings.Cut(p, "=")
			if name == "pad" {
				if err := parsePads(value, as); err != nil {
					return err
				}
				continue
			}
			i := slices.IndexFunc(known, func(w windowPart) bool { return w.name == name })
			if i < 0 {
				return fmt.Errorf("%s is no part of a window", p)
			}
			xs, err := syntax.ParseList(value, "x")
			if err == nil && slices.Min(xs) < 0 {
				err = fmt.Errorf("%s is negative", p)
			}
			if err != nil {
				return err
			}
			as.Set(known[i].attr, partAttr(name, xs))
		}
		return nil
	}
}

func partAttr(name string, xs []int) ir.Attr {
	if name != "rhs_reversal" {
		return ir.Ints(xs)
	}
	bools := make(ir.Bools, len(xs))
	for i, x := range xs {
		bools[i] = x != 0
	}
	return bools
}

func parsePads(text string, as *ir.Attrs) error {
	var pads []int
	for _, dim := range strings.Split(text, "x") {
		xs, err := syntax.ParseList(dim, "_")
		if err == nil && len(xs) != 2 {
			err = fmt.Errorf("want low_high, found %s", dim)
		}
		if err != nil {
			return err
		}
		pads = append(pads, xs...)
	}
	as.Set("padding", ir.Ints64(ir.Tensor(ir.I64, len(pads)/2, 2), pads...))
	return nil
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

// dimLabels is the dimension numbers of a convolution: b01f_01io->b01f.
func dimLabels() field {
	return must(of("dim_labels", func(op *ir.Op) string {
		labels, _ := op.Attrs.Get("dimension_numbers").(ir.ConvDims).Labels()
		return labels[0] + "_" + labels[1] + "->" + labels[2]
	}, func(text string, as *ir.Attrs) error {
		if err := checkLabels(nil, text); err != nil {
			return err
		}
		if strings.Contains(text, "?") {
			return syntax.ErrBeyond
		}
		var sides [3]ir.ConvSide
		for i, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '_' || r == '-' || r == '>' }) {
			side, err := ir.ConvSideOf(i, strings.Split(part, ""))
			if err != nil {
				return fmt.Errorf("%s are no dimension numbers: %v", text, err)
			}
			sides[i] = side
		}
		as.Set("dimension_numbers", ir.ConvDims{Input: sides[0], Kernel: sides[1], Output: sides[2]})
		return nil
	}))
}

// groupCount is a number of groups, left out where it is 1.
func groupCount(name string) field {
	return absent(of(name, func(op *ir.Op) string {
		if n := op.Int(name); n != 1 {
			return strconv.Itoa(n)
		}
		return ""
	}, func(text string, as *ir.Attrs) error {
		n, err := syntax.ParseInt(text)
		as.Set(name, ir.I64Attr(n))
		return err
	}), name, ir.I64Attr(1))
}

// kernelFits reports whether the kernel has the size that a convolution says
// its windows have, which is no attribute of the op.
func kernelFits(attrs *ir.Attrs, operands []*ir.Value) bool {
	d, _ := attrs.Get("dimension_numbers").(ir.ConvDims)
	said, kernel := attrs.Ints(kernelSize), operands[1].Type
	attrs.Delete(kernelSize)
	return len(said) == len(d.Kernel.Spatial) && kernel.Rank() == len(said)+2 &&
		slices.Equal(said, kernelSizes(d, kernel))
}

func kernelSizes(d ir.ConvDims, kernel *ir.Type) []int {
	sizes := make([]int, len(d.Kernel.Spatial))
	for i, k := range d.Kernel.Spatial {
		sizes[i] = kernel.Shape[k]
	}
	return sizes
}
