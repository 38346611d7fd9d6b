package stats

import (
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower/flow"
)

// A Class is the purpose of a buffer.
type Class int

// The classes, in the order in which they are printed.
const (
	Parameters      Class = iota // arguments of the program, but for the optimizer's
	OptimizerState               // arguments that say so
	GatheredWeights              // all-gathers of a parameter or of a slice of one, and slices of those
	ResidualStacks               // what a loop saves for a later one
	GradientSums                 // what a loop over accumulated batches adds up
	LoopBuffers                  // other carries of loops
	Temporaries                  // all else
	numClasses
)

var classNames = [numClasses]string{"parameters", "optimizer state", "gathered weights", "residuals", "gradient sums", "loop buffers", "temporaries"}

func (c Class) String() string { return classNames[c] }

// ClassNamed is the class called name; false where there is none.
func ClassNamed(name string) (Class, bool) {
	i := slices.Index(classNames[:], name)
	return Class(i), i >= 0
}

// Memory is the bytes that one device holds at the moment when it holds most.
//
// It follows from liveness in the order of the program. Every value has a
// buffer from the op that makes it to the last that reads it, but for these:
//
//   - a constant belongs to the program and takes none;
//   - a reshape, a barrier, a tuple has the buffers of its operands;
//   - an elementwise op, an update or a scatter writes into the buffer of an
//     operand of the same size that it is the last to read;
//   - a carry of a loop has one buffer, which is that of its initial value if
//     nothing reads that later; one that never changes has that in any case;
//   - arguments live throughout. A result that an argument is donated to is in
//     the argument's memory as soon as that is not read any more.
//
// Nothing is fused and nothing is moved to another time: it is what the program
// takes as it runs here, and a yardstick for compilers that do both.
//
// What is copied to the memory of the host, and the rows of it that a loop
// stacks, is there and takes no memory of the device.
type Memory struct {
	Peak  int
	Host  int             // of host memory, at the most, not in Peak
	Parts [numClasses]int // of Peak
	At    string          // the op at the peak: its name, what it makes, its place
	Loop  string          // the innermost loop around it; "" for none

	seen int // the moment of the walk, counted from 1
}

// measure walks every function once, callees first: a call takes what its
// callee took at its own peak.
func measure(m *ir.Module, n *nests, order []*ir.Func) map[*ir.Func]Memory {
	calls := make(map[*ir.Func]Memory)
	for _, f := range slices.Backward(order) {
		l := newLiveness(m, n, f, calls)
		l.run()
		calls[f] = l.peak
	}
	return calls
}

// A buffer is the memory of one or more values.
type buffer struct {
	bytes int
	class Class
	holds int  // live values that have it
	kept  bool // an argument: never freed, never written but by what it is donated to
	host  bool // in host memory
	lent  bool // an argument's, while the loop that is donated it has buffers of its own
	of    *ir.Value
}

// A liveness is the walk over one function.
type liveness struct {
	m     *ir.Module
	n     *nests
	f     *ir.Func
	calls map[*ir.Func]Memory

	class   []Class             // by ID, of the buffers that are made for a value
	onHost  []bool              // by ID: the value is in host memory
	buffers [][]*buffer         // by ID, one for each leaf of the type
	owner   []*ir.Block         // by ID: where the value dies; nil for never
	last    []int               // by ID: the op of its owner that reads it last; -1 for none
	donor   map[ir.ID]*ir.Value // of a value that is returned: the parameter donated to it
	heirs   map[ir.ID][]*buffer // of a donated parameter: who moves in when it dies
	live    [numClasses]int
	host    int // live in host memory
	peak    Memory
	moments int                    // so far
	watch   func(m *Memory, n int) // hears of moment number n; may be nil
}

// count adds bytes to what is live in the memory that b is in, for b's class.
func (l *liveness) count(b *buffer, bytes int) {
	if b.host {
		l.host += bytes
		return
	}
	l.live[b.class] += bytes
}

