package lang

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ppc/ir/lang/syntax"
)

// A settingKind is what a setting's value may be.
type settingKind uint8

const (
	count    settingKind = iota // a whole number, at least min
	real                        // a number, at least min
	rate                        // a learning rate: a number, a schedule, or a number for each step
	flag                        // true or false
	word                        // one of words
	names                       // [a, b] of names, or one name
	fileName                    // a text, or one of words
	call                        // one of words, with arguments in parentheses or braces
)

// A settingRow is what the language knows of one setting.
type settingRow struct {
	block, key string
	kind       settingKind
	min, max   float64  // of a number; no max is the largest size of an axis
	above      bool     // of real: greater than min
	words      []string // of word, file and call
	def        any      // what holds where nothing is given; nil is derived
	doc        string
	acts       []string // the conditions under which it acts where it is other than def, in the order in which they are looked at
}

var remats = []string{"full", "none", "minimal", "minimal_with_context", "save_dot_with_context_except_mlp", "save_dot_except_mlp", "save_dot_except_mlpwi",
	"save_qkv_proj", "save_out_proj", "qkv_proj_offloaded", "minimal_offloaded", "custom"}

// settingTable is every setting of the blocks that have fixed keys.
var settingTable = []settingRow{
	{block: "pipeline", key: "microbatches", kind: count, min: 1, doc: "parts that the batch is split into; without it, stages x delay",
		acts: []string{"pipeline"}},
	{block: "pipeline", key: "repeats", kind: count, min: 1, max: maxLayers, doc: "how often a microbatch goes through all stages; without it, what the layers give",
		acts: []string{"pipeline"}},
	{block: "pipeline", key: "layers_per_stage", kind: count, min: 1, max: maxLayers, def: 1, doc: "layers that a stage runs each time",
		acts: []string{"pipeline"}},
	{block: "pipeline", key: "layers", kind: count, min: 1, max: maxLayers, doc: "layers inside the pipeline, without it all; the others run after it",
		acts: []string{"pipeline"}},
	{block: "pipeline", key: "delay", kind: count, min: 1, max: 2, def: 1, doc: "iterations from one stage to the next; 2 hides the transfer",
		acts: []string{"pipeline", "stages"}},
	{block: "pipeline", key: "gather", kind: word, words: []string{"per_iteration", "once", "per_repeat"}, def: "per_iteration",
		doc:  "where sharded weights are made whole",
		acts: []string{"layers", "gathered", "several rows"}},
	{block: "pipeline", key: "prefetch", kind: word, words: []string{"head", "ahead"}, def: "head", doc: "when a repeat's weights are gathered; goes with gather = per_repeat",
		acts: []string{"window", "layers", "gathered"}},
	{block: "pipeline", key: "gather_dtype", kind: word, words: []string{"none", "bf16", "f16", "f32"}, def: "none",
		doc:  "the element type that weights are rounded to before they are gathered, where theirs is wider",
		acts: []string{"layers", "wider", "rounded and gathered"}},
	{block: "pipeline", key: "reduce_dtype", kind: word, words: []string{"none", "bf16", "f16", "f32"}, def: "none",
		doc:  "the element type in which gradients of gathered weights are summed over iterations and scattered, where theirs is wider; none is their own",
		acts: []string{"layers", "gathered", "wider"}},
	{block: "pipeline", key: "rotate", kind: word, words: []string{"ppermute", "slice_pad"}, def: "ppermute", doc: "how activations move to the next stage",
		acts: []string{"pipeline", "stages"}},
	{block: "pipeline", key: "remat", kind: call, words: remats, def: "full", doc: "what the backward pass recomputes",
		acts: []string{"layers", "boundary", "names"}},
	{block: "pipeline", key: "save", kind: names, doc: "checkpoint names that are kept besides",
		acts: []string{"layers", "boundary", "names"}},
	{block: "pipeline", key: "offload", kind: names, doc: "checkpoint names that are kept in host memory",
		acts: []string{"layers", "boundary", "names"}},
	{block: "pipeline", key: "save_decoder_layer_input", kind: flag, def: true, doc: "whether each layer's input is kept",
		acts: []string{"layers", "boundary", "names"}},
	{block: "pipeline", key: "save_gathered", kind: flag, def: false, doc: "whether gathered weights are kept for the backward pass; goes with gather = per_repeat",
		acts: []string{"window", "layers", "gathered"}},
	{block: "pipeline", key: "checkpoint", kind: word, words: []string{"iteration", "layer", "repeat", "none"}, def: "iteration", doc: "what is recomputed as one",
		acts: []string{"layers", "boundary"}},
	{block: "pipeline", key: "checkpoint_place", kind: word, words: []string{"inside", "outside"}, def: "inside", doc: "whether each body of the loop is recomputed by itself, or the loop as a whole",
		acts: []string{"layers", "boundary", "loop to surround"}},
	{block: "pipeline", key: "scan_iterations", kind: flag, def: true, doc: "whether iterations are a loop, or one after the other in the program",
		acts: []string{"loop of a pipeline"}},
	{block: "pipeline", key: "scan_repeats", kind: flag, def: true, doc: "whether repeats are a loop",
		acts: []string{"loop of a pipeline", "loop of repeats"}},
	{block: "pipeline", key: "scan_layers", kind: flag, def: true, doc: "whether the layers of a stage, and of a stack, are a loop",
		acts: []string{"layers", "loop of layers"}},
	{block: "pipeline", key: "unroll", kind: count, min: 1, def: 1, doc: "iterations in one turn of the loop",
		acts: []string{"layers", "loop to unroll"}},
	{block: "pipeline", key: "skip_bubbles", kind: flag, def: false, doc: "whether stages without a microbatch do nothing, instead of computing what is dropped",
		acts: []string{"pipeline", "stages"}},
	{block: "pipeline", key: "combine", kind: count, min: 0, def: 0, doc: "bytes up to which collectives of one kind over the same devices become one",
		acts: []string{"devices"}},
	{block: "pipeline", key: "mode", kind: word, words: []string{"auto", "explicit"}, def: "auto", doc: "whether shardings that the program does not say are chosen, or must follow from those that it says",
		acts: []string{"devices"}},
	{block: "pipeline", key: "compat", kind: word, words: []string{"none", "maxtext_prefetch"}, def: "none",
		doc:  "a defect of others to be reproduced; goes with gather = per_repeat",
		acts: []string{"pipeline", "window", "gathered", "third stage"}},

	{block: "train", key: "optimizer", kind: call, words: []string{"sgd", "adam", "adamw"}, def: "", doc: "how parameters are updated"},
	{block: "train", key: "params", kind: call, words: []string{"custom"}, doc: "what becomes of parameters, by patterns of their paths",
		acts: []string{"optimizer"}},
	{block: "train", key: "clip_by_global_norm", kind: real, above: true, doc: "the largest norm of all gradients together",
		acts: []string{"optimizer"}},
	{block: "train", key: "steps", kind: count, min: 0, def: 1, doc: "how many updates; with 0 the program computes the loss alone",
		acts: []string{"optimizer"}},
	{block: "train", key: "seed", kind: count, min: 0, def: 0, doc: "of initial values, inputs and random numbers"},
	{block: "train", key: "data", kind: fileName, words: []string{"synthetic"}, def: "synthetic", doc: "synthetic, or an npz file with batches on a leading axis",
		acts: []string{"optimizer"}},
	{block: "train", key: "dtype", kind: word, words: []string{"f32", "f64", "bf16"}, def: "f32", doc: "in which gradients accumulate",
		acts: []string{"optimizer", "narrower sums"}},
	{block: "train", key: "gradient_accumulation", kind: count, min: 1, def: 1, doc: "batches per update",
		acts: []string{"optimizer"}},
	{block: "train", key: "reduce_gradients", kind: word, words: []string{"per_step", "per_batch"}, def: "per_step",
		doc:  "when devices combine the gradients of accumulated batches: once per step, or in each batch; goes with shard_optimizer_over_data = true and gradient_accumulation above 1",
		acts: []string{"optimizer", "accumulation", "sharded state", "data"}},
	{block: "train", key: "shard_optimizer_over_data", kind: flag, def: false, doc: "ZeRO-1: optimizer state cut along data too",
		acts: []string{"optimizer", "data"}},

	{block: "hardware", key: "preset", kind: word, words: presetNames(), def: "", doc: "a chip by name, for its memory", acts: []string{"no memory"}},
	{block: "hardware", key: "memory", kind: real, min: 0, above: true, doc: "bytes of a device; a program that takes more is warned of"},
}

