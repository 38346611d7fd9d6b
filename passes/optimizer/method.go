package optimizer

import (
	"ppc/ir"
)

// A method is one kind of optimizer.
type method struct {
	name   string // in pp.train
	decays bool   // has weight decay
	// slots names the state that is kept per parameter: opt.SLOT.PATH.
	slots func(config ir.Attrs) []string
	// update returns what the learning rate multiplies and the parameter loses,
	// and the new state, one for each slot.
	update func(s *step, l *leaf) (by *ir.Value, next []*ir.Value)
}

var methods = []method{
	{
		name: "sgd",
		slots: func(config ir.Attrs) []string {
			if config.Float("momentum") == 0 {
				return nil
			}
			return []string{"momentum"}
		},
		update: sgd,
	},
	{
		name:   "adam",
		slots:  func(ir.Attrs) []string { return []string{"m", "v"} },
		update: adam,
	},
	{
		name: "adamw", decays: true,
		slots:  func(ir.Attrs) []string { return []string{"m", "v"} },
		update: adamw,
	},
}

// sgd: without momentum the gradient g; with it, trace ← g + momentum·trace,
// and the trace, or, after Nesterov, g + momentum·trace once more.
func sgd(s *step, l *leaf) (*ir.Value, []*ir.Value) {
	if len(l.state) == 0 {
		return l.grad, nil
	}
	momentum := s.config.Float("momentum")
	trace := s.b.Add(l.grad, s.times(momentum, l.state[0]))
	if s.config.Bool("nesterov") {
		return s.b.Add(l.grad, s.times(momentum, trace)), []*ir.Value{trace}
	}
	return trace, []*ir.Value{trace}
}

// adam: m ← (1-b1)·g + b1·m, v ← (1-b2)·g² + b2·v, and in step t, from 1,
//
//	m/(1-b1^t) / (sqrt(v/(1-b2^t) + eps_root) + eps)
//
// With Nesterov's momentum the numerator looks one step ahead:
// b1·m/(1-b1^(t+1)) + (1-b1)·g/(1-b1^t).
func adam(s *step, l *leaf) (*ir.Value, []*ir.Value) {
	b1, b2 := s.config.Float("b1"), s.config.Float("b2")
	m := s.b.Add(s.times(1-b1, l.grad), s.times(b1, l.state[0]))
	v := s.b.Add(s.times(1-b2, s.b.Mul(l.grad, l.grad)), s.times(b2, l.state[1]))
	up := s.unbiased(m, b1, s.number)
	if s.config.Bool("nesterov") {
		ahead := s.b.Add(s.number, s.b.Splat(s.number.Type, 1))
		up = s.b.Add(s.times(b1, s.unbiased(m, b1, ahead)), s.times(1-b1, s.unbiased(l.grad, b1, s.number)))
	}
	down := s.unbiased(v, b2, s.number)
	if root := s.config.Float("eps_root"); root != 0 {
		down = s.b.Add(down, s.b.Splat(down.Type, root))
	}
	down = s.b.Add(s.b.Unary(ir.Sqrt, down), s.b.Splat(down.Type, s.config.Float("eps")))
	return s.b.Div(up, down), []*ir.Value{m, v}
}

// adamw is adam plus the weight decay times the parameter.
func adamw(s *step, l *leaf) (*ir.Value, []*ir.Value) {
	by, next := adam(s, l)
	if l.decay != 0 {
		by = s.b.Add(by, s.times(l.decay, l.weight))
	}
	return by, next
}

// times is x times a constant.
func (s *step) times(c float64, x *ir.Value) *ir.Value { return s.b.Mul(s.b.Splat(x.Type, c), x) }

// unbiased is a moving average that began at zero, without that: over 1 - b^t.
func (s *step) unbiased(x *ir.Value, b float64, t *ir.Value) *ir.Value {
	one := s.b.Splat(t.Type, 1)
	rest := s.b.Sub(one, s.b.Binary(ir.Power, s.b.Splat(t.Type, b), t))
	return s.b.Div(x, s.broadcast(rest, x.Type))
}
