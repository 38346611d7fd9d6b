package config

import (
	"slices"
	"strings"

	"ppc/internal/spell"
	"ppc/ir"
	"ppc/ir/lang/syntax"
)

// projections are the names of the products that make queries, keys and values.
var projections = []string{"query_proj", "key_proj", "value_proj", "kv_proj", "qkv_proj"}

// Policies are the checkpoint names that each named policy keeps.
var Policies = map[string][]string{
	"minimal":                          append(slices.Clone(projections), "out_proj", "mlpwi", "mlpwi_0", "mlpwi_1", "mlpwo"),
	"minimal_with_context":             append(slices.Clone(projections), "out_proj", "mlpwi", "mlpwi_0", "mlpwi_1", "mlpwo", "context"),
	"save_dot_with_context_except_mlp": append(slices.Clone(projections), "context", "out_proj"),
	"save_dot_except_mlpwi":            append(slices.Clone(projections), "out_proj", "mlpwo"),
	"save_dot_except_mlp":              append(slices.Clone(projections), "out_proj"),
	"save_qkv_proj":                    projections,
	"save_out_proj":                    {"out_proj"},
}

// Offloaded are the checkpoint names that each policy keeps in host memory.
var Offloaded = map[string][]string{
	"qkv_proj_offloaded": {"query_proj", "key_proj", "value_proj", "kv_proj"},
	"minimal_offloaded":  Policies["minimal"],
}

// saved are the checkpoint names that are kept: those of the policy, those of
// save, and those that custom gives to device.
func (p *Program) saved() []string { return p.kept(Policies, "save", "device") }

// hosted are the names that are kept in host memory, likewise, but for those of a policy
// that save keeps on the device.
func (p *Program) hosted() []string {
	saved := p.names("pipeline", "save")
	return slices.DeleteFunc(p.kept(Offloaded, "offload", "offload"), func(name string) bool { return slices.Contains(saved, name) })
}

func (p *Program) kept(policies map[string][]string, key, word string) []string {
	ns := slices.Concat(policies[p.Word("pipeline", "remat")], p.names("pipeline", key))
	for _, e := range p.custom() {
		if how, ok := e.Value.(*syntax.NameRef); ok && how.Name == word {
			ns = append(ns, e.Key)
		}
	}
	slices.Sort(ns)
	return slices.Compact(ns)
}

// A told is what one setting says of a checkpoint name: that it is kept on the device, offloaded,
// or remat.
type told struct {
	at            syntax.Span
	name, by, how string
}

// eachTold is what settings say of single names.
func (p *Program) eachTold() []told {
	var out []told
	for _, s := range []struct{ key, how string }{{"save", "device"}, {"offload", "offload"}} {
		for _, name := range p.names("pipeline", s.key) {
			out = append(out, told{p.Values["pipeline"][s.key].Span, name, s.key, s.how})
		}
	}
	for _, e := range p.custom() {
		if how, ok := e.Value.(*syntax.NameRef); ok {
			out = append(out, told{e.Span, e.Key, "remat = custom { " + e.Key + " = " + how.Name + " }", how.Name})
		}
	}
	if s := p.Values["pipeline"]["save_decoder_layer_input"]; s != nil && !p.Flag("pipeline", s.Key) {
		out = append(out, told{s.Span, layerInput, s.Key + " = false", "remat"})
	}
	return out
}

// checkTold refuses settings that say of one name different things. To offload the input of a
// layer and not to keep it on the device is one.
func (p *Program) checkTold() {
	all := p.eachTold()
	for i, t := range all {
		j := slices.IndexFunc(all[:i], func(o told) bool { return o.name == t.name && o.how != t.how })
		if j >= 0 && !(t.by == "save_decoder_layer_input = false" && all[j].how == "offload") {
			p.Report(t.at, "leave one of them out", syntax.ErrToldTwice, t.name, all[j].by, t.by)
		}
	}
}

