package report

import (
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// A Schedule is what the stages of one pipeline do. The backward pass runs
// through the same iterations from the last to the first.
type Schedule struct {
	Layer          string `json:"layer"`
	Origin         string `json:"origin"`
	Layers         int    `json:"layers"` // in the pipeline
	Stages         int    `json:"stages"`
	Microbatches   int    `json:"microbatches"`
	Repeats        int    `json:"repeats"`
	LayersPerStage int    `json:"layers_per_stage"`
	Delay          int    `json:"delay"`
	Iterations     int    `json:"iterations"`
	Gather         string `json:"gather"`
	Prefetch       string `json:"prefetch"`
	Rotate         string `json:"rotate"`
	Remat          string `json:"remat"`
	Checkpoint     string `json:"checkpoint"`
	SkipBubbles    bool   `json:"skip_bubbles"`

	Work     int     `json:"work"`            // stages times iterations with a microbatch, counted
	Bubbles  int     `json:"bubbles"`         // those without one, counted
	Fraction float64 `json:"bubble_fraction"` // of the iterations of a stage, by the formula
	Formula  string  `json:"bubble_formula"`
	Grid     []Run   `json:"grid"`            // where a stage has work; all other iterations are bubbles
	Left     int     `json:"stages_left_out"` // of the grid: the middle of many stages
}

// A Run is iterations of a stage, From to Through, in which it works on one
// microbatch after the other in one repeat.
type Run struct {
	Stage   int `json:"stage"`
	From    int `json:"from"`
	Through int `json:"through"`
	Repeat  int `json:"repeat"`
	First   int `json:"first_microbatch"`
}

// mostStages is how many stages the grid has; of more, the first and the last.
const mostStages = 64

// Before is the schedules of m as it was read, before passes made loops of its
// pipelines; of a program that has been lowered that far, those of the loops.
func Before(m *ir.Module) []*Schedule {
	out := []*Schedule{}
	seen := make(map[ir.Pos]bool)
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		f.Body.Walk(func(op *ir.Op) {
			config, layers := configOf(op)
			s := config.Schedule
			if seen[op.Origin.Place()] || s.S < 1 || s.M < 1 || s.R < 1 || s.L < 1 || s.D < 1 {
				return
			}
			seen[op.Origin.Place()] = op.Kind != ir.PPPipeline
			out = append(out, scheduleOf(config, layers, op))
		})
	}
	return out
}

// configOf is the configuration of the pipeline that op is, or that it is a loop
// of, and the name of the layer; of another op it has no stages.
func configOf(op *ir.Op) (facts.Config, string) {
	switch {
	case op.Kind == ir.PPPipeline:
		return facts.ConfigOf(op), op.Sym("layer")
	case op.Kind == ir.PPScan && op.Attrs.Str(ir.KeyLoop) == ir.LoopIterations && !op.Attrs.Has(ir.KeyReverse):
		return facts.ConfigOf(op), ""
	}
	return facts.Config{}, ""
}

func scheduleOf(c facts.Config, layer string, op *ir.Op) *Schedule {
	s := c.Schedule
	out := &Schedule{Layer: clip(layer), Origin: place(op), Layers: s.S * s.R * s.L, Stages: s.S, Microbatches: s.M, Repeats: s.R, LayersPerStage: s.L, Delay: s.D,
		Iterations: s.Iterations(), Gather: clip(c.Gather), Rotate: clip(c.Rotate), Remat: clip(c.Remat),
		Checkpoint: clip(c.Checkpoint), SkipBubbles: c.SkipBubbles}
	if out.Gather == "per_repeat" {
		out.Prefetch = clip(c.Prefetch)
	}
	out.Fraction, out.Formula = fraction(s)
	out.Grid = []Run{}
	for stage := range s.S {
		runs := runsOf(s, stage)
		for _, r := range runs {
			out.Work += r.Through - r.From + 1
		}
		if s.S > mostStages && stage >= mostStages/2 && stage < s.S-mostStages/2 {
			out.Left++
			continue
		}
		out.Grid = append(out.Grid, runs...)
	}
	out.Bubbles = s.S*s.Iterations() - out.Work
	return out
}

// runsOf looks at every iteration of a stage.
func runsOf(s facts.Schedule, stage int) []Run {
	var runs []Run
	for t := range s.Iterations() {
		micro, repeat, work := s.At(stage, t)
		if !work {
			continue
		}
		if n := len(runs); n > 0 && runs[n-1].Repeat == repeat && runs[n-1].Through == t-1 && runs[n-1].First+t-runs[n-1].From == micro {
			runs[n-1].Through = t
			continue
		}
		runs = append(runs, Run{stage, t, t, repeat, micro})
	}
	return runs
}

// fraction is the part of its iterations in which a stage has no work: of T
// iterations, R*M have a microbatch.
func fraction(s facts.Schedule) (float64, string) {
	t, work := s.Iterations(), s.R*s.M
	if s.Round() == s.M {
		return float64(s.D*(s.S-1)) / float64(t), "D*(S-1) / (M*R + D*(S-1))"
	}
	return float64(t-work) / float64(t), "(T - M*R) / T with T = D*S*(R-1) + D*(S-1) + M"
}

// facts is the schedule as numbers.
func (s *Schedule) facts() facts.Schedule {
	return facts.Schedule{S: s.Stages, M: s.Microbatches, R: s.Repeats, L: s.LayersPerStage, D: s.Delay}
}

// shown are the stages in the grid.
func (s *Schedule) shown() []int {
	var stages []int
	for _, r := range s.Grid {
		if !slices.Contains(stages, r.Stage) {
			stages = append(stages, r.Stage)
		}
	}
	return stages
}
