package examples_test

import (
	"path/filepath"
	"testing"

	"ppc/ir"
	"ppc/ir/lang"
	"ppc/passes"
)

// Of every value of an example that a rule of the program shards, messages can
// name the rule: it reaches all that is not computed from constants alone.
func TestRulesReach(t *testing.T) {
	for _, file := range files(t) {
		for _, mode := range []string{"auto", "explicit"} {
			t.Run(filepath.ToSlash(file)+"/"+mode, func(t *testing.T) {
				p, err := lang.Load(file, lang.Options{Library: true, Train: true, Set: []string{"pipeline.mode=" + mode}})
				if err != nil {
					t.Fatal(err)
				}
				if p.Module == nil {
					return // a library
				}
				if err := passes.Run(p.Module, passes.Config{After: "propagate"}); err != nil {
					t.Fatal(err)
				}
				missing := 0
				p.Module.Main().Body.Walk(func(op *ir.Op) {
					for _, v := range op.Results {
						if lacksRule(v) && missing < 5 {
							missing++
							t.Errorf("%s: %s: no rule is known by which it is sharded as %s", op.Origin.Place(), op.Name(), v.Sharding)
						}
					}
				})
			})
		}
	}
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
