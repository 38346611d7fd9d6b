package maxtext

import (
	"fmt"
	"slices"
	"strings"
)

// A schedule is the pipeline block.
type schedule struct {
	lines []string
}

func (s *schedule) set(key, value, note string) {
	line := key + " = " + value
	if note != "" {
		line += "  // " + note
	}
	s.lines = append(s.lines, line)
}

// schedule reads the keys of the pipeline and of what is computed again.
func (p *plan) schedule() schedule {
	var s schedule
	c := p.c
	if p.mesh.stages > 1 {
		p.pipeline(&s)
	} else if !c.flag("scan_layers") {
		s.set("scan_layers", "false", "")
	}
	p.remat(&s)
	switch c.text("shard_mode") {
	case "auto":
	case "explicit":
		s.set("mode", "explicit", "")
	default:
		c.fail("shard_mode", "", "%s: want auto or explicit", c.is("shard_mode"))
	}
	return s
}

// pipeline reads what concerns stages. The layers that are pipelined are those of
// the last stack.
func (p *plan) pipeline(s *schedule) {
	c := p.c
	last := &p.stacks[len(p.stacks)-1]
	stages, perStage := p.mesh.stages, c.positive("num_layers_per_pipeline_stage")
	piped, ok := p.piped(last)
	if !ok {
		return
	}
	repeats := c.whole("num_pipeline_repeats")
	slot := stages * perStage
	if repeats == -1 {
		if repeats = piped / slot; piped%slot != 0 {
			c.fail("num_pipeline_repeats", p.cureLayers(piped, slot, last), "%s do not divide into %s of %s (ici and dcn_pipeline_parallelism, num_layers_per_pipeline_stage): %d left over",
				counted(piped, last.what()), counted(stages, "stage"), counted(perStage, "layer"), piped%slot)
			return
		}
	}
	if repeats < 1 || repeats*slot != piped {
		c.fail("num_pipeline_repeats", p.cureLayers(piped, slot, last), "%s: %s x %d repeats x %s make %d, there are %s", c.is("num_pipeline_repeats"), counted(stages, "stage"), repeats, counted(perStage, "layer"), repeats*slot, counted(piped, last.what()))
		return
	}
	delay := 1
	if c.flag("pipeline_delay_activation_forwarding") {
		delay = 2
	}
	microbatches := c.whole("num_pipeline_microbatches")
	if microbatches == -1 {
		microbatches = stages * delay
	}
	if microbatches < 1 {
		c.fail("num_pipeline_microbatches", "", "%s: want a whole number from 1, or -1", c.is("num_pipeline_microbatches"))
		return
	}
	p.microbatches(microbatches)
	s.set("microbatches", fmt.Sprint(microbatches), "")
	p.batchSplit(s, microbatches)
	s.set("repeats", fmt.Sprint(repeats), "")
	if perStage > 1 {
		s.set("layers_per_stage", fmt.Sprint(perStage), "")
	}
	if piped < last.layers {
		s.set("layers", fmt.Sprint(piped), fmt.Sprintf("of %d; the others run after the pipeline", last.layers))
		if (last.layers-piped)%stages != 0 {
			c.warn("layers-outside", "pipeline_parallel_layers", "%s leaves %s outside of the pipeline: MaxText stacks them along stage, of which they do not fill %d; here every device has them", c.is("pipeline_parallel_layers"), counted(last.layers-piped, "layer"), stages)
		}
	}
	if delay > 1 {
		s.set("delay", "2", "")
	}
	p.gather(s, stages, repeats)
	if !c.flag("scan_pipeline_iterations") {
		s.set("scan_iterations", "false", "")
	}
	if perStage > 1 && !c.flag("scan_layers_per_stage") {
		s.set("scan_layers", "false", "as scan_layers_per_stage = false")
	}
	p.balanceWarnings(repeats)
}

// piped is how many of a stack's layers are in the pipeline.
func (p *plan) piped(last *stack) (int, bool) {
	c := p.c
	n := c.whole("pipeline_parallel_layers")
	if n == -1 {
		return last.layers, true
	}
	piped := n / last.cycle
	switch {
	case n < 1:
		c.fail("pipeline_parallel_layers", "", "%s: want a whole number from 1, or -1 for all", c.is("pipeline_parallel_layers"))
	case n%last.cycle != 0:
		c.fail("pipeline_parallel_layers", "", "%s: layers come in groups of %d", c.is("pipeline_parallel_layers"), last.cycle)
	case piped > last.layers:
		c.fail("pipeline_parallel_layers", fmt.Sprintf("at most pipeline_parallel_layers=%d", last.layers*last.cycle),
			"%s is more than the %s that can be pipelined; MaxText makes the model longer", c.is("pipeline_parallel_layers"), counted(last.layers*last.cycle, "layer"))
	default:
		return piped, true
	}
	return 0, false
}

