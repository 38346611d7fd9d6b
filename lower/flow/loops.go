package flow

import (
	"math"
	"regexp"
	"slices"
	"strconv"

	"ppc/ir"
)

// A Count is a number of executions; Unknown if the trip count of a loop around
// depends on data.
type Count int

// Unknown is the Count that cannot be read off the program.
const Unknown Count = -1

func (c Count) String() string {
	if c == Unknown {
		return "unknown"
	}
	return strconv.Itoa(int(c))
}

// Times is c for every one of d.
func (c Count) Times(d Count) Count {
	switch {
	case c == Unknown || d == Unknown:
		return Unknown
	case d != 0 && c > math.MaxInt/d:
		return math.MaxInt
	}
	return c * d
}

// Plus is c and d together.
func (c Count) Plus(d Count) Count {
	switch {
	case c == Unknown || d == Unknown:
		return Unknown
	case c > math.MaxInt-d:
		return math.MaxInt
	}
	return c + d
}

// Invariant reports whether every iteration returns carry i unchanged.
func Invariant(op *ir.Op, i int) bool {
	body := op.Regions[1]
	return body.Terminator().Operands[i] == body.Args[i]
}

// TripCount reads how often the body of a while runs: its condition compares a
// carry, which begins at a constant and to which every iteration adds a constant,
// with a constant. XLA's optimised modules have that in fusions, and state
// known_trip_count. Anything else is Unknown.
func TripCount(op *ir.Op) Count {
	if n := saidTripCount.FindStringSubmatch(op.Attrs.Str("hlo.backend_config")); n != nil {
		if trips, err := strconv.Atoi(n[1]); err == nil {
			return Count(trips)
		}
	}
	k, limit := CounterOf(op)
	if k < 0 {
		return Unknown
	}
	first, known := Constant(op.Operands[k], nil)
	step, steps := stepOf(op, k)
	if !known || !steps || step < 1 {
		return Unknown
	}
	if limit <= first {
		return 0
	}
	if limit-first < 0 { // the difference overflows
		return Unknown
	}
	return Count((limit-first-1)/step + 1)
}

// saidTripCount is the number of iterations in the configuration that XLA gives
// a loop.
var saidTripCount = regexp.MustCompile(`"known_trip_count":\{"n":"(\d+)"\}`)

// CounterOf is the carry that counts, and the number that it stays below; -1
// where there is none.
func CounterOf(op *ir.Op) (carry, limit int) {
	cond := op.Regions[0]
	test := cond.Terminator().Operands[0].Def
	if test == nil || test.Kind != ir.Compare {
		return -1, 0
	}
	x, y, direction := test.Operands[0], test.Operands[1], test.Word("comparison_direction")
	if slices.Contains([]string{"GT", "GE"}, direction) {
		x, y, direction = y, x, map[string]string{"GT": "LT", "GE": "LE"}[direction]
	}
	limit, known := Constant(y, op)
	if x.Block != cond || !known {
		return -1, 0
	}
	switch direction {
	case "LT":
		return x.Index, limit
	case "LE":
		if limit < math.MaxInt {
			return x.Index, limit + 1
		}
	}
	return -1, 0
}

// stepOf is what each iteration adds to carry k.
func stepOf(op *ir.Op, k int) (int, bool) {
	body := op.Regions[1]
	sum := body.Terminator().Operands[k].Def
	if sum == nil || sum.Kind != ir.Add {
		return 0, false
	}
	x, y := sum.Operands[0], sum.Operands[1]
	if x != body.Args[k] {
		x, y = y, x
	}
	if x != body.Args[k] {
		return 0, false
	}
	return Constant(y, op)
}

// Constant is the number that v is: a scalar constant, or a carry of loop that
// is one and stays it. loop may be nil.
func Constant(v *ir.Value, loop *ir.Op) (int, bool) {
	if loop != nil && v.Block != nil && (v.Block == loop.Regions[0] || v.Block == loop.Regions[1]) && Invariant(loop, v.Index) {
		return Constant(loop.Operands[v.Index], nil)
	}
	if v.Def == nil || v.Def.Kind != ir.Constant || !v.Type.IsTensor() || v.Type.NumElements() != 1 || !v.Type.Elem.IsInt() {
		return 0, false
	}
	return int(v.Def.Literal("value").Int(0)), true
}

// Follows reports whether v is computed from the counter of the loop and from
// no other of its carries.
func Follows(v, counter *ir.Value) bool {
	seen := map[*ir.Value]bool{v: true}
	work := []*ir.Value{v}
	found := false
	for len(work) > 0 {
		x := work[len(work)-1]
		work = work[:len(work)-1]
		switch {
		case x == counter:
			found = true
		case x.Block == counter.Block:
			return false
		case x.Def != nil:
			for _, y := range x.Def.Operands {
				if !seen[y] {
					seen[y] = true
					work = append(work, y)
				}
			}
		}
	}
	return found
}
