package examples_test

import (
	"strings"
	"testing"
	"time"

	"ppc/ir/lang"
	"ppc/lower/hlo"
	"ppc/lower/stats"
	"ppc/passes"
)

// A model of full size is lowered in a moment, whatever the policy, and no
// policy keeps more than it has to: neither the logits of all tokens nor the
// weights of all queries are there at once, nor are the weights of all repeats
// whole, unless that is what was asked for, and a loop over blocks keeps nothing.
func TestFullSize(t *testing.T) {
	const giga = 1e9
	rows := []struct {
		set  []string
		peak float64 // bytes of one device
	}{
		{nil, 39 * giga},
		{[]string{"pipeline.gather=once"}, 46 * giga},
		{[]string{"pipeline.gather=once", "pipeline.reduce_dtype=none"}, 52 * giga},
		{[]string{"pipeline.gather=per_repeat"}, 41.5 * giga},
		{[]string{"pipeline.gather=per_repeat", "pipeline.prefetch=ahead"}, 41.5 * giga},
		{[]string{"pipeline.layers_per_stage=4", "pipeline.repeats=4"}, 46 * giga},
		{[]string{"mesh.stage=8", "mesh.fsdp=16", "axes.batch=768", "pipeline.repeats=4", "pipeline.microbatches=8"}, 14 * giga},
	}
	for _, row := range rows {
		t.Run(strings.Join(row.set, ","), func(t *testing.T) {
			start := time.Now()
			p, err := lang.Load("llama2_7b.pp", lang.Options{Train: true, Set: row.set})
			if err != nil {
				t.Fatal(err)
			}
			if err := passes.Run(p.Module, passes.Config{}); err != nil {
				t.Fatal(err)
			}
			took := time.Since(start)
			s, err := stats.Of(p.Module)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("lowered in %v, %.2f GB at the peak", took, float64(s.Memory.Peak)/giga)
			if took > 10*time.Second { // a moment, on a machine that does other things too
				t.Errorf("lowering took %v", took)
			}
			if got := float64(s.Memory.Peak); got > row.peak {
				t.Errorf("%.2f GB at the peak, want at most %.2f", got/giga, row.peak/giga)
			}
			if row.set == nil {
				if _, err := hlo.Print(p.Module); err != nil {
					t.Error(err)
				}
			}
			for _, r := range s.Residuals {
				if strings.HasSuffix(r.Loop, "blocks") {
					t.Errorf("%s: %s is kept, a row of what is there", r.Loop, r.Name)
				}
			}
		})
	}
}
