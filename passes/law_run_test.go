package passes

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/lang"
	"ppc/lower/stats"
	"ppc/runtime"
)

// lawReferences are the results of models, layers one after the other on the
// reference evaluator, by program text: many cases have one model.
type lawReferences struct {
	mu sync.Mutex
	of map[string]map[string][]float64
}

// load reads a program whose text is text.
func (c lawCase) load(text string, sequential bool) (*ir.Module, error) {
	opts := lang.Options{Sequential: sequential, Train: c.has("step", "train"), Grad: c.has("step", "grad")}
	opts.ReadFile = func(string) ([]byte, error) { return []byte(text), nil }
	p, err := lang.Load("law.pp", opts)
	if err != nil {
		return nil, err
	}
	return p.Module, nil
}

// results are those of the model of c, by name.
func (l *lawReferences) results(c lawCase) (map[string][]float64, error) {
	text := c.model()
	for _, same := range []string{", shard_optimizer_over_data = true", ", reduce_gradients = per_batch"} { // the numbers are
		text = strings.Replace(text, same, "", 1)
	}
	text = strings.Replace(text, "pipeline(block", "stack(block", 1)
	if c.is("gather_dtype") != "none" { // others: the weights of all layers are rounded
		text += fmt.Sprintf("\npipeline { gather_dtype = %s }\n", c.is("gather_dtype"))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if out := l.of[text]; out != nil {
		return out, nil
	}
	m, err := c.load(text, true)
	if err != nil {
		return nil, err
	}
	if err := Run(m, Config{After: "optimizer"}); err != nil {
		return nil, err
	}
	args := lawArgs(m)
	out, err := eval.Run(m, m.Main(), args, eval.Options{})
	if err != nil {
		return nil, err
	}
	if l.of == nil {
		l.of = make(map[string]map[string][]float64)
	}
	l.of[text] = byResult(m, out)
	return l.of[text], nil
}

// lawArgs is global arguments for a form of the program: waves that depend on the
// name; of a parameter with pp.rows, its rows.
func lawArgs(m *ir.Module) []*ir.Literal {
	var args []*ir.Literal
	for _, p := range m.Main().Params() {
		t, name := globalType(m, p.Type, p.Attrs), p.Attrs.Str("pp.name")
		vs := make([]float64, t.NumElements())
		if p.Attrs.Str("pp.kind") != "state" {
			h := fnv.New32a()
			h.Write([]byte(name))
			at := float64(h.Sum32() % 1000)
			first, held := lawRows(t, p.Attrs)
			for k := range vs[:held] {
				vs[k] = math.Sin(at + 1.7*float64(first+k))
				if p.Attrs.Str("pp.kind") == "param" {
					vs[k] *= 0.5
				}
			}
		}
		args = append(args, literalOf(t, vs))
	}
	return args
}

// lawRows is where the elements of a value of type t begin in the one that has its
// name, and how many there are: after them come those of layers that are not there.
func lawRows(t *ir.Type, attrs ir.Attrs) (first, held int) {
	rows, n := attrs.Ints("pp.rows"), t.NumElements()
	if rows == nil {
		return 0, n
	}
	row := 1
	for _, size := range t.Shape[t.Rank()-len(attrs.Get("pp.logical").(ir.Array)):] {
		row *= size
	}
	return rows[0] * row, (rows[1] - rows[0]) * row
}

// literalOf is a tensor of type t with the given numbers.
func literalOf(t *ir.Type, vs []float64) *ir.Literal {
	if !t.Elem.IsFloat() {
		return ir.SplatOf(t, 0)
	}
	return ir.Floats64(t, vs...)
}

// byResult are the results of main by name, rows of one parameter together.
// What replaces a parameter has its name.
func byResult(m *ir.Module, out []*ir.Literal) map[string][]float64 {
	all := make(map[string][]float64)
	for i, r := range m.Main().Results {
		name := r.Attrs.Str("pp.name")
		if r.Attrs.Has("pp.alias") {
			name = "new " + m.Main().Params()[r.Attrs.Int("pp.alias")].Attrs.Str("pp.name")
		}
		first, held := lawRows(out[i].Type, r.Attrs)
		if all[name] = append(all[name], make([]float64, max(0, first+held-len(all[name])))...); r.Attrs.Has("pp.rows") {
			copy(all[name][first:], numbersOf(out[i])[:held])
		} else {
			all[name] = numbersOf(out[i])
		}
	}
	return all
}

// lowered compiles c.
func (c lawCase) lowered() (*ir.Module, error) {
	m, err := c.load(c.text(), false)
	if err != nil {
		return nil, err
	}
	return m, Run(m, Config{Rebuild: func() (*ir.Module, error) { return c.load(c.text(), false) }})
}

// execute runs a lowered c on goroutine devices: its results by name, and what
// the devices did.
func (c lawCase) execute(m *ir.Module) (map[string][]float64, *runtime.Trace, error) {
	exe, err := runtime.Load(m)
	if err != nil {
		return nil, nil, err
	}
	trace := new(runtime.Trace)
	opts := append([]runtime.Option{runtime.WithTrace(trace)}, modes[c[factorAt("run")]]...)
	out, err := onShards(m, lawArgs(m), func(per [][]*ir.Literal) ([][]*ir.Literal, error) {
		return exe.Run(context.Background(), per, opts...)
	})
	if err != nil {
		return nil, nil, err
	}
	return byResult(m, out), trace, nil
}

// holds is what of the law c breaks, nil if nothing. A case that is not legal
// must be refused, for the reason that refused says.
func (l *lawReferences) holds(c lawCase) error {
	if reason := c.refused(); reason != "" {
		if _, err := c.lowered(); err == nil || !strings.Contains(err.Error(), reason) {
			return fmt.Errorf("got %v, want to be refused: %s", err, reason)
		}
		return nil
	}
	want, err := l.results(c)
	if err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	var problems []error
	var first map[string][]float64
	for _, c := range c.held() {
		m, err := c.lowered()
		if err != nil {
			return err
		}
		got, trace, err := c.execute(m)
		if err != nil {
			return err
		}
		problems = append(problems, differences(got, want)...)
		problems = append(problems, c.miscounted(m, trace))
		switch {
		case first == nil:
			first = got
		case c.is("layers") == "alike": // else how an activation is sharded, and so the order of some sums, may depend on the loop
			problems = append(problems, otherBits(got, first, c))
		}
	}
	return errors.Join(problems...)
}

// held is c and, where it has one, its twin, which gives the same bits: one with weights
// gathered at the other time; where no weights are gathered ahead, one with activations
// moved in the other way.
func (c lawCase) held() []lawCase {
	i := c.twinned()
	if i < 0 {
		return []lawCase{c}
	}
	twin := slices.Clone(c)
	twin[i] = 1 - c[i]
	return []lawCase{c, twin}
}

// twinned is the factor in which the twin of c differs, -1 where c has none.
func (c lawCase) twinned() int {
	switch {
	case c.has("gather", "per_repeat"):
		return prefetchAt
	case c.is("scan_layers") == "false" && c.is("form") == "pipeline":
		return rotateAt
	}
	return -1
}

// differences are the results that are further from what they should be than
// rounding explains.
func differences(got, want map[string][]float64) []error {
	var bad []error
	for _, name := range keysOf(want) {
		if d := far(got[name], want[name]); !(d <= 1e-11) {
			bad = append(bad, fmt.Errorf("%s differs by %.3g", name, d))
		}
	}
	if len(got) != len(want) {
		bad = append(bad, fmt.Errorf("there are results %v, want %v", keysOf(got), keysOf(want)))
	}
	return bad
}

// otherBits names a result that a case and its twin give not bit by bit.
func otherBits(got, want map[string][]float64, twin lawCase) error {
	var bad []string
	for _, name := range keysOf(want) {
		if !slices.EqualFunc(got[name], want[name], func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }) {
			bad = append(bad, name)
		}
	}
	if bad == nil {
		return nil
	}
	f := lawFactors[twin.twinned()]
	return fmt.Errorf("%s: other bits with %s = %s than with %s = %s", strings.Join(bad, ", "), f.name, f.values[0], f.name, f.values[1])
}

