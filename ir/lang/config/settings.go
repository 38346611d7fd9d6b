package config

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
)

// MaxLayers bounds how many layers are stacked.
const MaxLayers = 1 << 20

// A SettingKind is what a setting's value may be.
type SettingKind uint8

const (
	Count    SettingKind = iota // a whole number, at least min
	Real                        // a number, at least min
	Rate                        // a learning rate: a number, a schedule, or a number for each step
	Flag                        // true or false
	Word                        // one of words
	Names                       // [a, b] of names, or one name
	FileName                    // a text, or one of words
	call                        // one of words, with arguments in parentheses or braces
)

// A SettingRow is what the language knows of one setting.
type SettingRow struct {
	Block, Key string
	Kind       SettingKind
	Min, Max   float64  // of a number; no max is the largest size of an axis
	Above      bool     // of real: greater than min
	Words      []string // of word, file and call
	Def        any      // what holds where nothing is given; nil is derived
	Doc        string
	Acts       []string // the conditions under which it acts where it is other than def, in the order in which they are looked at
}

// Remats are the rematerialisation policies.
var Remats = []string{"full", "none", "minimal", "minimal_with_context", "save_dot_with_context_except_mlp", "save_dot_except_mlp", "save_dot_except_mlpwi",
	"save_qkv_proj", "save_out_proj", "qkv_proj_offloaded", "minimal_offloaded", "custom"}

