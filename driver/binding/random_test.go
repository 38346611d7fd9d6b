package binding

import (
	"math"
	"testing"

	"ppc/ir"
)

func TestMoments(t *testing.T) {
	const n = 100_000
	s := NewStream(1, "w")
	var mean, square, small, uniform float64
	for i := range n {
		x := s.Normal(i)
		mean += x / n
		square += x * x / n
		if math.Abs(x) < 1 {
			small += 1.0 / n
		}
		uniform += s.Uniform(i) / n
		if k := s.Below(i, 7); k < 0 || k > 6 {
			t.Fatalf("%d is not below 7", k)
		}
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"mean", mean, 0}, {"variance", square, 1}, {"within one", small, 0.6827}, {"uniform mean", uniform, 0.5}} {
		if math.Abs(c.got-c.want) > 0.01 {
			t.Errorf("%s is %g, want %g", c.name, c.got, c.want)
		}
	}
}

func TestStreamsDiffer(t *testing.T) {
	a, b, c := NewStream(0, "a"), NewStream(0, "b"), NewStream(1, "a")
	if a.Bits(0) == b.Bits(0) || a.Bits(0) == c.Bits(0) || a.Bits(0) == a.Bits(1) {
		t.Error("streams of other names, seeds or places coincide")
	}
	if a.Bits(1<<32) == a.Bits(0) {
		t.Error("the counter has 32 bits only")
	}
}

func TestInitialisers(t *testing.T) {
	typ := ir.Tensor(ir.F32, 4, 5)
	for _, c := range []struct {
		text string
		ok   func(x float64) bool
	}{
		{"ones", func(x float64) bool { return x == 1 }},
		{"zeros", func(x float64) bool { return x == 0 }},
		{"constant(0.5)", func(x float64) bool { return x == 0.5 }},
		{"normal(0.02)", func(x float64) bool { return x != 0 && math.Abs(x) < 0.2 }},
		{"uniform(-1, 2)", func(x float64) bool { return x > -1 && x < 2 }},
	} {
		l, err := Initial(typ, c.text, NewStream(0, "w"))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		for i := range typ.NumElements() {
			if x := l.Float(i); !c.ok(x) || x != ir.F32.Round(x) {
				t.Errorf("%s: element %d is %g", c.text, i, x)
			}
		}
	}
	for _, text := range []string{"normal", "normal()", "normal(x)", "ones(1)", "xavier(1)", "normal(1", ""} {
		if _, err := Initial(typ, text, NewStream(0, "w")); err == nil {
			t.Errorf("%q is taken for an initialiser", text)
		}
	}
}
