package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ppc/ir"
	"ppc/ir/lang/syntax"
)

// A use is what settings act on: what the model has, gathered while it is built.
type use struct {
	Schedules []*Schedule // of the pipelines
	Stacks    []int       // layers of each stack, those after a pipeline among them
	elems     []ir.DType  // the element types of the weights of layers
	gathered  bool        // some weight of a layer is stored sharded and all-gathered
	named     []string    // checkpoint names of values in layers
}

// Seen notes the function of a layer, with weights of the given element types, in a
// pipeline or a stack.
func (u *use) Seen(fn *ir.Func, weights []ir.DType) {
	for _, v := range fn.Params() {
		if g, ok := v.Attrs.Get(ir.KeyGathered).(*ir.Sharding); ok && !g.SameLayout(v.Sharding) {
			u.gathered = true
		}
	}
	u.elems = append(u.elems, weights...)
	fn.Body.Walk(func(op *ir.Op) {
		if name := op.Str("name"); op.Kind == ir.PPName && name != "" {
			u.named = append(u.named, name)
		}
	})
}

// anyStage reports whether some pipeline has what holds asks for.
func (u *use) anyStage(holds func(*Schedule) bool) bool {
	return slices.ContainsFunc(u.Schedules, holds)
}

// loopOfLayers reports whether some layers can be a loop: those that a stage runs
// each time, or those of a stack.
func (u *use) loopOfLayers() bool {
	return u.anyStage(func(s *Schedule) bool { return s.LayersPerStage > 1 }) || slices.ContainsFunc(u.Stacks, func(n int) bool { return n > 1 })
}

// A condition is what must hold for a setting to act. Of a setting that acts on
// nothing it says why; refused says that no program means such a setting.
type condition struct {
	holds   func(p *Program, s *syntax.Setting) bool
	why     func(p *Program, s *syntax.Setting) string
	what    string // the setting does; "" is that it has no effect
	cure    string
	refused bool
}

func because(why string) func(*Program, *syntax.Setting) string {
	return func(*Program, *syntax.Setting) string { return why }
}

