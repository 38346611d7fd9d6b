package passes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A lawCase is one point of the product that the law speaks of: for every
// factor of lawFactors, which of its values.
type lawCase []int

// A lawFactor is one choice that a program leaves to whoever runs it. Its
// values are words: what of them a program or a setting says, lawCase.text has.
type lawFactor struct {
	name   string
	values []string
}

// lawFactors are the choices, those of the size of a program first.
var lawFactors = []lawFactor{
	{"stages", words("1 2 3 4 8")},
	{"repeats", words("1 2 3 4")},
	{"microbatches", words("S 2S 4S 1 2 S-1 S+1 S+2 2S-1 2S+1")}, // S stages
	{"delay", words("1 2")},
	{"batch_split", words("1 2")},
	{"layers_per_stage", words("1 2")},
	{"outside", words("0 2")}, // layers after the pipeline
	{"layers", []string{"alike", "pair padded", "kinds", "pair pattern padded"}},
	{"form", words("pipeline stack")},
	{"mesh", []string{"", "data", "fsdp", "fsdp_transpose", "tensor", "context", "expert", "data fsdp", "fsdp fsdp_transpose", "fsdp tensor", "fsdp context", "fsdp expert", "context expert", "fsdp context expert", "data tensor", "data fsdp tensor", "fsdp tensor sequence", "data fsdp slices"}},
	{"gather", []string{"per_iteration", "once", "per_repeat", "per_repeat save_gathered"}},
	{"prefetch", words("head ahead")},
	{"gather_dtype", words("none bf16")},
	{"rotate", words("ppermute slice_pad")},
	{"scan_iterations", words("true false")},
	{"scan_repeats", words("true false")},
	{"scan_layers", words("true false")},
	{"unroll", words("1 2 3")},
	{"checkpoint", words("iteration layer repeat none")},
	{"checkpoint_place", words("inside outside")},
	{"remat", append(words("full none minimal minimal_with_context save_dot_with_context_except_mlp save_dot_except_mlp save_dot_except_mlpwi save_qkv_proj save_out_proj qkv_proj_offloaded minimal_offloaded"),
		"custom { mlpwi = device, mlpwo = remat, decoder_layer_input = offload }", "custom { iteration_input = remat, query_proj = offload }", "full, save = [mlpwi], offload = [mlpwo], save_decoder_layer_input = false")},
	{"skip_bubbles", words("false true")},
	{"mode", words("auto explicit")},
	{"combine", words("0 1000000")},
	{"step", []string{"grad", "train", "train zero", "train accumulate", "train zero accumulate", "train zero accumulate per_batch frozen", "train accumulate normalized rules", "grad frozen"}},
	{"run", words("plain shuffled buffers bubbles")}, // of modes
}

func words(s string) []string { return strings.Fields(s) }

// What the names and the values of factors say, looked up often where cases are chosen.
var (
	lawPlaces  = make(map[string]int)
	lawWords   = make([][][]string, len(lawFactors)) // of each value of each factor
	lawNumbers = make([][]int, len(lawFactors))
	lawAxes    [][]string // of each mesh
)

func init() {
	for i, f := range lawFactors {
		lawPlaces[f.name] = i
		for _, value := range f.values {
			n, _ := strconv.Atoi(value)
			lawWords[i], lawNumbers[i] = append(lawWords[i], words(value)), append(lawNumbers[i], n)
		}
	}
	for _, mesh := range lawWords[factorAt("mesh")] {
		lawAxes = append(lawAxes, slices.DeleteFunc(slices.Clone(mesh), func(w string) bool { return w == "sequence" || w == "slices" }))
	}
}

// factorAt is the place of a factor in lawFactors.
func factorAt(name string) int { return lawPlaces[name] }

// is is the value of the factor called name.
func (c lawCase) is(name string) string {
	i := factorAt(name)
	return lawFactors[i].values[c[i]]
}

func (c lawCase) number(name string) int {
	i := factorAt(name)
	return lawNumbers[i][c[i]]
}

func (c lawCase) has(name, word string) bool {
	i := factorAt(name)
	return slices.Contains(lawWords[i][c[i]], word)
}

// drawn is a random point of the full product of settings, not necessarily a legal
// one.
func drawn(r *rand.Rand) lawCase {
	c := make(lawCase, len(lawFactors))
	for i, f := range lawFactors {
		c[i] = r.IntN(len(f.values))
	}
	return c
}