// asked are the names that are given one by one: by save, offload and custom.
func (p *Program) asked() []string {
	ns := slices.Concat(p.names("pipeline", "save"), p.names("pipeline", "offload"))
	for _, e := range p.custom() {
		if how, ok := e.Value.(*syntax.NameRef); ok && how.Name != "remat" {
			ns = append(ns, e.Key)
		}
	}
	return ns
}

// custom is what remat = custom { … } says of each name.
func (p *Program) custom() []syntax.Setting {
	if s := p.Values["pipeline"]["remat"]; s != nil {
		return s.Body
	}
	return nil
}

// Boundary is what is recomputed as one: nothing where nothing is recomputed.
func (p *Program) Boundary() string {
	if p.Word("pipeline", "remat") == "none" {
		return "none"
	}
	return p.Word("pipeline", "checkpoint")
}

// keeps reports whether the pipeline's own name, or that of a layer's input, is
// kept on the device: both are, unless something says otherwise.
func (p *Program) keeps(name string) bool {
	recomputed := slices.ContainsFunc(p.custom(), func(e syntax.Setting) bool {
		how, ok := e.Value.(*syntax.NameRef)
		return ok && e.Key == name && how.Name == "remat"
	})
	return !recomputed && (name != layerInput || p.Flag("pipeline", "save_decoder_layer_input"))
}

// The checkpoint names that a region is rematerialised from.
const (
	iterationInput = "iteration_input"
	layerInput     = "decoder_layer_input"
)

// CheckNames refuses names in save and custom that no value of m carries, and those of
// which two settings say different things.
func (p *Program) CheckNames(m *ir.Module) {
	p.checkTold()
	carried := []string{iterationInput} // the pipeline's own
	for _, f := range m.Funcs {
		f.Body.Walk(func(op *ir.Op) {
			if name := op.Str("name"); op.Kind == ir.PPName && name != "" {
				carried = append(carried, name)
			}
		})
	}
	slices.Sort(carried)
	carried = slices.Compact(carried)
	check := func(at syntax.Span, name string) {
		if !slices.Contains(carried, name) {
			hint := "the model has " + alternatives(carried)
			if c := spell.Nearest(name, carried); c != "" {
				hint = "did you mean " + c + "?"
			}
			p.Report(at, hint, syntax.ErrNoCheckpoint, name)
		}
	}
	for _, key := range []string{"save", "offload"} {
		for _, name := range p.names("pipeline", key) {
			check(p.Values["pipeline"][key].Value.At(), name)
		}
	}
	for _, e := range p.custom() {
		at := e.Span
		at.Len = len(e.Key)
		check(at, e.Key)
		if e.Key == iterationInput && !p.keeps(iterationInput) {
			p.checkInput(at, m, carried)
		}
	}
}

// checkInput refuses iterations that have nothing to be rematerialised from but the
// state of the loop, all of which would be saved in each of them. at is the place
// where their input is given up.
func (p *Program) checkInput(at syntax.Span, m *ir.Module, carried []string) {
	if p.Boundary() != "iteration" || p.Word("pipeline", "checkpoint_place") == "outside" || slices.Contains(p.hosted(), layerInput) {
		return
	}
	if slices.Contains(carried, layerInput) && p.keeps(layerInput) {
		return
	}
	m.Main().Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.PPPipeline {
			d, _ := op.Attrs.Get("config").(ir.Dict)
			p.Report(at, "iteration_input = device, or offload, keeps one microbatch for each stage", syntax.ErrNoInput, strings.Join(loopState(ir.Attrs(d)), ", "))
		}
	})
}

// loopState is what a pipeline's loop carries.
func loopState(config ir.Attrs) []string {
	state := []string{"state_io", "shift"}
	S, M, R, D := config.Int("stages"), config.Int("microbatches"), config.Int("repeats"), config.Int("delay")
	if D == 2 {
		state = append(state, "prev_outputs")
	}
	if R > 1 && M > S*D {
		state = append(state, "circ_storage", "circ_storage_mover")
	}
	return state
}