// miscounted says where the collectives that devices executed differ from those
// that stats counts in the program: every collective as often, with as many
// devices, so that each kind over each set of axes moves as many bytes. A device at
// the end of a chain of a permute that does not wrap receives nothing, which stats
// do not count. A stage that skips its bubbles executes as many fewer as it has
// bubbles, if its iterations are one loop: of iterations that are unrolled, or
// split into several loops within a repeat, each copy has its own number of
// bubbles, and a stage that lacks a layer has fewer of its collectives.
func (c lawCase) miscounted(m *ir.Module, trace *runtime.Trace) error {
	s, err := stats.Of(m)
	if err != nil {
		return err
	}
	counted, bytes := make(map[*ir.Op]*stats.Collective), make(map[string]int)
	for _, c := range s.Collectives {
		counted[c.Op] = c
		bytes[c.Kind+" over "+c.Axes] += c.Moved * int(c.Executions)
	}
	branched, skipped := inBranches(m), make(map[string]int)
	for _, did := range trace.Collectives {
		static := counted[did.Op]
		if static == nil {
			return fmt.Errorf("%s ran and was not counted", did.Op.Name())
		}
		delete(counted, did.Op)
		bytes[static.Kind+" over "+static.Axes] -= received(did) * int(static.Executions)
		for device, times := range did.Times {
			if branched[did.Op] && times <= int(static.Executions) {
				if int(static.Executions)%c.iterations() != 0 {
					continue // the branch is not of an iteration
				}
				skipped[fmt.Sprint(static.Kind, " over ", static.Axes, " on device ", device)] += c.iterations()*times - c.microbatches()*c.number("repeats")*int(static.Executions)
			} else if times != int(static.Executions) {
				return fmt.Errorf("device %d: %s of %s in %q ran %d times, was counted %d times", device, static.Kind, static.Name, static.Loop, times, static.Executions)
			}
		}
	}
	for _, op := range s.Collectives {
		if counted[op.Op] != nil && !branched[op.Op] {
			return fmt.Errorf("%s of %s in %q was counted %d times and did not run", op.Kind, op.Name, op.Loop, op.Executions)
		}
	}
	for _, title := range slices.Sorted(maps.Keys(bytes)) {
		if bytes[title] != 0 && len(counted) == 0 {
			return fmt.Errorf("%s: %d bytes were counted that did not move", title, bytes[title])
		}
	}
	oneLoop := c.is("unroll") == "1" && c.is("scan_iterations") == "true" && !c.has("gather", "per_repeat") && c.is("form") == "pipeline" && !c.padded() &&
		c.is("checkpoint_place") == "inside" && c.is("checkpoint") != "repeat" // else a loop runs again, with its bubbles
	for _, title := range slices.Sorted(maps.Keys(skipped)) {
		if skipped[title] != 0 && oneLoop {
			return fmt.Errorf("%s: ran %g times more than there is work for", title, float64(skipped[title])/float64(c.iterations()))
		}
	}
	return nil
}

// inBranches are the collectives that run where a condition holds.
func inBranches(m *ir.Module) map[*ir.Op]bool {
	found := make(map[*ir.Op]bool)
	m.Main().Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.If || op.Kind == ir.Case {
			for _, r := range op.Regions {
				r.Walk(func(op *ir.Op) {
					if op.Kind.Has(ir.Collective) {
						found[op] = true
					}
				})
			}
		}
	})
	return found
}

// received is the most bytes that a device receives in one execution: from every
// other device of its group one shard, for an all-reduce twice that, once to
// reduce-scatter and once to all-gather; for a permute the full operand.
func received(did runtime.Traced) int {
	size := func(vs []*ir.Value) (n int) {
		for _, v := range vs {
			n += v.Type.Bytes()
		}
		return n
	}
	n, full := slices.Max(did.Meets), max(size(did.Op.Operands), size(did.Op.Results))
	switch did.Op.Kind {
	case ir.CollectivePermute:
		return full * (n - 1)
	case ir.AllReduce:
		return 2 * (full - full/n)
	}
	return full - full/n
}