func settingRowOf(block, key string) *settingRow {
	i := slices.IndexFunc(settingTable, func(r settingRow) bool { return r.block == block && r.key == key })
	if i < 0 {
		return nil
	}
	return &settingTable[i]
}

func settingKeys(block string) []string {
	var keys []string
	for _, r := range settingTable {
		if r.block == block {
			keys = append(keys, r.key)
		}
	}
	return keys
}

// most is the largest number that a setting may be.
func (row *settingRow) most() float64 {
	switch {
	case row.max > 0:
		return row.max
	case row.kind == count:
		return maxAxis
	}
	return math.MaxFloat64
}

// wanted is what a setting that is a number may be.
func (row *settingRow) wanted() string {
	switch {
	case row.max > 0 && row.max == row.min+1:
		return number(row.min).String() + " or " + number(row.max).String()
	case row.kind == count:
		return fmt.Sprintf("a whole number from %v to %d", row.min, int(row.most()))
	case row.above:
		return "a number above " + number(row.min).String()
	}
	return "a number of at least " + number(row.min).String()
}

// Field is what a value of row that is a word is looked up as.
func (row *settingRow) field() syntax.Field {
	switch {
	case row.key == "remat":
		return syntax.RematWord
	case row.key == "optimizer":
		return syntax.OptimizerWord
	case strings.HasSuffix(row.key, "dtype"):
		return syntax.TypeWord
	}
	return syntax.SettingWord
}

