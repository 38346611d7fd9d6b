package lang

import (
	"fmt"
	"testing"

	"ppc/ir"
)

// What the pipeline block leaves out is derived as MaxText does: repeats from
// the layers, as many microbatches as stages, twice as many with delay.
func TestSchedule(t *testing.T) {
	for _, tt := range []struct {
		name          string
		layers, batch int
		mesh, block   string
		want          schedule // stages, microbatches, repeats, layersPerStage, delay, pipelined
	}{
		{"all derived", 8, 8, "stage = 4", "", schedule{4, 4, 2, 1, 1, 8}},
		{"no stages", 3, 8, "data = 2", "", schedule{1, 1, 3, 1, 1, 3}},
		{"two layers per stage", 16, 8, "stage = 4", "layers_per_stage = 2", schedule{4, 4, 2, 2, 1, 16}},
		{"delay", 8, 8, "stage = 4", "delay = 2", schedule{4, 8, 2, 1, 2, 8}},
		{"repeats on two stages", 8, 8, "stage = 2", "microbatches = 8, repeats = 4", schedule{2, 8, 4, 1, 1, 8}},
		{"56 of 61 layers on 8 stages", 61, 16, "stage = 8", "layers = 56", schedule{8, 8, 7, 1, 1, 56}},
		{"a third more microbatches", 6, 12, "stage = 2, fsdp = 2", "microbatches = 6, layers_per_stage = 3", schedule{2, 6, 1, 3, 1, 6}},
		{"32 layers on 4 stages without repeats", 32, 16, "stage = 4", "layers_per_stage = 8, microbatches = 8", schedule{4, 8, 1, 8, 1, 32}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := loadArgs(fmt.Sprintf(`axes { batch = %d, embed = 4 }
mesh { %s }
shard activations { batch -> data, fsdp }
layer l(x: f32[batch, embed]) { return -x }
model m(x: f32[batch, embed]) { return out: pipeline(l, layers: %d)(x) }
pipeline { %s }
`, tt.batch, tt.mesh, tt.layers, tt.block), nil)
			if err != nil {
				t.Fatalf("\n%s", err)
			}
			for _, op := range p.Module.Main().Body.Ops {
				if op.Kind != ir.PPPipeline {
					continue
				}
				c := ir.Attrs(op.Attrs.Get("config").(ir.Dict))
				got := schedule{c.Int("stages"), c.Int("microbatches"), c.Int("repeats"), c.Int("layers_per_stage"), c.Int("delay"), c.Int("pipelined")}
				if got != tt.want {
					t.Errorf("%+v, want %+v", got, tt.want)
				}
				if b := p.Module.Func(op.Sym("layer")).Params()[0].Type.Shape[0]; b != tt.batch/tt.want.microbatches {
					t.Errorf("a microbatch of %d", b)
				}
			}
		})
	}
}