// refused is what the error says with which c is refused, "" where c is legal.
func (c lawCase) refused() string {
	R := c.number("repeats")
	window := c.has("gather", "per_repeat")
	boundary := c.is("checkpoint")
	if c.is("remat") == "none" {
		boundary = "none"
	}
	inside := c.is("checkpoint_place") == "inside"
	switch {
	case !window && c.is("prefetch") == "ahead":
		return "pipeline: prefetch = ahead has no effect: it goes with gather = per_repeat, and gather is " + c.is("gather")
	case c.is("form") == "stack":
		return ""
	case window && R == 1:
		return "pipeline: gather = per_repeat with repeats = 1, but a window slides over 2 repeats or more"
	case boundary == "repeat" && inside && R == 1:
		return "pipeline: checkpoint = repeat with repeats = 1: there is one repeat, the full loop"
	}
	return ""
}

// microbatches is M: so many times the stages, and so many more or fewer.
func (c lawCase) microbatches() int {
	head, tail, ok := strings.Cut(c.is("microbatches"), "S")
	if !ok {
		return c.number("microbatches")
	}
	times, more := 1, 0
	if head != "" {
		times, _ = strconv.Atoi(head)
	}
	if tail != "" {
		more, _ = strconv.Atoi(tail)
	}
	return max(times*c.number("stages")+more, 1)
}

// iterations is the number of iterations, T: a repeat begins when every stage
// has had all microbatches, and the first of them has come around.
func (c lawCase) iterations() int {
	S, M, R, D := c.number("stages"), c.microbatches(), c.number("repeats"), c.number("delay")
	return max(M, D*S)*(R-1) + M + D*(S-1)
}

// layers is the number of layers, those outside of the pipeline among them, but not
// those that are of a kind of their own.
func (c lawCase) layers() int { return c.inside() + c.number("outside") }

// perStage is how many layers a stage has: full patterns of two.
func (c lawCase) perStage() int {
	if c.has("layers", "pattern") {
		return 2 * c.number("layers_per_stage")
	}
	return c.number("layers_per_stage")
}

// inside is the number of layers in the pipeline. Where the last stage lacks one, it
// is one pattern fewer than stages and repeats have.
func (c lawCase) inside() int {
	n := c.number("stages") * c.number("repeats") * c.perStage()
	if c.padded() {
		n -= c.perStage() / c.number("layers_per_stage")
	}
	return n
}

// padded reports whether a stage lacks a layer.
func (c lawCase) padded() bool {
	return c.has("layers", "padded") && c.is("form") == "pipeline" && c.number("stages")*c.number("layers_per_stage") > 1
}

// axes are those of the mesh besides stage, each of size 2. With sequence,
// activations are sharded along tensor in the sequence dimension where no other
// dimension is; with slices, fsdp spans slices of devices.
func (c lawCase) axes() []string { return lawAxes[c[factorAt("mesh")]] }

// batch is a row of each microbatch for each device that has rows of its own.
func (c lawCase) batch() int {
	n := c.microbatches() * c.number("batch_split")
	for _, axis := range words("data fsdp fsdp_transpose expert") {
		if c.has("mesh", axis) {
			n *= 2
		}
	}
	return n
}

// legal reports whether c is to hold the law, in reasonable time.
func (c lawCase) legal() bool { return c.refused() == "" && !c.inexact() && c.cost() < 1000 }

// inexact reports whether c is so deep that rounding alone breaks the tolerance.
func (c lawCase) inexact() bool {
	deepest := 64
	if c.has("layers", "pair") {
		deepest = 24
	}
	return c.layers() > deepest
}

