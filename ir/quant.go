package ir

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Quant is the element type of a quantized tensor: integers of the type Storage
// that represent numbers of the type Expressed. The integer i of the slice k along
// Axis represents (i - Zeros[k]) * Scales[k]; with Axis PerTensor there is one
// scale and one zero point for all elements.
type Quant struct {
	Storage, Expressed DType
	Min, Max           int64 // of the integers
	Axis               int
	Scales             []float64
	Zeros              []int64
}

// PerTensor is the Axis of a Quant that has one scale for all elements.
const PerTensor = math.MinInt

const quantOpen = "!quant.uniform<"

// ParseQuant reads !quant.uniform<i8:f32, 2.0:15> and the form for each slice
// of an axis, !quant.uniform<i8<-127:127>:f32:1, {2.0, 3.0:4}>. It returns nil
// for what is neither.
func ParseQuant(text string) *Quant {
	text, ok := strings.CutPrefix(strings.TrimSpace(text), quantOpen)
	text, closed := strings.CutSuffix(text, ">")
	head, params, comma := strings.Cut(text, ",")
	if !ok || !closed || !comma {
		return nil
	}
	q := &Quant{Axis: PerTensor}
	head, bounds, ranged := splitRange(head)
	parts := strings.Split(head, ":")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	if len(parts) < 2 || len(parts) > 3 {
		return nil
	}
	q.Storage, q.Expressed = storageByName(parts[0]), DTypeByName(parts[1])
	if q.Storage == InvalidDType || !q.Expressed.IsFloat() {
		return nil
	}
	q.Min, q.Max = storageRange(q.Storage)
	if ranged && !q.setRange(bounds) {
		return nil
	}
	if len(parts) == 3 {
		axis, err := strconv.Atoi(parts[2])
		if err != nil {
			return nil
		}
		q.Axis = axis
	}
	if !q.setParams(strings.TrimSpace(params)) {
		return nil
	}
	return q
}

// splitRange separates the bounds of the storage type, <-127:127>, from the head of
// a quantized type.
func splitRange(head string) (rest, bounds string, ok bool) {
	open, end := strings.IndexByte(head, '<'), strings.IndexByte(head, '>')
	if open < 0 || end < open {
		return head, "", false
	}
	return head[:open] + head[end+1:], head[open+1 : end], true
}

func (q *Quant) setRange(bounds string) bool {
	low, high, ok := strings.Cut(bounds, ":")
	var err, err2 error
	q.Min, err = strconv.ParseInt(strings.TrimSpace(low), 10, 64)
	q.Max, err2 = strconv.ParseInt(strings.TrimSpace(high), 10, 64)
	return ok && err == nil && err2 == nil
}

// setParams reads one scale with its zero point, or a list of them in braces,
// which only the form with an axis has.
func (q *Quant) setParams(params string) bool {
	list, braces := strings.CutPrefix(params, "{")
	if braces != (q.Axis != PerTensor) {
		return false
	}
	if braces {
		var closed bool
		if list, closed = strings.CutSuffix(list, "}"); !closed {
			return false
		}
	}
	for _, p := range strings.Split(list, ",") {
		scale, zero, has := strings.Cut(p, ":")
		s, err := strconv.ParseFloat(strings.TrimSpace(scale), 64)
		if !strings.Contains(scale, ".") && !strings.Contains(scale, "x") {
			return false // an integer
		}
		z := int64(0)
		if has && err == nil {
			z, err = strconv.ParseInt(strings.TrimSpace(zero), 10, 64)
		}
		if err != nil {
			return false
		}
		q.Scales, q.Zeros = append(q.Scales, s), append(q.Zeros, z)
	}
	return braces || len(q.Scales) == 1
}

// storageByName is the type of the integers that MLIR's quantized types call
// i8 and u8.
func storageByName(name string) DType {
	if bits, ok := strings.CutPrefix(name, "u"); ok {
		name = "ui" + bits
	}
	t := DTypeByName(name)
	if !t.IsInt() || t == Index || strings.HasPrefix(name, "uii") {
		return InvalidDType
	}
	return t
}

// storageRange is the least and the greatest number of an integer type, as far
// as 64 bits hold it.
func storageRange(t DType) (low, high int64) {
	if t.Class() == Unsigned {
		if t.Bits() == 64 {
			return 0, math.MaxInt64
		}
		return 0, 1<<t.Bits() - 1
	}
	return -1 << (t.Bits() - 1), 1<<(t.Bits()-1) - 1
}

