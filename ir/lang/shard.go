package lang

import (
	"ppc/ir"
	"ppc/ir/lang/config"
	"ppc/ir/lang/value"
)

// gathered is t, a weight of the model itself, in the sharding of its use:
// replicated along stage, which shards the batch; and in explicit mode, where
// nothing is left to propagation, replicated also along the axes that weights of
// layers are gathered along.
func (e *elab) gathered(t *value.Tensor) *value.Tensor {
	g := t.V.Sharding
	if e.p.Explicit() {
		g = e.p.Gathered(g, t.Axes)
	}
	if g = g.Without("stage"); g.Equal(t.V.Sharding) {
		return t
	}
	return t.With(e.b.Constrain(t.V, g))
}

// gatheredOnce is t, which every iteration of a loop reads, resharded before the
// loop: what follows from the model's own weights alone is replicated along the
// axes that weights are gathered along, anything else sharded as the activation
// rules say of its axes. Keys and values, say, whose sequence no rule shards, are
// gathered once. Their cotangents are summed over the iterations, unreduced, and
// reduce-scattered after the loop. Left to who uses it, all that would be done in
// every iteration, at the same peak of memory.
func (e *elab) gatheredOnce(t *value.Tensor) *value.Tensor {
	if e.p.Mesh == nil || e.p.Explicit() {
		return t
	}
	var s *ir.Sharding
	switch {
	case !config.OfWeights(t.V):
		s = e.act.Sharding(t.Axes, nil)
	case e.model == nil: // who calls a layer has gathered its weights
		return t
	default:
		stored := e.p.WeightLayout().Sharding(t.Axes, nil).Without("stage")
		if s = e.p.Gathered(stored, t.Axes); s.SameLayout(stored) {
			return t
		}
	}
	if s.Equal(t.V.Stated()) {
		return t
	}
	return t.With(e.b.Constrain(t.V, s))
}