func newLiveness(m *ir.Module, n *nests, f *ir.Func, calls map[*ir.Func]Memory) *liveness {
	ids := f.NumIDs()
	l := &liveness{m: m, n: n, f: f, calls: calls, class: classesOf(m, n, f), onHost: hosted(f), buffers: make([][]*buffer, ids), owner: make([]*ir.Block, ids),
		last: make([]int, ids), donor: make(map[ir.ID]*ir.Value), heirs: make(map[ir.ID][]*buffer)}
	return l
}

func (l *liveness) run() {
	main := l.f == l.m.Main()
	for _, p := range l.f.Params() {
		l.owner[p.ID] = l.f.Body
		for _, t := range leaves(p.Type) {
			b := &buffer{class: l.class[p.ID], holds: 1, kept: true, of: p}
			if main {
				b.bytes = t.Bytes()
			}
			l.count(b, b.bytes)
			l.buffers[p.ID] = append(l.buffers[p.ID], b)
		}
	}
	if main {
		l.donate()
	}
	l.see(nil, l.f.Body)
	l.block(l.f.Body)
}

// donate finds out which results take over the memory of which parameters: a
// parameter names the result (tf.aliasing_output), or the result the parameter
// (pp.alias).
func (l *liveness) donate() {
	params, results := l.f.Params(), l.f.Return().Operands
	aliases := make(map[int][]int) // by parameter: results, in order
	for k, r := range l.f.Results {
		if r.Attrs.Has(ir.KeyAlias) {
			i := r.Attrs.Int(ir.KeyAlias)
			aliases[i] = append(aliases[i], k)
		}
	}
	for i, p := range params {
		if p.Attrs.Has("tf.aliasing_output") {
			l.give(p, results, p.Attrs.Int("tf.aliasing_output"))
		}
		for _, k := range aliases[i] {
			l.give(p, results, k)
		}
	}
}

func (l *liveness) give(p *ir.Value, results []*ir.Value, k int) {
	if k < 0 || k >= len(results) {
		return
	}
	r := viewed(results[k])
	if r.Def != nil && len(l.buffers[p.ID]) == 1 && BytesOf(r.Type) == BytesOf(p.Type) {
		l.donor[r.ID] = p
	}
}

// see compares what is live with the most that has been, and keeps op, in b,
// if this is more.
func (l *liveness) see(op *ir.Op, b *ir.Block) { l.seeWith(op, b, Memory{}) }

// seeWith is see where a call takes more inside.
func (l *liveness) seeWith(op *ir.Op, b *ir.Block, inside Memory) {
	l.peak.Host = max(l.peak.Host, l.host+inside.Host)
	parts, all := l.live, 0
	for c := range parts {
		parts[c] += inside.Parts[c]
		all += parts[c]
	}
	l.moments++
	if all <= l.peak.Peak && l.watch == nil {
		return
	}
	m := &Memory{Peak: all, Host: l.peak.Host, Parts: parts, At: inside.At, Loop: inside.Loop}
	if op != nil && m.At == "" {
		m.At, m.Loop = describe(op), l.n.at[b]
	}
	if l.watch != nil {
		l.watch(m, l.moments)
	}
	if all > l.peak.Peak {
		l.peak = *m
		l.peak.seen = l.moments
	}
}

// describe names an op: dot_general (q), llama.pp:16:8.
func describe(op *ir.Op) string {
	text := strings.TrimPrefix(op.Name(), "stablehlo.")
	if name := NameOf(op); name != "" {
		text += " (" + name + ")"
	}
	if op.Origin != nil && op.Origin.Pos.Line > 0 {
		text += ", " + op.Origin.Pos.String()
	}
	return text
}

// block walks b. Values that it defines, and arguments that were given to it
// (own), die where they are read last.
func (l *liveness) block(b *ir.Block) {
	l.ends(b)
	for _, a := range b.Args {
		if l.owner[a.ID] == b && l.last[a.ID] < 0 {
			l.die(a)
		}
	}
	for i, op := range b.Ops {
		l.op(op, b, i)
		for _, v := range reads(op) {
			if l.dies(v, b, i) {
				l.owner[v.ID] = nil
				l.die(v)
			}
		}
		for _, v := range op.Results {
			if l.last[v.ID] < 0 {
				l.die(v)
			}
		}
	}
}

