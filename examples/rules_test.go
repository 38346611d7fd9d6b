package examples_test

import (
	"path/filepath"
	"testing"

	"ppc/ir"
)

// rulesReach demands that of every value of a program that one of its rules shards,
// messages can name the rule: it reaches all that is not computed from constants alone.
// Whatever asks an example for its bytes demands it, forward, of steps of training and of
// gradients, and in explicit mode.
func rulesReach(t *testing.T, m *ir.Module) {
	t.Helper()
	missing := 0
	m.Main().Body.Walk(func(op *ir.Op) {
		for _, v := range op.Results {
			if lacksRule(v) && missing < 5 {
				missing++
				t.Errorf("%s: %s: no rule is known by which it is sharded as %s", op.Origin.Place(), op.Name(), v.Sharding)
			}
		}
	})
}

// lacksRule reports whether v is sharded along axes of the rules by none of them:
// passes shard along stage.
func lacksRule(v *ir.Value) bool {
	if v.Sharding == nil || constant(v) {
		return false
	}
	for _, d := range v.Sharding.Dims {
		for _, r := range d.Axes {
			if r.Name != "stage" && (d.Rule == nil || d.Rule.Name() == "" || filepath.Ext(d.Rule.Pos.File) != ".pp") {
				return true
			}
		}
	}
	return false
}

func constant(v *ir.Value) bool {
	if v.Def == nil {
		return false
	}
	for _, x := range v.Def.Operands {
		if x.Type.Rank() > 0 && !constant(x) {
			return false
		}
	}
	return v.Def.Kind.Has(ir.Pure)
}