// cost is about what it takes to compile and run c, in milliseconds: for each layer that is in
// the program, and for each time that a device computes one.
func (c lawCase) cost() float64 {
	size := math.Pow(1.14, float64(len(c.axes()))) // of a layer
	if c.has("mesh", "expert") {
		size *= 3.4
	}
	if c.is("layers") != "alike" {
		size *= 1.35
	}
	unroll, devices := c.number("unroll"), float64(c.number("stages")<<len(c.axes()))
	turns := func(loop string, n int) float64 { // of a loop over n that are in the program
		switch {
		case c.is(loop) == "false":
			return float64(n)
		case unroll == 1:
			return 1
		}
		return float64(min(unroll+n%unroll, n))
	}
	ms := 7.5
	if c.is("form") == "stack" {
		ms += 7*size*math.Pow(turns("scan_layers", c.layers()), 0.75) + 0.03*size*float64(c.layers())*devices*(1+0.05*float64(c.microbatches()))
	} else {
		T := c.iterations()
		iteration := 6 * size * math.Pow(turns("scan_layers", c.perStage()), 0.4)
		if c.is("stages") != "1" {
			iteration += 7
		}
		if c.is("batch_split") == "2" {
			iteration *= 1.8
		}
		if c.padded() {
			iteration *= 1.4
		}
		if c.has("gather", "per_repeat") { // in loops of their own
			n := turns("scan_iterations", max(T/c.number("repeats"), 1))
			if c.is("scan_repeats") == "false" {
				n *= math.Sqrt(float64(c.number("repeats")))
			}
			iteration *= 2.4 * math.Pow(n, 0.6)
		} else {
			iteration *= math.Pow(turns("scan_iterations", T), 0.8)
		}
		ms += 5 + iteration + 0.013*float64(T)*devices*float64(1+c.perStage())*math.Sqrt(size)
		if c.is("checkpoint") == "repeat" {
			ms *= 1.25
		}
		if c.is("outside") != "0" {
			ms += 7.5 * size
		}
	}
	if c.has("step", "accumulate") {
		ms *= 1.25
	}
	if c.twinned() >= 0 {
		ms *= 2
	}
	return ms
}

// text is the program as a .pp file: a model with one of everything that the
// compiler treats differently. Each layer has a weight whose storage is sharded and
// one whose is not, a side input that depends on a parameter, checkpoint names, and
// an auxiliary scalar; attention where the sequence is sharded, experts where
// experts are; another activation beside the first, a layer of another kind before
// the others, or two kinds of layers in turn.
func (c lawCase) text() string {
	return c.model() + c.lowering()
}

// model is what is computed.
func (c lawCase) model() string {
	var params, body, aux string
	aux = "mean(y * y)"
	if c.has("mesh", "context") {
		body += `
  k = rename(h, seq -> kv_seq)
  h = h + checkpoint(dot(softmax(dot(h, k, over: embed), over: kv_seq), k, over: kv_seq), "context")`
	}
	if c.has("mesh", "expert") {
		params += `
  param gate:     f64[embed, routes]       = normal(0.5)
  param wi0, wi1: f64[experts, embed, mlp] = normal(0.5)
  param wout:     f64[experts, mlp, embed] = normal(0.5)`
		body += `
  z, balance = moe(h, gate, wi0, wi1, wout, k: 2, capacity: 1.25)
  h = h + z`
		aux += " + 0.1 * balance"
	}
	train := ""
	if c.has("step", "train") {
		train = "\ntrain { optimizer = sgd(lr: 0.1, momentum: 0.9), clip_by_global_norm = 0.5, dtype = f64"
		if c.has("step", "accumulate") {
			train += ", gradient_accumulation = 2"
		}
		if c.has("step", "zero") {
			train += ", shard_optimizer_over_data = true"
		}
		if c.has("step", "per_batch") {
			train += ", reduce_gradients = per_batch"
		}
		switch {
		case c.has("step", "frozen"):
			train += `, params = custom { "*.wo" = frozen }`
		case c.has("step", "rules"):
			train += `, params = custom { "*.w*" = update(lr_scale: 0.5), "scale" = frozen }`
		}
		train += " }\n"
	}
	carries, start, result, after := "", "", "", "y"
	if c.has("layers", "pair") {
		carries, start, result, after = ", r: f64[batch, seq, mlp]", ", full(0.5, f64)", ", r", "y, r"
		body += `
  h = h + 0.1 * mean(r, over: mlp)
  r = 0.5 * r + tanh(rename(h, embed -> mlp))`
	}
	what, other := fmt.Sprintf("block, layers: %d", c.layers()), ""
	switch {
	case c.has("layers", "kinds"):
		what = fmt.Sprintf("layers: [other, block * %d]", c.layers())
	case c.has("layers", "pattern"):
		what = fmt.Sprintf("layers: [[block, other] * %d]", c.layers()/2)
	}
	if strings.Contains(what, "other") {
		other = fmt.Sprintf(`
layer other(x: f64[batch, seq, embed]%s, gain: f64[batch, seq]) {
  param wi: f64[embed, mlp] = normal(0.5)
  x = checkpoint(x, "decoder_layer_input")
  h = checkpoint(dot(x * gain, wi, over: embed), "mlpwi")
  return 0.5 * x + rename(tanh(h), mlp -> embed)%s
}
`, carries, result)
	}
	frozen, side, loss := "", "", "mean(y * y * scale)"
	if c.has("step", "frozen") {
		frozen = " frozen"
	}
	if result != "" {
		loss = "mean(y * y * scale) + mean(r * r)"
	}
	if c.has("step", "normalized") {
		side, loss = ", weight: f64[batch, seq]", "normalized(sum(y * y * scale * weight), by: sum(weight * weight))"
	}
	embed := max(4, 1<<min(3, len(c.axes())))
	return fmt.Sprintf(`axes { batch = %d, seq = 2, kv_seq = seq, embed = %d, mlp = embed, experts = 4, routes = experts }

layer block(x: f64[batch, seq, embed]%s, gain: f64[batch, seq]) {
  param norm: f64[embed]      = ones%s
  param wi:   f64[embed, mlp] = normal(0.5)
  param wo:   f64[mlp, embed] = normal(0.5)%s

  x = checkpoint(x, "decoder_layer_input")
  h = checkpoint(rmsnorm(x, norm, over: embed) * gain, "query_proj")%s
  h = tanh(checkpoint(dot(h, wi, over: embed), "mlpwi"))
  y = checkpoint(dot(h, wo, over: mlp), "mlpwo")
  return checkpoint(x + y, "out_proj")%s, %s
}
%s
model law(x: f64[batch, seq, embed]%s) {
  param scale: f64[embed] = normal(1)
  %s, aux = %s(%s)(x%s, mean(x * scale, over: embed))
  return %s + 0.1 * aux
}
%s`, c.batch(), embed, carries, frozen, params, body, result, aux, other, side, after, c.is("form"), what, start, loss, train)
}

