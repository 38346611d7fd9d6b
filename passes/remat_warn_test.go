package passes

import (
	"slices"
	"testing"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
)

// What is asked for without effect is a warning that says why; without a
// gradient there is none.
func TestRematWarnings(t *testing.T) {
	words := func(key, value string) ir.NamedAttr { return facts.Named(key, ir.Str(value)) }
	for _, c := range []struct {
		remat []ir.NamedAttr
		want  []string
	}{
		{nil, nil},
		{[]ir.NamedAttr{words("remat", "minimal"), facts.Named("save", strs("mlpwi", "mlpwo", "query_proj"))}, nil},
		{[]ir.NamedAttr{words("remat", "save_out_proj"), facts.Named("save", strs("out_proj"))}, []string{"pipeline: remat = save_out_proj has no effect: no value has one of the names out_proj"}},
		{[]ir.NamedAttr{words("remat", "custom"), facts.Named("save", strs("query_proj")), facts.Named("asked", strs("query_proj"))}, []string{"pipeline: to save query_proj has no effect: no rematerialised value has the name query_proj"}},
		{[]ir.NamedAttr{words("remat", "full"), facts.Named("save", strs("mlpwi")), facts.Named("asked", strs("mlpwi", "decoder_layer_input"))}, nil},
		{[]ir.NamedAttr{words("remat", "full"), facts.Named("offload", strs("out_proj")), facts.Named("asked", strs("out_proj"))}, []string{"pipeline: to offload out_proj has no effect: no rematerialised value has the name out_proj"}},
	} {
		for _, trains := range []bool{true, false} {
			g := model{S: 2, M: 2, R: 1, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 1, tensor: 1, gather: "per_iteration", rotate: "ppermute", remat: c.remat}
			m := withLoss(g.module())
			want := c.want
			if !trains {
				m, want = g.module(), nil
			}
			var got []string
			warn := func(w *pass.Error) { got = append(got, w.Msg) }
			if err := Run(m, Config{After: "differentiate", Warn: warn}); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v (trains %v):\n got %q\nwant %q", c.remat, trains, got, want)
			}
		}
	}
}