// SettingTable is every setting of the blocks that have fixed keys.
var SettingTable = []SettingRow{
	{Block: "pipeline", Key: "microbatches", Kind: Count, Min: 1, Doc: "parts that the batch is split into; without it, stages x delay",
		Acts: []string{"pipeline"}},
	{Block: "pipeline", Key: "repeats", Kind: Count, Min: 1, Max: MaxLayers, Doc: "how often a microbatch goes through all stages; without it, what the layers give",
		Acts: []string{"pipeline"}},
	{Block: "pipeline", Key: "layers_per_stage", Kind: Count, Min: 1, Max: MaxLayers, Def: 1, Doc: "layers that a stage runs each time",
		Acts: []string{"pipeline"}},
	{Block: "pipeline", Key: "layers", Kind: Count, Min: 1, Max: MaxLayers, Doc: "layers inside the pipeline, without it all; the others run after it",
		Acts: []string{"pipeline"}},
	{Block: "pipeline", Key: "pad_layers", Kind: Flag, Def: false, Doc: "whether the last stages may have fewer layers than the others, where these do not divide; they hand on what they get",
		Acts: []string{"pipeline", "uneven"}},
	{Block: "pipeline", Key: "delay", Kind: Count, Min: 1, Max: 2, Def: 1, Doc: "iterations from one stage to the next; 2 hides the transfer",
		Acts: []string{"pipeline", "stages"}},
	{Block: "pipeline", Key: "batch_split", Kind: Count, Min: 1, Def: 1, Doc: "parts of a microbatch that a layer computes side by side, so that the collectives of one overlap with the products of another",
		Acts: []string{"pipeline"}},
	{Block: "pipeline", Key: "gather", Kind: Word, Words: []string{"per_iteration", "once", "per_repeat"}, Def: "per_iteration",
		Doc:  "where sharded weights are all-gathered",
		Acts: []string{"layers", "gathered", "several rows"}},
	{Block: "pipeline", Key: "prefetch", Kind: Word, Words: []string{"head", "ahead"}, Def: "head", Doc: "when a repeat's weights are gathered; goes with gather = per_repeat",
		Acts: []string{"window", "layers", "gathered"}},
	{Block: "pipeline", Key: "gather_dtype", Kind: Word, Words: []string{"none", "bf16", "f16", "f32"}, Def: "none",
		Doc:  "the element type that weights are rounded to before they are gathered, where theirs is wider",
		Acts: []string{"layers", "wider", "rounded and gathered"}},
	{Block: "pipeline", Key: "reduce_dtype", Kind: Word, Words: []string{"none", "bf16", "f16", "f32"}, Def: "none",
		Doc:  "the element type in which gradients of gathered weights are summed over iterations and scattered, where theirs is wider; none is their own",
		Acts: []string{"layers", "gathered", "wider"}},
	{Block: "pipeline", Key: "rotate", Kind: Word, Words: []string{"ppermute", "slice_pad"}, Def: "ppermute", Doc: "how activations move to the next stage",
		Acts: []string{"pipeline", "stages"}},
	{Block: "pipeline", Key: "remat", Kind: call, Words: Remats, Def: "full", Doc: "what the backward pass recomputes",
		Acts: []string{"layers", "boundary", "names"}},
	{Block: "pipeline", Key: "save", Kind: Names, Doc: "checkpoint names that are kept besides",
		Acts: []string{"layers", "boundary", "names"}},
	{Block: "pipeline", Key: "offload", Kind: Names, Doc: "checkpoint names that are kept in host memory",
		Acts: []string{"layers", "boundary", "names"}},
	{Block: "pipeline", Key: "save_decoder_layer_input", Kind: Flag, Def: true, Doc: "whether each layer's input is kept",
		Acts: []string{"layers", "boundary", "names"}},
	{Block: "pipeline", Key: "save_gathered", Kind: Flag, Def: false, Doc: "whether gathered weights are kept for the backward pass; goes with gather = per_repeat",
		Acts: []string{"window", "layers", "gathered"}},
	{Block: "pipeline", Key: "checkpoint", Kind: Word, Words: []string{"iteration", "layer", "repeat", "none"}, Def: "iteration", Doc: "what is recomputed as one",
		Acts: []string{"layers", "boundary", "repeats"}},
	{Block: "pipeline", Key: "checkpoint_place", Kind: Word, Words: []string{"inside", "outside"}, Def: "inside", Doc: "whether each body of the loop is recomputed by itself, or the loop around them",
		Acts: []string{"layers", "boundary", "loop to surround"}},
	{Block: "pipeline", Key: "scan_iterations", Kind: Flag, Def: true, Doc: "whether iterations are a loop, or one after the other in the program",
		Acts: []string{"loop of a pipeline"}},
	{Block: "pipeline", Key: "scan_repeats", Kind: Flag, Def: true, Doc: "whether repeats are a loop",
		Acts: []string{"loop of a pipeline", "loop of repeats"}},
	{Block: "pipeline", Key: "scan_layers", Kind: Flag, Def: true, Doc: "whether the layers of a stage, and of a stack, are a loop",
		Acts: []string{"layers", "loop of layers"}},
	{Block: "pipeline", Key: "unroll", Kind: Count, Min: 1, Def: 1, Doc: "iterations in one turn of the loop",
		Acts: []string{"layers", "loop to unroll"}},
	{Block: "pipeline", Key: "skip_bubbles", Kind: Flag, Def: false, Doc: "whether stages without a microbatch do nothing, instead of computing what is dropped",
		Acts: []string{"pipeline", "stages"}},
	{Block: "pipeline", Key: "combine", Kind: Count, Min: 0, Def: 0, Doc: "bytes up to which collectives of one kind over the same devices become one",
		Acts: []string{"devices"}},
	{Block: "pipeline", Key: "mode", Kind: Word, Words: []string{"auto", "explicit"}, Def: "auto", Doc: "whether shardings that the program does not say are chosen, or must follow from those that it says",
		Acts: []string{"devices"}},
	{Block: "pipeline", Key: "compat", Kind: Word, Words: []string{"none", "maxtext_prefetch"}, Def: "none",
		Doc:  "a defect of others to be reproduced; goes with gather = per_repeat",
		Acts: []string{"pipeline", "window", "gathered", "third stage"}},

	{Block: "train", Key: "optimizer", Kind: call, Words: []string{"sgd", "adam", "adamw"}, Def: "", Doc: "how parameters are updated"},
	{Block: "train", Key: "params", Kind: call, Words: []string{"custom"}, Doc: "what becomes of parameters, by patterns of their paths",
		Acts: []string{"optimizer"}},
	{Block: "train", Key: "clip_by_global_norm", Kind: Real, Above: true, Doc: "the largest norm of all gradients together",
		Acts: []string{"optimizer"}},
	{Block: "train", Key: "steps", Kind: Count, Min: 0, Def: 1, Doc: "how many updates; with 0 the program computes the loss alone",
		Acts: []string{"optimizer"}},
	{Block: "train", Key: "seed", Kind: Count, Min: 0, Def: 0, Doc: "of initial values, inputs and random numbers"},
	{Block: "train", Key: "data", Kind: FileName, Words: []string{"synthetic"}, Def: "synthetic", Doc: "synthetic, or a file: batches on a leading axis, or a stream of tokens",
		Acts: []string{"optimizer"}},
	{Block: "train", Key: "dtype", Kind: Word, Words: []string{"f32", "f64", "bf16"}, Def: "f32", Doc: "in which gradients accumulate",
		Acts: []string{"optimizer", "narrower sums"}},
	{Block: "train", Key: "gradient_accumulation", Kind: Count, Min: 1, Def: 1, Doc: "batches per update",
		Acts: []string{"optimizer"}},
	{Block: "train", Key: "reduce_gradients", Kind: Word, Words: []string{"per_step", "per_batch"}, Def: "per_step",
		Doc:  "when devices combine the gradients of accumulated batches: once per step, or in each batch; goes with shard_optimizer_over_data = true and gradient_accumulation above 1",
		Acts: []string{"optimizer", "accumulation", "sharded state", "data"}},
	{Block: "train", Key: "shard_optimizer_over_data", Kind: Flag, Def: false, Doc: "ZeRO-1: optimizer state sharded along data too",
		Acts: []string{"optimizer", "data"}},

	{Block: "hardware", Key: "preset", Kind: Word, Words: presetNames(), Def: "", Doc: "a chip by name, for its memory", Acts: []string{"no memory"}},
	{Block: "hardware", Key: "memory", Kind: Real, Min: 0, Above: true, Doc: "bytes of a device; a program that takes more is warned of"},
}