// ends finds out where the values that b defines are read last.
func (l *liveness) ends(b *ir.Block) {
	for _, a := range b.Args {
		l.last[a.ID] = -1
	}
	for _, op := range b.Ops {
		for _, v := range op.Results {
			l.owner[v.ID], l.last[v.ID] = b, -1
		}
	}
	for i, op := range b.Ops {
		for _, v := range reads(op) {
			if l.owner[v.ID] == b {
				l.last[v.ID] = i
			}
		}
	}
}

// reads are the values that op uses, regions included.
func reads(op *ir.Op) []*ir.Value {
	if len(op.Regions) == 0 {
		return op.Operands
	}
	return append(slices.Clip(op.Operands), op.Captures()...)
}

func (l *liveness) dies(v *ir.Value, b *ir.Block, i int) bool {
	return l.owner[v.ID] == b && l.last[v.ID] == i
}

// die ends the life of v: buffers that no other value has are free.
func (l *liveness) die(v *ir.Value) {
	for _, b := range l.buffers[v.ID] {
		if b.holds--; b.holds == 0 && !b.kept {
			l.count(b, -b.bytes)
		}
	}
	for _, b := range l.heirs[v.ID] {
		l.count(b, -b.bytes)
		b.bytes = 0
	}
}

// share gives v the buffers bs, which others have too.
func (l *liveness) share(v *ir.Value, bs []*buffer) {
	for _, b := range bs {
		b.holds++
	}
	l.buffers[v.ID] = bs
}

// make gives v buffers of its own.
func (l *liveness) make(v *ir.Value) {
	var bs []*buffer
	for _, t := range leaves(v.Type) {
		b := &buffer{bytes: t.Bytes(), class: l.class[v.ID], holds: 1, host: l.onHost[v.ID], of: v}
		l.count(b, b.bytes)
		bs = append(bs, b)
	}
	l.buffers[v.ID] = bs
	if p := l.donor[v.ID]; p != nil {
		l.heirs[p.ID] = append(l.heirs[p.ID], bs...)
	}
}

// take gives v the buffer of another value, which is not read any more.
func (l *liveness) take(v *ir.Value, b *buffer) {
	if !b.kept {
		l.count(b, -b.bytes)
		b.class = l.class[v.ID]
		if v.Name != "" || v.Def.Kind.Has(ir.Elementwise) { // else it is the same value, updated
			b.of = v
		}
		l.count(b, b.bytes)
	}
	l.share(v, []*buffer{b})
}

// op makes the results of op, number i of b.
func (l *liveness) op(op *ir.Op, b *ir.Block, i int) {
	switch {
	case op.Kind == ir.Constant:
		l.buffers[op.Result().ID] = []*buffer{{holds: 1}}
	case view(op):
		l.view(op)
	case op.Kind == ir.While:
		l.loop(op, b, i)
	case op.Kind == ir.Case, op.Kind == ir.If:
		for _, r := range op.Regions {
			l.block(r)
		}
		l.results(op, b, i)
	case op.Kind == ir.Call:
		if f := calleeOf(l.m, op); f != nil {
			l.seeWith(op, b, l.calls[f])
		}
		l.results(op, b, i)
	default:
		l.results(op, b, i)
	}
}

func (l *liveness) results(op *ir.Op, b *ir.Block, i int) {
	for k, v := range op.Results {
		if taken := l.inPlace(op, k, b, i); taken != nil {
			l.take(v, taken)
		} else {
			l.make(v)
		}
	}
	l.see(op, b)
}

