package driver

import (
	"math"
	"testing"

	"ppc/ir"
)

// The vectors that the authors of threefry publish.
func TestThreefry(t *testing.T) {
	for _, c := range []struct{ k0, k1, x0, x1, want0, want1 uint32 }{
		{0, 0, 0, 0, 0x6b200159, 0x99ba4efe},
		{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x1cb996fc, 0xbb002be7},
		{0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3, 0xc4923a9c, 0x483df7a0},
	} {
		y0, y1 := threefry2x32(c.k0, c.k1, c.x0, c.x1)
		if y0 != c.want0 || y1 != c.want1 {
			t.Errorf("threefry(%x %x, %x %x) = %x %x, want %x %x", c.k0, c.k1, c.x0, c.x1, y0, y1, c.want0, c.want1)
		}
	}
}

func TestMoments(t *testing.T) {
	const n = 100_000
	s := newStream(1, "w")
	var mean, square, small, uniform float64
	for i := range n {
		x := s.normal(i)
		mean += x / n
		square += x * x / n
		if math.Abs(x) < 1 {
			small += 1.0 / n
		}
		uniform += s.uniform(i) / n
		if k := s.below(i, 7); k < 0 || k > 6 {
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
	a, b, c := newStream(0, "a"), newStream(0, "b"), newStream(1, "a")
	if a.bits(0) == b.bits(0) || a.bits(0) == c.bits(0) || a.bits(0) == a.bits(1) {
		t.Error("streams of other names, seeds or places coincide")
	}
	if a.bits(1<<32) == a.bits(0) {
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
		l, err := initial(typ, c.text, newStream(0, "w"))
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
		if _, err := initial(typ, text, newStream(0, "w")); err == nil {
			t.Errorf("%q is taken for an initialiser", text)
		}
	}
}
