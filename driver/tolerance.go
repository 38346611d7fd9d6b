package driver

import (
	"math"
	"slices"
	"strings"

	"ppc/driver/binding"
	"ppc/driver/rounding"
	"ppc/ir"
)

// A yardstick says how far results of the program may be from the reference:
// it follows from the program's types, the length of its sums, and how far
// rounding alone moves each result.
//
// The last is measured. The reference is evaluated a second time in the
// program's own types, one rounding after each op; its distance from float64 is
// what these types cost, whatever the model does. The pipelined program rounds
// as often but adds up in another order, so its distance has the same size:
// [timesMeasured] as much is allowed, plus what its sums may lose. A program in
// float64 is measured in float32 and the distance scaled, for to first order a
// rounding error is proportional to the unit of the type; the reference rounds by
// as much there as the program. One whose gradients are rounded to fewer bits is not
// scaled.
//
// Distances are root mean squares, of each layer where a value has one part per
// layer, since wrong numbers are told from rounded ones by how many they are: a
// microbatch too few changes every element of a gradient, by much less than
// rounding may change one.
type yardstick struct {
	scale float64 // of a distance in the types of the measurement: 1, or that of float64 to float32
	unit  float64 // of the least precise type
	sums  float64 // what sums may lose within an op, relatively
	// reduced is whether gradients are sums of parts that are rounded by themselves, in
	// fewer bits than theirs. The reference has one part, and rounds it once: what is
	// measured counts times the root of their number. And what is rounded once keeps its
	// sign, where a sum of rounded parts may lose it.
	reduced   bool
	inFloat32 bool               // whether the program is in float64, and the measurement in float32
	parts     float64            // what the sum of parts may lose, added up in the least precise type
	usual     map[string]float64 // relative distances of parts of results, by kind
}

const (
	// timesMeasured is how many times the measured distance is allowed of many elements:
	// see [extent.times].
	timesMeasured = 4

	// With fewer elements a distance may be small by chance; then at least that
	// is allowed which is usual among results of the same kind.
	fewElements = 64
)

// newYardstick is the yardstick of program m, as it was read; sequential is its
// reference, whose sums have all their terms.
//
// An op adds up in float32, or float64 where its values are that: the error of n
// additions grows with the root of n. What microbatches, batches and devices
// make is added up in the type of the value itself, the least precise there is.
func newYardstick(m, sequential *ir.Module) *yardstick {
	y := &yardstick{scale: 1, usual: make(map[string]float64)}
	types := rounding.Types(m)
	if len(types) == 0 {
		return y
	}
	y.unit = rounding.Unit(types[0])
	y.sums = min(y.unit, rounding.Unit(ir.F32)) * math.Sqrt(rounding.LongestSum(sequential))
	y.parts = y.unit * math.Sqrt(float64(rounding.Pieces(m)))
	y.reduced, y.inFloat32 = rounding.Reduces(m), types[0] == ir.F64
	switch {
	case y.reduced:
		y.scale = math.Sqrt(float64(rounding.Pieces(m)))
	case y.inFloat32:
		y.scale = math.Sqrt2 * rounding.Unit(ir.F64) / rounding.Unit(ir.F32)
	}
	return y
}

// An extent is one part of a result, a layer's or all of it: how far the
// reference in the program's own types is from that in float64.
type extent struct {
	lo, hi int     // its elements
	scale  float64 // the norm of what it is relative to
	count  float64 // how many elements make up scale: 1 where one is larger by far than all others
	own    float64 // the distance, as a norm
	least  float64 // a distance that is allowed in any case
}

// measures measures a result part by part. Its size is that of what it is
// relative to: itself, or, of a new parameter, the update.
func (y *yardstick) measures(want, own, before *ir.Literal, layers int) []extent {
	n := want.Type.NumElements()
	ms := make([]extent, max(layers, 1))
	for i := range ms {
		m := &ms[i]
		m.lo, m.hi = n/len(ms)*i, n/len(ms)*(i+1)
		size := func(i int) float64 { return binding.Number(want, i) }
		m.scale = norm(m.lo, m.hi, size)
		if before != nil {
			update := func(i int) float64 { return difference(want, before, i) }
			if by := norm(m.lo, m.hi, update); by > 0 {
				m.scale, size = by, update
			}
		}
		m.count = 1
		if m.scale > 0 {
			fourth := norm(m.lo, m.hi, func(i int) float64 { return size(i) / m.scale * (size(i) / m.scale) })
			m.count = 1 / (fourth * fourth)
		}
		if own != nil {
			m.own = y.scale * norm(m.lo, m.hi, func(i int) float64 {
				d := difference(own, want, i)
				if math.IsInf(d, 0) && y.scale != 1 { // float32 does not hold the number
					return binding.Number(want, i)
				}
				return d
			})
		}
	}
	return ms
}