// String is q as MLIR prints it.
func (q *Quant) String() string {
	var b strings.Builder
	storage := q.Storage.String()
	if q.Storage.Class() == Unsigned {
		storage = "u" + strings.TrimPrefix(storage, "ui")
	}
	b.WriteString(quantOpen + storage)
	if low, high := storageRange(q.Storage); low != q.Min || high != q.Max {
		fmt.Fprintf(&b, "<%d:%d>", q.Min, q.Max)
	}
	b.WriteString(":" + q.Expressed.String())
	if q.Axis != PerTensor {
		fmt.Fprintf(&b, ":%d", q.Axis)
	}
	b.WriteString(", ")
	if q.Axis != PerTensor {
		b.WriteByte('{')
	}
	for i, s := range q.Scales {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(scaleText(s))
		if q.Zeros[i] != 0 {
			fmt.Fprintf(&b, ":%d", q.Zeros[i])
		}
	}
	if q.Axis != PerTensor {
		b.WriteByte('}')
	}
	b.WriteByte('>')
	return b.String()
}

// scaleText is s with six digits, or as many as are needed to parse back to s.
func scaleText(s float64) string {
	text := strconv.FormatFloat(s, 'e', 6, 64)
	if v, err := strconv.ParseFloat(text, 64); err == nil && v == s {
		return text
	}
	return strconv.FormatFloat(s, 'e', -1, 64)
}

// Equal reports whether q and r are the same type; either may be nil.
func (q *Quant) Equal(r *Quant) bool {
	return q.SameBaseline(r) && (q == nil || slices.Equal(q.Scales, r.Scales) && slices.Equal(q.Zeros, r.Zeros))
}

// SameBaseline reports whether q and r are the same but for their scales and
// zero points.
func (q *Quant) SameBaseline(r *Quant) bool {
	if q == nil || r == nil {
		return q == r
	}
	return q.Storage == r.Storage && q.Expressed == r.Expressed && q.Min == r.Min && q.Max == r.Max && q.Axis == r.Axis
}

// OnAxis is q with another axis of quantization, or q where it has none.
func (q *Quant) OnAxis(axis int) *Quant {
	if q == nil || q.Axis == PerTensor {
		return q
	}
	c := *q
	c.Axis = axis
	return &c
}

// Sound checks q by itself, as the element type of t: its range of integers, and that
// scales are positive numbers of the expressed type.
func (q *Quant) Sound(t *Type) *Rule {
	low, high := storageRange(q.Storage)
	if q.Min < low || q.Max > high || q.Min >= q.Max {
		return q.broken(3, t, "the storage range is %d to %d, want one within %d to %d", q.Min, q.Max, low, high)
	}
	for i, s := range q.Scales {
		if !(s > 0) {
			return q.broken(5, t, "scale %d is %s, want one above 0", i, scaleText(s))
		}
		if least := q.Expressed.GetFloat([]byte{1, 0, 0, 0, 0, 0, 0, 0}); s < least || math.IsInf(q.Expressed.Round(s), 0) {
			return q.broken(6, t, "scale %d is %s, which is beyond the finite positive numbers of type %s", i, scaleText(s), q.Expressed)
		}
	}
	if q.Axis != PerTensor && q.Axis < 0 {
		return q.broken(11, t, "the axis of quantization is %d", q.Axis)
	}
	return nil
}

// Fits checks what ops ask of tensors of type t, whose element type q is: zero points
// are integers of it, and there is a scale for each slice of a dimension.
func (q *Quant) Fits(t *Type) *Rule {
	for i, z := range q.Zeros {
		if z < q.Min || z > q.Max {
			return q.broken(7, t, "zero point %d is %d, want one within %d and %d", i, z, q.Min, q.Max)
		}
	}
	switch {
	case q.Axis == PerTensor:
	case q.Axis < 0 || q.Axis >= t.Rank():
		return q.broken(12, t, "the axis of quantization is %d, want one of %s", q.Axis, Counted(t.Rank(), "dimension"))
	case !Fits(t.Shape[q.Axis], len(q.Scales)):
		return q.broken(13, t, "%s for dimension %d of size %d", Counted(len(q.Scales), "scale"), q.Axis, t.Shape[q.Axis])
	}
	return nil
}

// broken is constraint n of quantized types, broken by the element type of t.
func (q *Quant) broken(n int, t *Type, format string, args ...any) *Rule {
	return NewRule(fmt.Sprintf("quantized-C%d", n), "%s: "+format, append([]any{t}, args...)...)
}

// PerAxis reports whether t is a tensor with scales of its own for each slice of
// an axis.
func (t *Type) PerAxis() bool { return t.Quant != nil && t.Quant.Axis != PerTensor }

// SameElem reports whether two tensors have one element type.
func (t *Type) SameElem(u *Type) bool { return t.Elem == u.Elem && t.Quant.Equal(u.Quant) }

// SameBaseline reports whether two tensors have one element type, but for the
// scales and zero points of quantized ones.
func (t *Type) SameBaseline(u *Type) bool { return t.Elem == u.Elem && t.Quant.SameBaseline(u.Quant) }

// ElemText is the element type of a tensor in MLIR's spelling.
func (t *Type) ElemText() string {
	if t.Quant != nil {
		return t.Quant.String()
	}
	return t.Elem.String()
}
