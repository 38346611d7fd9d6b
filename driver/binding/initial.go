package binding

import (
	"fmt"
	"strconv"
	"strings"

	"ppc/ir"
)

// An initialiser fills a tensor with the numbers that its row says.
type initialiser struct {
	name  string
	args  int
	fill  func(args []float64, s Stream, i int) float64
	splat bool // every element is the same
}

var initialisers = [...]initialiser{
	{"zeros", 0, func([]float64, Stream, int) float64 { return 0 }, true},
	{"ones", 0, func([]float64, Stream, int) float64 { return 1 }, true},
	{"constant", 1, func(a []float64, _ Stream, _ int) float64 { return a[0] }, true},
	{"normal", 1, func(a []float64, s Stream, i int) float64 { return a[0] * s.Normal(i) }, false},
	{"uniform", 2, func(a []float64, s Stream, i int) float64 { return a[0] + (a[1]-a[0])*s.Uniform(i) }, false},
}

// Initial returns a tensor of type t filled as text says: ones, normal(0.02).
// Numbers are made in float64 and rounded once, so the same tensor of another
// element type has the same numbers but for that rounding.
func Initial(t *ir.Type, text string, s Stream) (*ir.Literal, error) {
	init, args, err := parseInitialiser(text)
	if err != nil {
		return nil, err
	}
	if init.splat {
		return ir.SplatOf(t, init.fill(args, s, 0)), nil
	}
	return Fill(t, func(b []byte, i int) { t.Elem.PutFloat(b, init.fill(args, s, i)) }), nil
}

func parseInitialiser(text string) (*initialiser, []float64, error) {
	name, list, hasArgs := strings.Cut(text, "(")
	var args []float64
	if hasArgs {
		list, ok := strings.CutSuffix(list, ")")
		if !ok {
			return nil, nil, fmt.Errorf("initialiser %q does not end with a parenthesis", text)
		}
		for field := range strings.SplitSeq(list, ",") {
			v, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
			if err != nil {
				return nil, nil, fmt.Errorf("initialiser %q: %q is no number", text, strings.TrimSpace(field))
			}
			args = append(args, v)
		}
	}
	var known []string
	for i := range initialisers {
		row := &initialisers[i]
		if row.name != name {
			known = append(known, row.name)
			continue
		}
		if len(args) != row.args {
			return nil, nil, fmt.Errorf("initialiser %q has %d numbers, %s takes %d", text, len(args), name, row.args)
		}
		return row, args, nil
	}
	return nil, nil, fmt.Errorf("there is no initialiser %q; have %s", text, strings.Join(known, ", "))
}

// Sample returns an input that nobody gave: integers are uniform below limit,
// or 0 and 1 where there is no limit, and so are booleans; floating-point
// numbers are standard normal.
func Sample(t *ir.Type, limit int, s Stream) *ir.Literal {
	switch t.Elem.Class() {
	case ir.Floating:
		return Fill(t, func(b []byte, i int) { t.Elem.PutFloat(b, s.Normal(i)) })
	case ir.Complex:
		part := t.Elem.Part()
		return Fill(t, func(b []byte, i int) {
			part.PutFloat(b, s.Normal(2*i))
			part.PutFloat(b[part.Size():], s.Normal(2*i+1))
		})
	}
	if limit <= 0 || t.Elem == ir.I1 {
		limit = 2
	}
	return Fill(t, func(b []byte, i int) { t.Elem.PutInt(b, int64(s.Below(i, limit))) })
}

// Fill returns a tensor of type t whose element i is what put writes.
func Fill(t *ir.Type, put func(b []byte, i int)) *ir.Literal {
	size := t.Elem.Size()
	data := make([]byte, t.Bytes())
	for i := range t.NumElements() {
		put(data[i*size:], i)
	}
	return &ir.Literal{Type: t, Data: data}
}