// cureLayers is how layers could be divided.
func (p *plan) cureLayers(piped, slot int, last *stack) string {
	down := piped / slot * slot
	if down == 0 {
		return fmt.Sprintf("base_num_decoder_layers=%d fills the stages", slot*last.cycle)
	}
	if piped == down {
		return fmt.Sprintf("num_pipeline_repeats=%d", piped/slot)
	}
	return fmt.Sprintf("pipeline_parallel_layers=%d leaves %d outside", down*last.cycle, (last.layers-down)*last.cycle)
}

// microbatches checks that the batch divides into them.
func (p *plan) microbatches(n int) {
	c, b := p.c, p.size.batch
	if b%n != 0 {
		c.fail("num_pipeline_microbatches", "", "%d microbatches do not divide the batch of %d (%d devices x %s)", n, b, p.mesh.devices, c.is("per_device_batch_size"))
		return
	}
	p.rows(b/n, fmt.Sprintf("a microbatch of %d / %d", b, n))
}

// batchSplit sets into how many parts a microbatch is split.
func (p *plan) batchSplit(s *schedule, microbatches int) {
	c, n := p.c, p.c.whole("batch_split_factor")
	if !c.flag("use_batch_split_schedule") || n == 1 {
		return
	}
	rows := p.size.batch / microbatches
	if n < 1 || rows%n != 0 {
		c.fail("batch_split_factor", "", "%s: want a whole number from 1 that divides a microbatch of %s", c.is("batch_split_factor"), counted(rows, "row"))
		return
	}
	p.rows(rows/n, fmt.Sprintf("a part of a microbatch of %d / %d", rows, n))
	s.set("batch_split", fmt.Sprint(n), "")
}

// checkBatch does the same for a batch that no pipeline divides.
func (p *plan) checkBatch() {
	if p.mesh.stages == 1 {
		p.rows(p.size.batch, "the batch")
	}
}

// rows checks that examples divide along the mesh axes of the batch.
func (p *plan) rows(n int, what string) {
	parts, names := 1, []string(nil)
	for _, r := range p.c.rules {
		if r.name != "activation_batch" {
			continue
		}
		for _, m := range p.meshOf(r.mesh) {
			for _, a := range p.mesh.axes {
				if a.name == m {
					parts *= a.size()
					names = append(names, fmt.Sprintf("%s=%d", m, a.size()))
				}
			}
		}
		break
	}
	if n%parts != 0 {
		p.c.fail("per_device_batch_size", "a larger per_device_batch_size, fewer num_pipeline_microbatches, or another mesh", "%s has %s, which do not divide along %s", what, counted(n, "example"), strings.Join(names, " x "))
	}
}

// gather reads when weights that are stored in parts are gathered.
func (p *plan) gather(s *schedule, stages, repeats int) {
	c := p.c
	once, perRepeat := c.flag("pipeline_fsdp_ag_once"), c.flag("pipeline_fsdp_ag_per_repeat")
	switch {
	case perRepeat && repeats == 1:
		c.fail("pipeline_fsdp_ag_per_repeat", "leave it out, or pipeline_fsdp_ag_once=true", "%s: there is one repeat, the full loop", c.is("pipeline_fsdp_ag_per_repeat"))
	case perRepeat:
		s.set("gather", "per_repeat", "")
		if once {
			c.warn("gather-twice", "pipeline_fsdp_ag_once", "pipeline_fsdp_ag_once has no effect beside pipeline_fsdp_ag_per_repeat, here as in MaxText")
		}
		if stages >= 3 {
			c.warn("maxtext-prefetch", "pipeline_fsdp_ag_per_repeat", "MaxText's prefetch is wrong for %d stages: in every repeat but the first, stages from the third on compute with the weights of the repeat before. This program uses the right ones; compat = maxtext_prefetch computes what MaxText does", stages)
		}
		c.warn("maxtext-window-memory", "pipeline_fsdp_ag_per_repeat", "MaxText keeps the gathered weights of all %d repeats for the backward pass. This program gathers them again; save_gathered = true keeps them", repeats)
		if block := c.text("decoder_block"); block == "qwen3_moe" {
			c.warn("maxtext-experts", "pipeline_fsdp_ag_per_repeat", "MaxText gathers the experts of %s along expert too. In this program they stay where they are", block)
		}
	case once:
		s.set("gather", "once", "")
		c.warn("maxtext-once-layout", "pipeline_fsdp_ag_once", "MaxText gathers with the sharding of the wrong dimensions: numbers are right, weights are sharded otherwise than its rules say. This program gathers along the axes of the rules")
	default:
		s.set("gather", "per_iteration", "")
	}
}