// Conditions are those of the settings, by the names that SettingTable has for
// them.
var Conditions = sync.OnceValue(func() map[string]*condition {
	return map[string]*condition{
		"pipeline": {
			holds:   func(p *Program, _ *syntax.Setting) bool { return len(p.Use.Schedules) > 0 },
			why:     because("the model has no pipeline()"),
			cure:    "leave it out, or apply the layers with pipeline(…)",
			refused: true,
		},
		"loop of a pipeline": {
			holds:   func(p *Program, _ *syntax.Setting) bool { return len(p.Use.Schedules) > 0 },
			why:     because("the model has no pipeline()"),
			cure:    "scan_layers = false is for stacks",
			refused: true,
		},
		"layers": {
			holds: func(p *Program, _ *syntax.Setting) bool { return len(p.Use.Schedules)+len(p.Use.Stacks) > 0 },
			why:   because("the model has neither pipeline() nor stack()"),
			cure:  "leave it out, or apply layers with pipeline(…) or stack(…)",
		},
		"window": {
			holds: func(p *Program, _ *syntax.Setting) bool { return p.Word("pipeline", "gather") == "per_repeat" },
			why: func(p *Program, _ *syntax.Setting) string {
				return "it goes with gather = per_repeat, and gather is " + p.Word("pipeline", "gather")
			},
			cure:    "leave it out",
			refused: true,
		},
		"gathered": {
			holds: func(p *Program, _ *syntax.Setting) bool { return p.Use.gathered },
			why:   because("no weight of a layer is sharded along " + alternatives(gatheredAxes)),
			cure:  "shard weights { … -> fsdp }, or leave it out",
		},
		"rounded and gathered": {
			holds: func(p *Program, _ *syntax.Setting) bool { return p.Use.gathered },
			what:  "rounds weights that are not gathered",
			why:   because("none of a layer is sharded along " + alternatives(gatheredAxes)),
			cure:  "shard weights { … -> fsdp }, or leave it out",
		},
		"several rows": {
			holds: func(p *Program, _ *syntax.Setting) bool {
				return p.Word("pipeline", "gather") != "per_repeat" || len(p.Use.Schedules) > 0 || slices.ContainsFunc(p.Use.Stacks, func(n int) bool { return n > 1 })
			},
			why:  because("the stack has 1 layer, and a window slides over 2 or more"),
			cure: "leave it out",
		},
		"wider": {
			holds: func(p *Program, s *syntax.Setting) bool {
				to := ir.DTypeByName(p.Word("pipeline", s.Key))
				return slices.ContainsFunc(p.Use.elems, func(t ir.DType) bool { return t.IsFloat() && t.Bits() > to.Bits() })
			},
			why: func(p *Program, s *syntax.Setting) string {
				return "no weight of a layer is wider than " + p.Word("pipeline", s.Key)
			},
			cure: "leave it out",
		},
		"uneven": {
			holds: func(p *Program, _ *syntax.Setting) bool { return p.Use.anyStage((*Schedule).Padded) },
			why:   because("the layers divide"),
			cure:  "leave it out",
		},
		"stages": {
			holds: func(p *Program, _ *syntax.Setting) bool {
				return p.Use.anyStage(func(s *Schedule) bool { return s.Stages > 1 })
			},
			why:  because("there is 1 stage"),
			cure: "mesh { stage = 2, … }, or leave it out",
		},
		"third stage": {
			holds: func(p *Program, _ *syntax.Setting) bool {
				return p.Use.anyStage(func(s *Schedule) bool { return s.Stages > 2 })
			},
			why:  because("the stages that it is about are those from the third on"),
			cure: "leave it out",
		},
		"loop of repeats": {
			holds: func(p *Program, _ *syntax.Setting) bool {
				return p.Word("pipeline", "gather") == "per_repeat" && p.Use.gathered || p.Boundary() == "repeat" && p.Use.anyStage(func(s *Schedule) bool { return s.Repeats > 1 })
			},
			why:  because("repeats are a loop of their own with gather = per_repeat or checkpoint = repeat"),
			cure: "leave it out",
		},
		"loop of layers": {
			holds: func(p *Program, _ *syntax.Setting) bool { return p.Use.loopOfLayers() },
			why:   because("a stage runs 1 layer each time, and no stack has more"),
			cure:  "leave it out",
		},
		"loop to unroll": {
			holds: func(p *Program, _ *syntax.Setting) bool {
				return p.Flag("pipeline", "scan_iterations") && len(p.Use.Schedules) > 0 || p.Flag("pipeline", "scan_layers") && len(p.Use.Stacks) > 0
			},
			why: func(p *Program, _ *syntax.Setting) string {
				if len(p.Use.Schedules) == 0 {
					return "scan_layers = false leaves no loop to unroll"
				}
				return "scan_iterations = false leaves no loop to unroll"
			},
			cure: "leave one of them out",
		},
		"boundary": {
			holds: func(p *Program, s *syntax.Setting) bool {
				return p.Boundary() != "none" || p.Word("pipeline", s.Key) == "none"
			},
			why: func(p *Program, s *syntax.Setting) string {
				if p.Word("pipeline", "remat") == "none" && s.Key != "remat" {
					return "with remat = none the backward pass recomputes nothing"
				}
				return "with checkpoint = none the backward pass recomputes nothing"
			},
			cure: "leave one of them out",
		},
		"repeats": {
			holds: func(p *Program, _ *syntax.Setting) bool {
				return p.Word("pipeline", "checkpoint") != "repeat" || len(p.Use.Schedules) > 0
			},
			why:  because("what a stack recomputes as one is a layer, or with checkpoint_place = outside the loop over them"),
			cure: "leave it out",
		},
		"loop to surround": {
			holds: func(p *Program, s *syntax.Setting) bool {
				return p.Word("pipeline", "checkpoint") != "layer" || p.Use.loopOfLayers()
			},
			why:  because("checkpoint = layer, and a stage runs 1 layer each time: there is no loop over layers to be around"),
			cure: "checkpoint = iteration, or leave it out",
		},
		"names": {
			holds: func(p *Program, s *syntax.Setting) bool {
				asked, missing := p.askedBy(s), p.notInLayers(s)
				return len(missing) == 0 || s.Key == "remat" && len(missing) < len(asked)
			},
			why: func(p *Program, s *syntax.Setting) string {
				return "no value of a layer has the checkpoint name " + alternatives(p.notInLayers(s))
			},
			cure: `checkpoint(x, "name") in the layer gives one`,
		},
		"devices": {
			holds: func(p *Program, _ *syntax.Setting) bool { return p.Mesh != nil && p.Mesh.Size() > 1 },
			why:   because("the program is for 1 device"),
			cure:  "leave it out",
		},

		"optimizer": {
			holds: func(p *Program, _ *syntax.Setting) bool { return p.Word("train", "optimizer") != "" },
			why:   because("there is no optimizer"),
			cure:  "optimizer = adamw(lr: 1e-3), or leave it out",
		},
		"data": {
			holds: func(p *Program, _ *syntax.Setting) bool { return p.MeshAxisSize("data") > 1 },
			why: func(p *Program, _ *syntax.Setting) string {
				if p.Mesh != nil && p.Mesh.AxisSize("data") == 1 && slices.ContainsFunc(p.Mesh.Axes, func(a ir.MeshAxis) bool { return a.Name == "data" }) {
					return "mesh axis data has 1 device"
				}
				return "the mesh has no axis data"
			},
			cure: "mesh { data = 2, … }, or leave it out",
		},
		"accumulation": {
			holds: func(p *Program, _ *syntax.Setting) bool {
				n, _ := p.Num("train", "gradient_accumulation")
				return n > 1
			},
			why:     because("it goes with gradient_accumulation above 1"),
			cure:    "leave it out",
			refused: true,
		},
		"sharded state": {
			holds:   func(p *Program, _ *syntax.Setting) bool { return p.Flag("train", "shard_optimizer_over_data") },
			why:     because("it goes with shard_optimizer_over_data = true"),
			cure:    "leave it out",
			refused: true,
		},
		"no memory": {
			holds: func(p *Program, _ *syntax.Setting) bool { return p.Values["hardware"]["memory"] == nil },
			why:   because("memory is given besides"),
			cure:  "leave one of them out",
		},
		"narrower sums": {
			holds: func(p *Program, _ *syntax.Setting) bool { return p.Word("train", "dtype") != "bf16" },
			why:   because("gradients accumulate in f32 at least"),
			cure:  "leave it out",
		},
	}
})