// inPlace is the buffer that result k of op is written into: that of an operand
// that dies, or of the parameter donated to it; nil for a new one.
func (l *liveness) inPlace(op *ir.Op, k int, b *ir.Block, i int) *buffer {
	v := op.Results[k]
	p := l.donor[v.ID]
	if p != nil && l.last[p.ID] < i {
		return l.buffers[p.ID][0]
	}
	for _, x := range overwritten(op, k) {
		bs := l.buffers[x.ID]
		if len(bs) != 1 || !l.dies(x, b, i) || x.Type.NumElements() != v.Type.NumElements() || x.Type.Elem.Size() != v.Type.Elem.Size() {
			continue
		}
		if x == p || bs[0].holds == 1 && bs[0].host == l.onHost[v.ID] && !bs[0].kept && bs[0].bytes == BytesOf(v.Type) {
			return bs[0]
		}
	}
	return nil
}

// overwritten are the operands in whose buffer op may write result k.
func overwritten(op *ir.Op, k int) []*ir.Value {
	switch {
	case op.Kind.Has(ir.Elementwise):
		return op.Operands
	case op.Kind.Has(ir.InPlace):
		return op.Operands[k : k+1]
	}
	return nil
}

// view reports whether the results of op are the bytes of its operands.
func view(op *ir.Op) bool {
	return op.Kind.Has(ir.View) || op.Kind == ir.Convert && op.Operands[0].Type.Equal(op.Results[0].Type)
}

// viewed is what v is made of by views of one value each.
func viewed(v *ir.Value) *ir.Value {
	for v.Def != nil && view(v.Def) && len(v.Def.Operands) == len(v.Def.Results) {
		v = v.Def.Operands[v.Index]
	}
	return v
}

func (l *liveness) view(op *ir.Op) {
	switch op.Kind {
	case ir.TupleOp:
		var bs []*buffer
		for _, v := range op.Operands {
			bs = append(bs, l.buffers[v.ID]...)
		}
		l.share(op.Result(), bs)
	case ir.GetTupleElement:
		x, at := op.Operands[0], 0
		for _, e := range x.Type.Elems[:op.Int("index")] {
			at += len(leaves(e))
		}
		l.share(op.Result(), l.buffers[x.ID][at:at+len(leaves(op.Result().Type))])
	default:
		for i, v := range op.Results {
			l.share(v, l.buffers[op.Operands[i].ID])
		}
	}
}

// loop walks condition and body once, on buffers of their own in place of those
// that the initial values hand over: every iteration takes the same. The body's
// results have the buffers of its arguments, so the loop's results have them too.
func (l *liveness) loop(op *ir.Op, b *ir.Block, i int) {
	cond, body := op.Regions[0], op.Regions[1]
	captured := op.Captures()
	over := func(k int) bool { // the loop is the last to read initial value k, and as this carry only
		v := op.Operands[k]
		return l.dies(v, b, i) && !slices.Contains(captured, v) && !slices.Contains(op.Operands[:k], v)
	}
	donated := make([]*buffer, len(op.Operands)) // by carry: the parameter's memory that it is in
	for k, v := range op.Operands {
		a, p := body.Args[k], l.donor[op.Results[k].ID]
		switch {
		case flow.Invariant(op, k):
			l.share(a, l.buffers[v.ID])
		case p != nil && (l.last[p.ID] < i || p == v && over(k)):
			donated[k] = l.buffers[p.ID][0]
			l.count(donated[k], -donated[k].bytes)
			donated[k].lent = true
			l.make(a)
		default:
			if over(k) {
				l.owner[v.ID] = nil
				l.die(v)
			}
			l.make(a)
		}
		l.buffers[cond.Args[k].ID] = l.buffers[a.ID]
		l.owner[a.ID] = body
	}
	l.see(op, b)
	l.block(cond)
	l.block(body)
	for k, v := range op.Results {
		switch {
		case flow.Invariant(op, k):
			l.share(v, l.buffers[op.Operands[k].ID])
		case donated[k] != nil:
			l.count(donated[k], donated[k].bytes)
			donated[k].lent = false
			l.share(v, donated[k:k+1])
		default:
			l.make(v)
		}
	}
	l.see(op, b)
}
