package lang

import (
	"fmt"
	"testing"

	"ppc/ir"
	"ppc/ir/lang/config"
)

// What the pipeline block leaves out is derived as MaxText does: repeats from
// the layers, as many microbatches as stages, twice as many with delay.
func TestSchedule(t *testing.T) {
	for _, tt := range []struct {
		name          string
		layers, batch int
		mesh, block   string
		want          config.Schedule // stages, microbatches, repeats, layersPerStage, delay, pipelined
	}{
		{"all derived", 8, 8, "stage = 4", "", config.Schedule{Stages: 4, Microbatches: 4, Repeats: 2, LayersPerStage: 1, Delay: 1, Pipelined: 8}},
		{"no stages", 3, 8, "data = 2", "", config.Schedule{Stages: 1, Microbatches: 1, Repeats: 3, LayersPerStage: 1, Delay: 1, Pipelined: 3}},
		{"two layers per stage", 16, 8, "stage = 4", "layers_per_stage = 2", config.Schedule{Stages: 4, Microbatches: 4, Repeats: 2, LayersPerStage: 2, Delay: 1, Pipelined: 16}},
		{"delay", 8, 8, "stage = 4", "delay = 2", config.Schedule{Stages: 4, Microbatches: 8, Repeats: 2, LayersPerStage: 1, Delay: 2, Pipelined: 8}},
		{"repeats on two stages", 8, 8, "stage = 2", "microbatches = 8, repeats = 4", config.Schedule{Stages: 2, Microbatches: 8, Repeats: 4, LayersPerStage: 1, Delay: 1, Pipelined: 8}},
		{"56 of 61 layers on 8 stages", 61, 16, "stage = 8", "layers = 56", config.Schedule{Stages: 8, Microbatches: 8, Repeats: 7, LayersPerStage: 1, Delay: 1, Pipelined: 56}},
		{"a third more microbatches", 6, 12, "stage = 2, fsdp = 2", "microbatches = 6, layers_per_stage = 3", config.Schedule{Stages: 2, Microbatches: 6, Repeats: 1, LayersPerStage: 3, Delay: 1, Pipelined: 6}},
		{"32 layers on 4 stages without repeats", 32, 16, "stage = 4", "layers_per_stage = 8, microbatches = 8", config.Schedule{Stages: 4, Microbatches: 8, Repeats: 1, LayersPerStage: 8, Delay: 1, Pipelined: 32}},
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
				got := config.Schedule{Stages: c.Int("stages"), Microbatches: c.Int("microbatches"), Repeats: c.Int("repeats"), LayersPerStage: c.Int("layers_per_stage"), Delay: c.Int("delay"), Pipelined: c.Int("pipelined")}
				if got != tt.want {
					t.Errorf("%+v, want %+v", got, tt.want)
				}
				if b := p.Module.Func(op.Sym("layer")).Params()[0].Type.Shape[0]; b != tt.batch/tt.want.Microbatches {
					t.Errorf("a microbatch of %d", b)
				}
			}
		})
	}
}
