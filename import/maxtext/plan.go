package maxtext

import (
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
)

// A plan is a program in pieces, before it is printed.
type plan struct {
	c    *config
	name string // of the model, a name of the language
	size sizes
	mesh mesh
	run  schedule

	stacks    []stack  // in their order
	weights   []weight // of the model, besides those of its layers
	trainText string
}

// sizes are those of the axes.
type sizes struct {
	batch, seq                                      int
	embed, heads, kvHeads, head, mlp, moeMLP        int
	vocab, layers, experts, perToken                int
	qLora, kvLora, qkNope, qkRope, vHead, positions int
	queries                                         int // in a block of attention; 0 is all
	tokens                                          int // in a block of the loss; 0 is all
}

// plan makes the pieces. What is wrong is in c.list.
func (c *config) plan() *plan {
	p := &plan{c: c, name: c.programName()}
	p.mesh = c.mesh()
	p.size = c.sizes(p.mesh.devices)
	p.blocks()
	p.layers()
	if len(p.stacks) == 0 { // refused
		return p
	}
	p.checkLater()
	p.run = p.schedule()
	p.checkBatch()
	p.checkHeads()
	p.modelWeights()
	p.trainText = p.train()
	p.helpers() // for what it refuses
	return p
}

var notName = regexp.MustCompile(`[^a-zA-Z0-9_]+`)

// programName is the model's name as the language has names.
func (c *config) programName() string {
	name := c.text("model_name")
	if name == "default" || name == "" {
		name = c.text("decoder_block")
	}
	name = notName.ReplaceAllString(name, "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "m" + name
	}
	return strings.ToLower(name)
}

// positive is a size, which must be at least 1.
func (c *config) positive(key string) int {
	n := c.whole(key)
	if n < 1 {
		c.fail(key, "", "%s: want a whole number from 1", c.is(key))
		return 1
	}
	if n > 1<<31 {
		c.fail(key, "", "%s: want at most %d", c.is(key), 1<<31)
		return 1
	}
	return n
}

// sizes reads the sizes. global_parameter_scale doubles some of them, as MaxText
// does.
func (c *config) sizes(devices int) sizes {
	scale := c.positive("global_parameter_scale")
	if bits.OnesCount(uint(scale)) != 1 {
		c.fail("global_parameter_scale", "", "%s: want a power of 2", c.is("global_parameter_scale"))
		scale = 1
	}
	log := bits.TrailingZeros(uint(scale))
	layers := log / 3
	heads, embed := layers, layers
	if log%3 > 0 {
		heads++
	}
	if log%3 > 1 {
		embed++
	}
	s := sizes{
		seq: c.positive("max_target_length"), vocab: c.positive("vocab_size"),
		embed: c.positive("base_emb_dim") << embed, heads: c.positive("base_num_query_heads") << heads, kvHeads: c.positive("base_num_kv_heads") << heads,
		head: c.positive("head_dim"), mlp: c.positive("base_mlp_dim") << heads, layers: c.positive("base_num_decoder_layers") << layers,
		experts: c.positive("num_experts"), perToken: c.positive("num_experts_per_tok"),
	}
	if s.experts > 0 {
		s.moeMLP = s.mlp
		if c.whole("base_moe_mlp_dim") > 0 {
			s.moeMLP = c.whole("base_moe_mlp_dim") << heads
		}
		if s.perToken > s.experts {
			c.fail("num_experts_per_tok", "", "%s: there are %s", c.is("num_experts_per_tok"), c.is("num_experts"))
		}
	}
	if c.text("decoder_block") == "deepseek" {
		s.qLora, s.kvLora = c.whole("q_lora_rank"), c.positive("kv_lora_rank")
		s.qkNope, s.qkRope, s.vHead = c.positive("qk_nope_head_dim"), c.positive("qk_rope_head_dim"), c.positive("v_head_dim")
	}
	s.positions = max(0, c.whole("trainable_position_size"))
	per := c.number("per_device_batch_size")
	s.batch = int(float64(devices) * per)
	if s.batch < 1 {
		c.fail("per_device_batch_size", "", "%s: on %d devices there is no whole example in a batch", c.is("per_device_batch_size"), devices)
		s.batch = 1
	}
	return s
}

// blocks chooses in what parts attention and loss are computed: numbers are the
// same, memory is not.
func (p *plan) blocks() {
	c, s := p.c, &p.size
	parts := 1
	for _, a := range p.mesh.axes {
		if strings.HasPrefix(a.name, "context") || a.name == "tensor_sequence" {
			parts *= a.size()
		}
	}
	kernel := c.text("attention")
	block := c.whole("sa_block_q")
	if (kernel == "autoselected" || kernel == "flash" || kernel == "cudnn_flash_te") && block > 0 && s.seq > block && s.seq%block == 0 && block%parts == 0 {
		s.queries = block
	}
	if n := c.whole("num_vocab_tiling"); n > 1 {
		if s.seq%n != 0 {
			c.fail("num_vocab_tiling", "", "%s does not divide %s", c.is("num_vocab_tiling"), c.is("max_target_length"))
			return
		}
		s.tokens = s.seq / n
	}
}

// checkHeads finds heads that do not divide into groups.
func (p *plan) checkHeads() {
	s := p.size
	if p.c.text("decoder_block") != "deepseek" && s.heads%s.kvHeads != 0 {
		p.c.fail("base_num_kv_heads", "", "%s: %s do not divide into so many groups", p.c.is("base_num_kv_heads"), p.c.is("base_num_query_heads"))
	}
}

// topologies are the chips that compile_topology names: by the word before the
// number, how many cores the number counts for a chip, and the preset.
var topologies = map[string]struct {
	cores  int
	preset string
}{
	"v4": {2, "v4"}, "v5p": {2, "v5p"}, "v5e": {1, "v5e"}, "v5litepod": {1, "v5e"}, "v6e": {1, "v6e"}, "tpu7x": {1, ""}, "a3": {1, "h100"},
}

// topology is how many devices a slice of compile_topology has, and what they are.
func (c *config) topology() (devices int, preset string) {
	name := c.text("compile_topology")
	if name == "" {
		return 0, ""
	}
	word, number, counts := strings.Cut(name, "-")
	if word == "a3" && !counts { // a machine of eight
		number = "8"
	}
	t, known := topologies[word]
	n, err := strconv.Atoi(number)
	if !known || err != nil || n < t.cores {
		c.fail("compile_topology", "compile_topology=v5p-128, or --devices", "%s: the topology is not known", c.is("compile_topology"))
		return 0, ""
	}
	return n / t.cores, t.preset
}

// fraction is a number as the language writes it.
func fraction(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strings.Replace(strconv.FormatFloat(x, 'g', -1, 64), "e-0", "e-", 1)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