// SettingRowOf is the row of a setting, nil if there is none.
func SettingRowOf(block, key string) *SettingRow {
	i := slices.IndexFunc(SettingTable, func(r SettingRow) bool { return r.Block == block && r.Key == key })
	if i < 0 {
		return nil
	}
	return &SettingTable[i]
}

// SettingKeys are the settings of a block, in order.
func SettingKeys(block string) []string {
	var keys []string
	for _, r := range SettingTable {
		if r.Block == block {
			keys = append(keys, r.Key)
		}
	}
	return keys
}

// most is the largest number that a setting may be.
func (row *SettingRow) most() float64 {
	switch {
	case row.Max > 0:
		return row.Max
	case row.Kind == Count:
		return MaxAxis
	}
	return math.MaxFloat64
}

// wanted is what a setting that is a number may be.
func (row *SettingRow) wanted() string {
	switch {
	case row.Max > 0 && row.Max == row.Min+1:
		return value.Number(row.Min).String() + " or " + value.Number(row.Max).String()
	case row.Kind == Count:
		return fmt.Sprintf("a whole number from %v to %d", row.Min, int(row.most()))
	case row.Above:
		return "a number above " + value.Number(row.Min).String()
	}
	return "a number of at least " + value.Number(row.Min).String()
}

// Field is what a value of row that is a word is looked up as.
func (row *SettingRow) field() syntax.Field {
	switch {
	case row.Key == "remat":
		return syntax.RematWord
	case row.Key == "optimizer":
		return syntax.OptimizerWord
	case strings.HasSuffix(row.Key, "dtype"):
		return syntax.TypeWord
	}
	return syntax.SettingWord
}

// keyHint is the hint for a key that a block does not have.
func keyHint(block, key string) string {
	for _, b := range []string{"pipeline", "train", "hardware"} {
		if b != block && SettingRowOf(b, key) != nil {
			return key + " is a setting of " + b
		}
	}
	if key == layerInput || key == iterationInput || slices.Contains(Policies["minimal_with_context"], key) && syntax.Theirs(syntax.SettingWord, key) == nil {
		return "pipeline { remat = custom { " + key + " = … } }"
	}
	return syntax.Suggest(syntax.SettingWord, key, SettingKeys(block))
}

// checkSettings checks each setting by its row.
func (p *Program) checkSettings() {
	for _, b := range []string{"pipeline", "train", "hardware"} {
		for _, s := range p.ordered(b) {
			row := SettingRowOf(b, s.Key)
			if row == nil {
				key := s.Span
				key.Len = len(s.Key)
				p.Report(key, keyHint(b, s.Key), syntax.ErrUnknownKey, b, s.Key)
				continue
			}
			p.checkSetting(row, s)
		}
	}
}