// norm is the root of the sum of the squares of the finite values among f(lo) …
// f(hi-1), which themselves may be too large or too small for float64.
func norm(lo, hi int, f func(i int) float64) float64 {
	sum, unit := 0.0, 0.0 // of the squares relative to the square of unit, the largest so far
	for i := lo; i < hi; i++ {
		switch v := math.Abs(f(i)); {
		case v == 0 || math.IsNaN(v) || math.IsInf(v, 0):
		case v > unit:
			sum, unit = 1+sum*(unit/v)*(unit/v), v
		default:
			sum += v / unit * (v / unit)
		}
	}
	return unit * math.Sqrt(sum)
}

// learn notes which relative distances are usual among results of a kind: the
// median over parts.
func (y *yardstick) learn(kinds map[string][]extent) {
	for kind, ms := range kinds {
		var rel []float64
		for _, m := range ms {
			if m.scale > 0 {
				rel = append(rel, m.own/m.scale)
			}
		}
		if len(rel) > 0 {
			slices.Sort(rel)
			y.usual[kind] = rel[len(rel)/2]
		}
	}
}

// times is how many times the measured distance is allowed. The fewer the elements that make
// up a distance, the further it is from what is expected of it by chance: of normal errors one in
// 10^9 is 6 times as large as expected where it is one number, 4.6 times of two, 2 times of 20.
func (m *extent) times() float64 { return timesMeasured * (1 + 1/m.count) }

// allowed is the distance that is allowed of a part of v, as a norm.
func (y *yardstick) allowed(m *extent, v *binding.Named) float64 {
	t := v.Literal.Type.Elem
	if !t.IsFloat() && !t.IsComplex() {
		return timesMeasured * m.own
	}
	own, once := m.own, rounding.Unit(t) // what one rounding may cost
	if y.inFloat32 {
		once = y.scale * rounding.Unit(ir.F32)
	}
	if m.count < fewElements && own > 2*once*m.scale {
		own = max(own, y.usualOf(v)*m.scale)
	}
	parts := y.parts
	if v.Kind == "" {
		parts *= rounding.Unit(t) / y.unit
	}
	return max(m.times()*own, m.least) + (y.sums+parts)*m.scale
}

// usualOf is the relative distance that is usual among results like v. The
// scalars of a step of training are functions of gradients.
func (y *yardstick) usualOf(v *binding.Named) float64 {
	if v.Literal.Type.Rank() > 0 {
		return y.usual[kindOf(v)]
	}
	if v.Kind != "metric" {
		return 0
	}
	for _, kind := range []string{"gradient", binding.StatePrefix + "m", binding.StatePrefix + "momentum", "param"} {
		if usual, ok := y.usual[kind]; ok {
			return usual
		}
	}
	return 0
}

// kindOf is the kind of results whose distances are comparable: opt.m of all
// parameters, say.
func kindOf(v *binding.Named) string {
	switch v.Kind {
	case "state":
		slot := strings.TrimPrefix(v.Name, binding.StatePrefix)
		slot, _, _ = strings.Cut(slot, ".")
		return binding.StatePrefix + slot
	case "":
		return "output " + v.Name
	}
	return v.Kind
}

// uncertain is how far updates may be from one another that divide a gradient
// by its own size, as those of Adam do. Where a gradient is no larger than its
// error, such an update has either sign, and elsewhere its error is that of the
// gradient. moment is the state that has the gradient's sign; rounding moves it
// by as much as own is away from want, over a row; largest is the largest
// update.
//
// The distance is a sum of squares, which may be larger than expected by
// several standard deviations: where few elements make it up, by much.
func (y *yardstick) uncertain(m *extent, moment, own *ir.Literal, largest float64) float64 {
	const deviations = 6
	row := 1
	for d := moment.Type.Rank() - 1; d >= 0 && row < fewElements; d-- {
		row *= moment.Type.Shape[d]
	}
	row = min(row, m.hi-m.lo)
	squares, variance := 0.0, 0.0
	for lo := m.lo; lo < m.hi; lo += row {
		hi := min(lo+row, m.hi)
		noise := timesMeasured / 2 * y.scale * norm(lo, hi, func(i int) float64 { return difference(own, moment, i) }) / math.Sqrt(float64(hi-lo))
		if noise == 0 {
			continue
		}
		for i := lo; i < hi; i++ {
			q := noise / math.Abs(binding.Number(moment, i))
			q = min(q*q, 2) // as often 0 as twice the update, if the sign is not known
			squares += q
			variance += 2 * q * q
		}
	}
	return largest * math.Sqrt(squares+deviations*math.Sqrt(variance))
}