// askedBy are the checkpoint names that a setting speaks of: those that it lists,
// or those of the policy that it names.
func (p *Program) askedBy(s *syntax.Setting) []string {
	switch s.Key {
	case "save_decoder_layer_input":
		return []string{layerInput}
	case "save", "offload":
		return p.names("pipeline", s.Key)
	}
	word := p.Word("pipeline", "remat")
	if word == "custom" {
		var ns []string
		for _, e := range s.Body {
			ns = append(ns, e.Key)
		}
		return ns
	}
	return slices.Concat(Policies[word], Offloaded[word])
}

// notInLayers are the checkpoint names that a setting speaks of and that no value
// of a layer has.
func (p *Program) notInLayers(s *syntax.Setting) []string {
	return slices.DeleteFunc(slices.Clone(p.askedBy(s)), func(name string) bool { return name == iterationInput || slices.Contains(p.Use.named, name) })
}

// CheckEffects refuses settings that act on nothing and that no program means,
// and warns of others that act on nothing. What holds by default is not looked at,
// nor what goes with a setting that was reported.
func (p *Program) CheckEffects() {
	if p.Opts.Sequential {
		return // another program: the reference
	}
	if s := p.Values["train"]["optimizer"]; s != nil {
		p.checkArguments(CallOf(s.Value))
	}
	for _, b := range []string{"pipeline", "train", "hardware"} {
		for _, s := range p.ordered(b) {
			row := SettingRowOf(b, s.Key)
			if p.isDefault(row) {
				continue
			}
			for _, name := range row.Acts {
				c := Conditions()[name]
				if c.holds(p, s) {
					continue
				}
				what := cmp.Or(c.what, "has no effect")
				if c.refused {
					p.Report(s.Span, c.cure, syntax.ErrNoEffect, b, p.settingText(row), what, c.why(p, s))
				} else {
					p.Warn(s.Span, UnusedSetting, c.cure, syntax.WarnNoEffect, b, p.settingText(row), what, c.why(p, s))
				}
				break
			}
		}
	}
}