// balanceWarnings tells of the load-balance loss under a pipeline.
func (p *plan) balanceWarnings(repeats int) {
	c := p.c
	if c.number("load_balance_loss_weight") == 0 || p.size.experts < 2 {
		return
	}
	what := "averages the load-balance loss over bubbles too, whose inputs are zeros"
	switch {
	case c.flag("pipeline_fsdp_ag_per_repeat"):
		what = "leaves the load-balance loss out, without a word, with pipeline_fsdp_ag_per_repeat"
	case repeats > 1:
		what = "does not trace with a load-balance loss and repeats"
	}
	c.warn("maxtext-balance", "load_balance_loss_weight", "under a pipeline MaxText %s. This program computes that of the layers in sequence", what)
}

// saved are the names that a custom policy can speak of, with the names that
// values have here.
var saved = []struct{ key, ours string }{
	{"context", "context"}, {"mlpwi", "mlpwi"}, {"mlpwi_0", "mlpwi_0"}, {"mlpwi_1", "mlpwi_1"}, {"mlpwo", "mlpwo"},
	{"moe_mlpwi_0", "mlpwi_0"}, {"moe_mlpwi_1", "mlpwi_1"}, {"moe_mlpwo", "mlpwo"},
	{"query_proj", "query_proj"}, {"key_proj", "key_proj"}, {"value_proj", "value_proj"}, {"kv_proj", "kv_proj"}, {"qkv_proj", "qkv_proj"}, {"out_proj", "out_proj"},
	{"query_wa_proj", "query_wa_proj"}, {"kv_wa_proj", "kv_wa_proj"}, {"mla_q", "mla_q"}, {"mla_kv", "mla_kv"},
}

// remat reads what the backward pass computes again.
func (p *plan) remat(s *schedule) {
	c := p.c
	policy := c.text("remat_policy")
	piped := p.mesh.stages > 1
	switch policy {
	case "minimal_flash":
		policy = "minimal_with_context"
	case "minimal_with_quantization":
		policy = "minimal"
	case "minimal_with_context_and_quantization":
		policy = "minimal_with_context"
	}
	switch {
	case piped && !c.flag("set_remat_policy_on_pipeline_iterations"):
		s.set("checkpoint", "none", "as set_remat_policy_on_pipeline_iterations = false")
	case policy == "none" && piped:
		s.set("remat", "full", "remat_policy = none, with which MaxText keeps of an iteration its input alone")
	case policy == "custom":
		p.custom(s)
	case slices.Contains([]string{"full", "none", "minimal", "minimal_with_context", "save_dot_with_context_except_mlp", "save_dot_except_mlpwi", "save_dot_except_mlp", "save_qkv_proj", "save_out_proj", "qkv_proj_offloaded", "minimal_offloaded"}, policy):
		s.set("remat", policy, "")
	default:
		c.fail("remat_policy", "", "%s: MaxText has no such policy", c.is("remat_policy"))
	}
}

// custom reads a policy of names. Names that no value of the layer has are left
// out.
func (p *plan) custom(s *schedule) {
	c := p.c
	kept := make(map[string]string)
	var order []string
	for _, k := range saved {
		where := c.text(k.key)
		if !slices.Contains([]string{"remat", "device", "offload"}, where) {
			c.fail(k.key, "", "%s: want remat, device or offload", c.is(k.key))
			continue
		}
		if where != "remat" && p.names(k.ours) {
			if kept[k.ours] == "" {
				order = append(order, k.ours)
			}
			kept[k.ours] = where
		}
	}
	switch c.text("decoder_layer_input") {
	case "device":
	case "offload":
		kept["decoder_layer_input"] = "offload"
		order = append(order, "decoder_layer_input")
	case "remat":
		if p.mesh.stages > 1 {
			c.warn("maxtext-iteration-input", "decoder_layer_input", "with remat_policy=custom and %s MaxText has nothing to start an iteration from and keeps the whole state of the loop for each. This program keeps the input of each iteration", c.is("decoder_layer_input"))
		}
		s.set("save_decoder_layer_input", "false", "")
	default:
		c.fail("decoder_layer_input", "", "%s: want remat, device or offload", c.is("decoder_layer_input"))
	}
	if len(order) == 0 {
		s.set("remat", "full", "")
		return
	}
	var b strings.Builder
	b.WriteString("custom {\n")
	for _, name := range order {
		fmt.Fprintf(&b, "    %s = %s\n", name, kept[name])
	}
	b.WriteString("  }")
	s.set("remat", b.String(), "")
}
