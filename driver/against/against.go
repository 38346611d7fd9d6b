// Package against finds the first value in which two runs of the same program differ.
package against

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ppc/ir"
)

// A Difference is a value in which two runs differ by more than rounding.
type Difference struct {
	Value  *ir.Value
	Loops  []Iteration // that it is in, the outermost first
	Device int
	Index  []int      // the element that is furthest off
	Got    [2]float64 // in either run
	Rel    float64    // the distance of the runs, as a part of the value's size
	Limit  float64    // of Rel
}

// Rounding is how far values of two engines may be from each other, as a part of their
// size: what sums of some thousand terms lose in another order.
func Rounding(t ir.DType) float64 {
	bits := map[ir.DType]int{ir.F64: 52, ir.F32: 23, ir.F16: 10, ir.BF16: 7}[t]
	if bits == 0 {
		return 0
	}
	return min(1024*math.Pow(2, -float64(bits)), 0.1)
}

// compare holds the norm of the difference against the norm of the value.
func compare(v *ir.Value, a, b *ir.Literal) *Difference {
	n := a.Type.NumElements()
	far, at, distance, size := -1.0, 0, 0.0, 0.0
	for i := range n {
		x, y := a.Float(i), b.Float(i)
		d := math.Abs(x - y)
		if x == y || math.IsNaN(x) && math.IsNaN(y) {
			d = 0
		}
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		if d > far {
			far, at = d, i
		}
		distance += d * d
		if !math.IsInf(y, 0) && !math.IsNaN(y) {
			size += y * y
		}
	}
	limit := Rounding(a.Type.Elem)
	distance, size = math.Sqrt(distance), math.Sqrt(size)
	if far == 0 || distance <= limit*size {
		return nil
	}
	rel := math.Inf(1)
	if size > 0 {
		rel = distance / size
	}
	return &Difference{Value: v, Index: index(a.Type.Shape, at), Got: [2]float64{a.Float(at), b.Float(at)}, Rel: rel, Limit: limit}
}

func index(shape []int, i int) []int {
	out := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		out[d] = i % shape[d]
		i /= shape[d]
	}
	return out
}

// Text says what differs on which device of m, and where it comes from.
func (d *Difference) Text(m *ir.Module, engines [2]string) string {
	var b strings.Builder
	op := d.Value.Def
	b.WriteString("the first value that differs is ")
	if d.Value.Name != "" {
		fmt.Fprintf(&b, "%s, ", d.Value.Name)
	}
	fmt.Fprintf(&b, "by %s", op.Name())
	b.WriteString(source(op))
	if op.Origin.Layer() != "" {
		fmt.Fprintf(&b, " in layer %s", op.Origin.Layer())
	}
	for _, l := range slices.Backward(d.Loops) {
		fmt.Fprintf(&b, ", in iteration %d of the loop%s", l.N, source(l.Loop))
	}
	fmt.Fprintf(&b, ", on %s: ", place(m, d.Device))
	if len(d.Index) > 0 {
		fmt.Fprintf(&b, "element %v ", d.Index)
	}
	fmt.Fprintf(&b, "is %.9g on %s, %.9g on %s; the runs are %.3g of its size apart, more than %.3g", d.Got[0], engines[0], d.Got[1], engines[1], d.Rel, d.Limit)
	return b.String()
}

// source is where op comes from, "" where nobody knows.
func source(op *ir.Op) string {
	if op.Origin == nil || op.Origin.Pos.Line == 0 {
		return ""
	}
	return " at " + op.Origin.Pos.String()
}

// place is a device and where it is in the mesh.
func place(m *ir.Module, device int) string {
	text := fmt.Sprint("device ", device)
	if len(m.Meshes) == 0 || len(m.Meshes[0].Axes) == 0 {
		return text
	}
	var at []string
	for _, a := range m.Meshes[0].Axes {
		at = append(at, fmt.Sprintf("%s %d", a.Name, m.Meshes[0].Coordinate(device, ir.AxisRef{Name: a.Name})))
	}
	return text + " (" + strings.Join(at, ", ") + ")"
}