// checkArguments warns of arguments of the optimizer and of the learning rate's
// schedule that act on nothing: the one that they go with is 0.
func (p *Program) checkArguments(name string, args map[string]syntax.Expr) {
	rows := TrainArgsOf(name)
	number := func(key string) float64 {
		for _, r := range rows {
			if r.Name == key && args[key] == nil {
				return toFloat(p.derived(&r, args))
			}
		}
		v, _ := NumberOf(args[key])
		return v
	}
	for _, r := range rows {
		x := args[r.Name]
		if x == nil {
			continue
		}
		if v, isNumber := NumberOf(x); r.with != "" && number(r.with) == 0 && !(isNumber && v == toFloat(r.Def)) && !isName(x, "false") {
			p.Warn(x.At(), UnusedSetting, "leave it out, or let "+r.with+" be above 0", syntax.WarnNoEffect, name, r.Name, "has no effect", r.with+" is 0")
		}
		if c, ok := x.(*syntax.CallExpr); ok {
			p.checkArguments(CallOf(c))
		}
	}
}

// derived is what holds for an argument that is not given.
func (p *Program) derived(row *trainArg, args map[string]syntax.Expr) any {
	if row.Name != "decay" {
		return row.Def
	}
	warmup, _ := NumberOf(args["warmup"])
	return float64(max(p.trainSteps()-int(warmup), 0))
}

func toFloat(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case int:
		return float64(v)
	}
	return 0
}

func isName(x syntax.Expr, name string) bool {
	n, ok := x.(*syntax.NameRef)
	return ok && n.Name == name
}

// isDefault reports whether a setting is what it is without being given.
func (p *Program) isDefault(row *SettingRow) bool {
	switch row.Kind {
	case Count:
		v, _ := p.Num(row.Block, row.Key)
		return row.Def != nil && v == row.Def
	case Flag:
		return p.Flag(row.Block, row.Key) == row.Def
	case Word, call:
		return p.Word(row.Block, row.Key) == row.Def
	case Names:
		return len(p.names(row.Block, row.Key)) == 0
	}
	return false
}

// settingText is a setting as it was given, on one line.
func (p *Program) settingText(row *SettingRow) string {
	s := p.Values[row.Block][row.Key]
	switch v := s.Value.(type) {
	case *syntax.NameRef:
		return s.Key + " = " + v.Name
	case *syntax.TextLit:
		return s.Key + " = " + strconv.Quote(v.Text)
	case *syntax.ListLit:
		return s.Key + " = [" + strings.Join(p.names(row.Block, row.Key), ", ") + "]"
	}
	if v, ok := NumberOf(s.Value); ok {
		return s.Key + " = " + strconv.FormatFloat(v, 'f', -1, 64)
	}
	return s.Key + " = " + p.Word(row.Block, row.Key)
}
