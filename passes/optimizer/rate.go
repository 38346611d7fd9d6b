package optimizer

import (
	"math"

	"ppc/ir"
	"ppc/passes/pass"
)

// A learningRate is one kind of schedule: what the learning rate is after a
// given number of steps.
type learningRate struct {
	kind  string // in the lr of pp.train
	check func(lr ir.Attrs) error
	build func(s *step, lr ir.Attrs) *ir.Value
}

var learningRates = []learningRate{
	{kind: "constant", check: anyRate, build: constantRate},
	{kind: "linear", check: checkRamp, build: linearRate},
	{kind: "cosine", check: checkRamp, build: cosineRate},
	{kind: "table", check: checkTable, build: tableRate},
}

func anyRate(ir.Attrs) error { return nil }

func constantRate(s *step, lr ir.Attrs) *ir.Value {
	return s.b.Splat(ir.Tensor(s.elem), lr.Float("value"))
}

func checkRamp(lr ir.Attrs) error {
	for _, name := range []string{"warmup", "decay"} {
		if n := lr.Int(name); n < 0 {
			return pass.Errorf(nil, "the learning rate has %s = %d steps: want at least 0", name, n)
		}
	}
	return nil
}

// linearRate rises from 0 to peak in warmup steps, then falls to end in decay
// steps and stays there. With no steps to fall in it stays at peak.
func linearRate(s *step, lr ir.Attrs) *ir.Value {
	return s.warmUp(lr, func(t *ir.Value) *ir.Value {
		return s.ramp(t, lr.Float("peak"), lr.Float("end"), lr.Int("decay"))
	})
}

// cosineRate rises like linearRate and falls along half a wave.
func cosineRate(s *step, lr ir.Attrs) *ir.Value {
	peak, end, decay := lr.Float("peak"), lr.Float("end"), lr.Int("decay")
	return s.warmUp(lr, func(t *ir.Value) *ir.Value {
		number := func(x float64) *ir.Value { return s.b.Splat(t.Type, x) }
		if decay == 0 || peak == 0 {
			return number(peak)
		}
		t = s.b.Binary(ir.Minimum, t, number(float64(decay)))
		wave := s.b.Unary(ir.Cosine, s.b.Div(s.b.Mul(number(math.Pi), t), number(float64(decay))))
		fall := s.b.Mul(number(0.5), s.b.Add(number(1), wave)) // from 1 to 0
		least := end / peak
		return s.b.Mul(number(peak), s.b.Add(s.b.Mul(number(1-least), fall), number(least)))
	})
}

// warmUp is the linear rise from 0 to peak, then after of the number of steps
// since.
func (s *step) warmUp(lr ir.Attrs, after func(t *ir.Value) *ir.Value) *ir.Value {
	t, warmup := s.b.Convert(s.count, s.elem), lr.Int("warmup")
	if warmup == 0 {
		return after(t)
	}
	n := s.b.Splat(t.Type, float64(warmup))
	return s.b.Select(s.b.Compare("LT", t, n), s.ramp(t, 0, lr.Float("peak"), warmup), after(s.b.Sub(t, n)))
}

// ramp goes in a straight line from one number to another in n steps of t.
func (s *step) ramp(t *ir.Value, from, to float64, n int) *ir.Value {
	number := func(x float64) *ir.Value { return s.b.Splat(t.Type, x) }
	if n == 0 || from == to {
		return number(from)
	}
	steps := number(float64(n))
	left := s.b.Sub(number(1), s.b.Div(s.b.Binary(ir.Minimum, t, steps), steps))
	return s.b.Add(s.b.Mul(number(from-to), left), number(to))
}

func checkTable(lr ir.Attrs) error {
	values, _ := lr.Get("values").(ir.Array)
	if len(values) == 0 {
		return pass.Errorf(nil, "the table of learning rates is empty: want one for each step, of which the last one stays")
	}
	for i, v := range values {
		if _, ok := v.(ir.Float); !ok {
			return pass.Errorf(nil, "learning rate %d of the table is %s, want a number", i, v)
		}
	}
	return nil
}

// tableRate is the entry of the step, or the last one past the end: a dynamic slice
// clamps its start.
func tableRate(s *step, lr ir.Attrs) *ir.Value {
	values := lr.Get("values").(ir.Array)
	rates := make([]float64, len(values))
	for i, v := range values {
		rates[i] = v.(ir.Float).Value
	}
	return s.b.Index(s.b.Const(ir.Floats64(ir.Tensor(s.elem, len(rates)), rates...)), 0, s.count)
}