// keyHint is the hint for a key that a block does not have.
func keyHint(block, key string) string {
	for _, b := range []string{"pipeline", "train", "hardware"} {
		if b != block && settingRowOf(b, key) != nil {
			return key + " is a setting of " + b
		}
	}
	return syntax.Suggest(syntax.SettingWord, key, settingKeys(block))
}

// checkSettings checks each setting by its row.
func (p *program) checkSettings() {
	for _, b := range []string{"pipeline", "train", "hardware"} {
		for _, s := range p.ordered(b) {
			row := settingRowOf(b, s.Key)
			if row == nil {
				key := s.Span
				key.Len = len(s.Key)
				p.Report(key, keyHint(b, s.Key), errUnknownKey, b, s.Key)
				continue
			}
			p.checkSetting(row, s)
		}
	}
}

func (p *program) checkSetting(row *settingRow, s *syntax.Setting) {
	if s.Body != nil && row.kind != call {
		p.Report(s.Span, "", errSettingBody, row.block, s.Key)
		return
	}
	bad := func(want string) {
		p.badSetting = p.badSetting || row.kind == count && row.block == "pipeline"
		p.Report(s.Value.At(), "", errSettingValue, row.block, s.Key, want)
	}
	switch row.kind {
	case count, real:
		v, ok := numberOf(s.Value)
		if _, whole := number(v).whole(); !ok || v < row.min || v > row.most() || row.kind == count && !whole || math.IsInf(v, 0) {
			bad(row.wanted())
			return
		}
		if row.above && v == row.min {
			bad(row.wanted())
			return
		}
	case flag:
		if n, ok := s.Value.(*syntax.NameRef); !ok || n.Name != "true" && n.Name != "false" {
			bad("true or false")
			return
		}
	case word:
		n, ok := s.Value.(*syntax.NameRef)
		if !ok || !slices.Contains(row.words, n.Name) {
			hint := ""
			if ok {
				hint = syntax.Suggest(row.field(), n.Name, row.words)
			}
			p.Report(s.Value.At(), hint, errSettingValue, row.block, s.Key, alternatives(row.words))
			return
		}
	case names:
		if _, ok := namesIn(s.Value); !ok {
			bad("names in brackets, such as [query_proj, out_proj]")
			return
		}
	case fileName:
		_, isText := s.Value.(*syntax.TextLit)
		if n, ok := s.Value.(*syntax.NameRef); !isText && !(ok && (len(row.words) == 0 || slices.Contains(row.words, n.Name))) {
			bad(alternatives(append(slices.Clone(row.words), "a file name in quotes")))
			return
		}
	case call:
		p.checkCall(row, s)
	}
}