func (p *Program) checkSetting(row *SettingRow, s *syntax.Setting) {
	if s.Body != nil && row.Kind != call {
		p.Report(s.Span, "", syntax.ErrSettingBody, row.Block, s.Key)
		return
	}
	if n, ok := s.Value.(*syntax.NumberLit); ok && math.IsInf(n.Value, 0) { // which has been said of it
		p.BadSetting = true
		return
	}
	bad := func(want string) {
		p.BadSetting = p.BadSetting || row.Kind == Count && row.Block == "pipeline"
		p.Report(s.Value.At(), "", syntax.ErrSettingValue, row.Block, s.Key, want)
	}
	switch row.Kind {
	case Count, Real:
		v, ok := NumberOf(s.Value)
		if _, whole := value.Number(v).Whole(); !ok || v < row.Min || v > row.most() || row.Kind == Count && !whole || math.IsInf(v, 0) {
			bad(row.wanted())
			return
		}
		if row.Above && v == row.Min {
			bad(row.wanted())
			return
		}
	case Flag:
		if n, ok := s.Value.(*syntax.NameRef); !ok || n.Name != "true" && n.Name != "false" {
			bad("true or false")
			return
		}
	case Word:
		n, ok := s.Value.(*syntax.NameRef)
		if !ok || !slices.Contains(row.Words, n.Name) {
			hint := ""
			if ok {
				hint = syntax.Suggest(row.field(), n.Name, row.Words)
			}
			p.Report(s.Value.At(), hint, syntax.ErrSettingValue, row.Block, s.Key, alternatives(row.Words))
			return
		}
	case Names:
		if _, ok := namesIn(s.Value); !ok {
			bad("names in brackets, such as [query_proj, out_proj]")
			return
		}
	case FileName:
		_, isText := s.Value.(*syntax.TextLit)
		if n, ok := s.Value.(*syntax.NameRef); !isText && !(ok && (len(row.Words) == 0 || slices.Contains(row.Words, n.Name))) {
			bad(alternatives(append(slices.Clone(row.Words), "a file name in quotes")))
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
func (p *Program) checkCall(row *SettingRow, s *syntax.Setting) {
	fn, args := s.Value, []syntax.Arg(nil)
	if c, ok := s.Value.(*syntax.CallExpr); ok {
		fn, args = c.Fn, c.Args
	}
	n, ok := fn.(*syntax.NameRef)
	if !ok || !slices.Contains(row.Words, n.Name) {
		hint := ""
		if ok {
			hint = syntax.Suggest(row.field(), n.Name, row.Words)
		}
		p.Report(s.Value.At(), hint, syntax.ErrSettingValue, row.Block, s.Key, alternatives(row.Words))
		return
	}
	if s.Body != nil && n.Name != "custom" {
		p.Report(s.Span, "", syntax.ErrSettingBody, row.Block, s.Key)
		return
	}
	if s.Body == nil && n.Name == "custom" {
		p.Report(s.Span, customExample[s.Key], syntax.ErrCustom, s.Key)
		return
	}
	if s.Key == "params" {
		p.checkParams(s)
		return
	}
	for _, e := range s.Body {
		how, ok := e.Value.(*syntax.NameRef)
		if !ok || !slices.Contains([]string{"device", "remat", "offload"}, how.Name) {
			p.Report(e.Value.At(), "", syntax.ErrCustomValue, e.Key, "device, remat or offload")
		}
	}
	p.checkTrainCall(s.Value.At(), n.Name, args)
}

// NumberOf reads a number, with a sign or not.
func NumberOf(x syntax.Expr) (float64, bool) {
	switch x := x.(type) {
	case *syntax.NumberLit:
		return x.Value, true
	case *syntax.UnaryExpr:
		if v, ok := NumberOf(x.X); ok && x.Op == "-" {
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

// Num is the value of a setting that is a number.
func (p *Program) Num(block, key string) (v int, given bool) {
	if s := p.Values[block][key]; s != nil {
		if f, ok := NumberOf(s.Value); ok {
			return int(f), true
		}
	}
	v, _ = SettingRowOf(block, key).Def.(int)
	return v, false
}

// Word is the value of a setting that is a word.
func (p *Program) Word(block, key string) string {
	if s := p.Values[block][key]; s != nil {
		switch v := s.Value.(type) {
		case *syntax.NameRef:
			return v.Name
		case *syntax.CallExpr:
			if n, ok := v.Fn.(*syntax.NameRef); ok {
				return n.Name
			}
		}
	}
	d, _ := SettingRowOf(block, key).Def.(string)
	return d
}

func (p *Program) Flag(block, key string) bool {
	if s := p.Values[block][key]; s != nil {
		if n, ok := s.Value.(*syntax.NameRef); ok {
			return n.Name == "true"
		}
	}
	d, _ := SettingRowOf(block, key).Def.(bool)
	return d
}

func (p *Program) names(block, key string) []string {
	if s := p.Values[block][key]; s != nil {
		ns, _ := namesIn(s.Value)
		return ns
	}
	return nil
}

// Seed is that of initial values and random numbers.
func (p *Program) Seed() int {
	v, _ := p.Num("train", "seed")
	return v
}

// Matches reports whether name is pattern, in which * is any run of characters.
func Matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	last := len(parts) - 1
	if !strings.HasPrefix(name, parts[0]) || len(name) < len(parts[0])+len(parts[last]) || !strings.HasSuffix(name, parts[last]) {
		return false
	}
	name = name[len(parts[0]) : len(name)-len(parts[last])]
	for _, part := range parts[1:last] { // the first place is as good as any
		_, after, ok := strings.Cut(name, part)
		if !ok {
			return false
		}
		name = after
	}
	return true
}
