package lang

import (
	"fmt"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// schedule derives what the pipeline block does not give and checks that all fits:
// n layers, at the place at, of a batch of the given size whose rows have the
// sharding rows.
func (e *elab) schedule(at syntax.Span, n int, batch value.Axis, rows config.DimRule) (*config.Schedule, bool) {
	return e.scheduleOf(at, layerCount{n, 0, 1}, batch, rows)
}

// A layerCount is layers that a pipeline can hold: n, with so many others besides
// them, in groups of period that are applied as one.
type layerCount struct{ n, others, period int }

// scheduleOf is the schedule of groups of layers: what it counts is groups.
func (e *elab) scheduleOf(at syntax.Span, of layerCount, batch value.Axis, rows config.DimRule) (*config.Schedule, bool) {
	p := e.p
	if p.BadSetting {
		return nil, false // of which something is reported
	}
	s := &config.Schedule{Stages: p.MeshAxisSize("stage")}
	s.LayersPerStage, _ = p.Num("pipeline", "layers_per_stage")
	if p.Values["pipeline"]["layers_per_stage"] == nil {
		s.LayersPerStage = of.period
	}
	s.Delay, _ = p.Num("pipeline", "delay")
	if !e.layersFit(at, of, s) {
		return nil, false
	}
	s.LayersPerStage, s.Pipelined = s.LayersPerStage/of.period, s.Pipelined/of.period
	if p.Word("pipeline", "gather") == "per_repeat" && s.Repeats < 2 {
		e.fail(p.Place("gather", at), "gather = once", syntax.ErrWindow, s.Repeats)
		return nil, false
	}
	if s.Repeats == 1 && p.Boundary() == "repeat" && p.Word("pipeline", "checkpoint_place") == "inside" {
		e.fail(p.Place("checkpoint", at), "use checkpoint = iteration, or checkpoint_place = outside besides", syntax.ErrOneRepeat)
		return nil, false
	}
	return s, e.microbatchesFit(at, batch, rows, s)
}

// layersFit settles pipelined and repeats.
func (e *elab) layersFit(at syntax.Span, of layerCount, s *config.Schedule) bool {
	p, slot, n := e.p, s.Stages*s.LayersPerStage, of.n
	subset, given := p.Num("pipeline", "layers")
	s.Pipelined = n
	if given {
		if s.Pipelined = subset; subset > n {
			e.fail(p.Place("layers", at), fmt.Sprintf("at most layers = %d", n), syntax.ErrSubset, subset, ir.Counted(n, "layer"))
			return false
		}
	}
	repeats, given := p.Num("pipeline", "repeats")
	pad := p.Flag("pipeline", "pad_layers")
	if given {
		s.Repeats = repeats
		if total, text := config.Product(slot, repeats); total != s.Pipelined && !(pad && total > s.Pipelined && total-s.Pipelined < slot) {
			e.fail(p.Place("repeats", at), e.layersCure(s.Pipelined, of, slot, total), syntax.ErrLayers,
				layersDo(s.Pipelined), ir.Counted(s.Stages, "stage"), ir.Counted(repeats, "repeat"), ir.Counted(s.LayersPerStage, "layer"), text)
			return false
		}
		return true
	}
	if s.Repeats = s.Pipelined / slot; pad {
		s.Repeats = (s.Pipelined + slot - 1) / slot
	} else if s.Repeats*slot != s.Pipelined {
		where := at
		if subset > 0 {
			where = p.Place("layers", at)
		}
		e.fail(where, e.layersCure(s.Pipelined, of, slot, 0), syntax.ErrLayersLeft,
			layersDo(s.Pipelined), ir.Counted(s.Stages, "stage"), ir.Counted(s.LayersPerStage, "layer"), slot, s.Pipelined%slot)
		return false
	}
	return true
}

// layersDo is "1 layer does", "3 layers do".
func layersDo(n int) string {
	verb := " do"
	if n == 1 {
		verb = " does"
	}
	return ir.Counted(n, "layer") + verb
}

// layersCure says what would fit: other repeats, numbers of layers near by,
// leaving some outside of the pipeline. total is what the given repeats make,
// 0 where none are given.
func (e *elab) layersCure(pipelined int, of layerCount, slot, total int) string {
	repeats := func(layers int) string {
		if total == 0 {
			return ""
		}
		return fmt.Sprintf(" with repeats = %d", layers/slot)
	}
	var cures []string
	down, up := pipelined/slot*slot, (pipelined+slot-1)/slot*slot
	if down == pipelined {
		cures = append(cures, fmt.Sprintf("repeats = %d fits %s", pipelined/slot, ir.Counted(pipelined, "layer")))
		down = total
	} else {
		cures = append(cures, fmt.Sprintf("%s%s", config.Fits(ir.Counted(up, "layer"), up), repeats(up)))
	}
	if 0 < down && down < of.n {
		cures = append(cures, fmt.Sprintf("layers = %d%s leaves %d outside", down, repeats(down), of.n+of.others-down))
	}
	if !e.p.Flag("pipeline", "pad_layers") && (total == 0 || up == total) && up > pipelined {
		cures = append(cures, "pad_layers = true")
	}
	return strings.Join(cures, "; or ")
}

// microbatchesFit settles microbatches.
func (e *elab) microbatchesFit(at syntax.Span, batch value.Axis, rows config.DimRule, s *config.Schedule) bool {
	p := e.p
	m, given := p.Num("pipeline", "microbatches")
	if !given {
		m = s.Stages * s.Delay
	}
	s.Microbatches = m
	where := p.Place("microbatches", at)
	parts := e.devices(rows.Mesh)
	if batch.Size%m != 0 {
		e.fail(where, config.BatchCure(batch.Size, m, parts, s), syntax.ErrBatch, batch.Name, batch.Size, ir.Counted(m, "microbatch"))
		return false
	}
	b := batch.Size / m
	if b%parts != 0 {
		_, all := config.Product(m, parts)
		hint := fmt.Sprintf("%s = %s gives each of %s a row", batch.Name, all, ir.Counted(parts, "part"))
		if fit := config.Fitting(batch.Size, parts, s); fit != nil {
			hint = fmt.Sprintf("microbatches = %d fits; or %s", fit[len(fit)-1], hint)
		}
		e.fail(where, hint, syntax.ErrRows, ir.Counted(b, "row"), batch.Name, batch.Size, ir.Counted(m, "microbatch"), strings.Join(rows.Mesh, " x "), parts)
		return false
	}
	return true
}

func (e *elab) devices(mesh []string) int {
	n := 1
	for _, m := range mesh {
		n *= e.p.MeshAxisSize(m)
	}
	return n
}