func alternatives(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

// customExample is what custom looks like, by setting.
var customExample = map[string]string{
	"remat":  "custom { query_proj = device, context = remat }",
	"params": `custom { "*norm*" = update(weight_decay: 0), "table" = frozen }`,
}

// checkCall checks word, word(args) and word { key = value }.
func (p *program) checkCall(row *settingRow, s *syntax.Setting) {
	fn, args := s.Value, []syntax.Arg(nil)
	if c, ok := s.Value.(*syntax.CallExpr); ok {
		fn, args = c.Fn, c.Args
	}
	n, ok := fn.(*syntax.NameRef)
	if !ok || !slices.Contains(row.words, n.Name) {
		hint := ""
		if ok {
			hint = syntax.Suggest(row.field(), n.Name, row.words)
		}
		p.Report(s.Value.At(), hint, errSettingValue, row.block, s.Key, alternatives(row.words))
		return
	}
	if s.Body != nil && n.Name != "custom" {
		p.Report(s.Span, "", errSettingBody, row.block, s.Key)
		return
	}
	if s.Body == nil && n.Name == "custom" {
		p.Report(s.Span, customExample[s.Key], errCustom, s.Key)
		return
	}
	if s.Key == "params" {
		p.checkParams(s)
		return
	}
	for _, e := range s.Body {
		how, ok := e.Value.(*syntax.NameRef)
		if !ok || !slices.Contains([]string{"device", "remat", "offload"}, how.Name) {
			p.Report(e.Value.At(), "", errCustomValue, e.Key, "device, remat or offload")
		}
	}
	p.checkTrainCall(s.Value.At(), n.Name, args)
}

// numberOf reads a number, with a sign or not.
func numberOf(x syntax.Expr) (float64, bool) {
	switch x := x.(type) {
	case *syntax.NumberLit:
		return x.Value, true
	case *syntax.UnaryExpr:
		if v, ok := numberOf(x.X); ok && x.Op == "-" {
			return -v, true
		}
	}
	return 0, false
}

// namesIn reads a name, a text, or a list of them.
func namesIn(x syntax.Expr) ([]string, bool) {
	switch x := x.(type) {
	case *syntax.NameRef:
		return []string{x.Name}, true
	case *syntax.TextLit:
		return []string{x.Text}, true
	case *syntax.ListLit:
		var out []string
		for _, it := range x.Items {
			one, ok := namesIn(it.Value)
			if !ok || len(one) != 1 || it.Name != nil || it.To != nil {
				return nil, false
			}
			out = append(out, one[0])
		}
		return out, true
	}
	return nil, false
}

// The getters return what was given, or the default. They are for settings
// that were checked.

func (p *program) num(block, key string) (v int, given bool) {
	if s := p.values[block][key]; s != nil {
		if f, ok := numberOf(s.Value); ok {
			return int(f), true
		}
	}
	v, _ = settingRowOf(block, key).def.(int)
	return v, false
}

func (p *program) word(block, key string) string {
	if s := p.values[block][key]; s != nil {
		switch v := s.Value.(type) {
		case *syntax.NameRef:
			return v.Name
		case *syntax.CallExpr:
			if n, ok := v.Fn.(*syntax.NameRef); ok {
				return n.Name
			}
		}
	}
	d, _ := settingRowOf(block, key).def.(string)
	return d
}

func (p *program) flag(block, key string) bool {
	if s := p.values[block][key]; s != nil {
		if n, ok := s.Value.(*syntax.NameRef); ok {
			return n.Name == "true"
		}
	}
	d, _ := settingRowOf(block, key).def.(bool)
	return d
}

func (p *program) names(block, key string) []string {
	if s := p.values[block][key]; s != nil {
		ns, _ := namesIn(s.Value)
		return ns
	}
	return nil
}

func (p *program) seed() int {
	v, _ := p.num("train", "seed")
	return v
}