// lowering is how it is computed.
func (c lawCase) lowering() string {
	mesh := "stage = " + c.is("stages")
	for _, axis := range c.axes() {
		mesh += ", " + axis + " = 2"
	}
	if c.has("mesh", "slices") {
		mesh = strings.Replace(mesh, "fsdp = 2", "fsdp = dcn(2)", 1)
	}
	sequence := ""
	if c.has("mesh", "sequence") {
		sequence = "\n  seq     -> tensor"
	}
	var b strings.Builder
	fmt.Fprintf(&b, `
mesh { %s }

shard weights {
  experts -> expert
  embed   -> fsdp, context, expert
  embed   -> fsdp, context
  mlp     -> fsdp_transpose, tensor
}
shard activations {
  experts -> expert
  batch   -> data, fsdp, fsdp_transpose, expert
  batch   -> data, fsdp, fsdp_transpose
  seq     -> context
  mlp     -> tensor%s
}

pipeline {
  gather           = %s
`, mesh, sequence, words(c.is("gather"))[0])
	set := func(key, value string) { fmt.Fprintf(&b, "  %-16s = %s\n", key, value) }
	if c.is("form") == "pipeline" {
		set("layers", fmt.Sprint(c.inside()))
		set("layers_per_stage", fmt.Sprint(c.perStage()))
		if c.padded() {
			set("pad_layers", "true")
		}
		set("microbatches", fmt.Sprint(c.microbatches()))
		for _, name := range words("repeats delay batch_split rotate scan_iterations scan_repeats skip_bubbles") {
			set(name, c.is(name))
		}
	}
	if c.has("gather", "save_gathered") {
		set("save_gathered", "true")
	}
	if c.has("gather", "per_repeat") || c.is("prefetch") == "ahead" {
		set("prefetch", c.is("prefetch"))
	}
	if c.is("gather_dtype") != "none" {
		set("gather_dtype", c.is("gather_dtype"))
	}
	for _, name := range words("scan_layers unroll checkpoint checkpoint_place mode combine") {
		set(name, c.is(name))
	}
	fmt.Fprintf(&b, "  remat            = %s\n}\n", c.is("remat"))
	return b.String()
}

// String is the values of all factors.
func (c lawCase) String() string {
	var b strings.Builder
	for i, f := range lawFactors {
		fmt.Fprintf(&b, "%s = %s; ", f.name, f.values[c[i]])
	}
	return strings.TrimSuffix(b.String(), "; ")
}
