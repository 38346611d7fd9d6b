package combine

import (
	"math"
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
)

// Combine replaces several collectives by one:
//
//   - those whose results are added up become one of the sum of their operands
//     (sums.go);
//   - collectives of one block with the same kind, groups, element type and
//     reducer, none of which depends on another, become one with as many operands:
//     scalars always, others as long as operands or results together take no more
//     bytes than the module's attribute pp.combine;
//   - collective permutes whose source-target pairs have no source and no target in
//     common become one with all of the pairs (pairs.go).
//
// The combined op takes the place of the last of the originals. Ops before it that
// depend on an original move behind it; nothing leaves its block. Collectives are
// not combined where that would keep more than pp.combine bytes, or some scalars,
// more live at any op of the block, so that a program with loops d deep has a peak
// at most (d+1)*pp.combine higher.
func Combine(_ *pass.Context, m *ir.Module) error {
	for _, f := range m.Funcs {
		if f.Body == nil || !communicates(f.Body) {
			continue
		}
		j := &joiner{m: m, f: f, limit: m.Attrs.Int(ir.KeyCombine), uses: f.Uses()}
		j.block(f.Body)
	}
	return nil
}

// communicates reports whether b has a collective.
func communicates(b *ir.Block) bool {
	return slices.ContainsFunc(b.Ops, func(op *ir.Op) bool {
		return op.Kind.Has(ir.Collective) || slices.ContainsFunc(op.Regions, communicates)
	})
}

// A joiner combines the collectives of a function.
type joiner struct {
	m     *ir.Module
	f     *ir.Func
	limit int
	uses  []int // by ID, before anything changed

	// Of the block at hand, from some op on.
	line  []*inLine // from the end of the block on: what is next is last
	at    *chains
	bytes int   // that are live
	size  []int // by ID, bytes of a value defined in the block; 0 for captured ones
	left  []int // by ID, the number of reads that are still to come

	walks int
	after []int // by ID, the last walk in which the value depends on the collectives being joined
}

// An inLine is an op of a block whose order is being changed.
type inLine struct {
	op    *ir.Op
	gives []*ir.Value
	reads []*ir.Value // in its regions too
	most  int         // bytes that may be live beside it
	key   string      // ops of the same key may be joined
	done  bool        // no other op can join it
	at    int         // in the line
	gone  bool        // from the line
	chainPlace
}

func (j *joiner) block(b *ir.Block) {
	for _, op := range b.Ops {
		for _, r := range op.Regions {
			j.block(r)
		}
	}
	j.sums(b)
	var line []*inLine
	for _, how := range []joining{j.alike(), j.disjoint()} {
		if !slices.ContainsFunc(b.Ops, func(op *ir.Op) bool { return how.key(op) != "" }) {
			continue
		}
		if line == nil {
			for _, op := range b.Ops {
				line = append(line, j.newInLine(op))
			}
			j.begin(b, line)
			for _, x := range line {
				x.most = j.run(x) + max(j.limit, facts.SmallBytes)
			}
		}
		line = j.joinAll(b, line, how)
		b.Ops = b.Ops[:0]
		for _, x := range line {
			b.Ops = append(b.Ops, x.op)
		}
	}
}

// joinAll joins the collectives of line, the ops of b, and returns what they are then.
func (j *joiner) joinAll(b *ir.Block, line []*inLine, how joining) (out []*inLine) {
	j.begin(b, line)
	j.line = j.line[:0]
	for _, x := range slices.Backward(line) {
		x.key, x.done, x.gone = how.key(x.op), false, false
		j.push(x)
	}
	j.at = newChains(j.line, j.f.NumIDs())
	for n := len(j.line); n > 0; n = len(j.line) {
		x := j.line[n-1]
		if !x.done && x.key != "" {
			x.done = true
			j.join(how)
			continue // another op may be next now
		}
		j.run(x)
		x.gone, j.line, out = true, j.line[:n-1], append(out, x)
	}
	return out
}

// push makes x what is next.
func (j *joiner) push(x *inLine) {
	x.at, j.line = len(j.line), append(j.line, x)
}

func (j *joiner) newInLine(op *ir.Op) *inLine {
	x := &inLine{op: op, gives: op.Results, reads: op.Operands, most: math.MaxInt}
	if len(op.Regions) > 0 {
		x.reads = slices.Concat(op.Operands, op.Captures())
	}
	if n := j.f.NumIDs() - len(j.size); n > 0 {
		j.size, j.left, j.after = append(j.size, make([]int, n)...), append(j.left, make([]int, n)...), append(j.after, make([]int, n)...)
	}
	for _, v := range op.Results {
		j.size[v.ID] = facts.BytesOf(v.Type)
	}
	return x
}

// begin resets the liveness to the begin of b, whose ops are line. The function's
// parameters are always live.
func (j *joiner) begin(b *ir.Block, line []*inLine) {
	for _, x := range line {
		for _, v := range x.reads {
			j.left[v.ID]++
		}
	}
	j.bytes = 0
	if b != j.f.Body {
		for _, v := range b.Args {
			j.size[v.ID] = facts.BytesOf(v.Type)
			if j.left[v.ID] > 0 {
				j.bytes += j.size[v.ID]
			}
		}
	}
}

// run advances the liveness past x and returns the bytes that were live at x: those
// of values that x or a later op reads.
func (j *joiner) run(x *inLine) (alive int) {
	for _, v := range x.gives {
		j.bytes += j.size[v.ID]
	}
	alive = j.bytes
	for _, v := range x.reads {
		if j.left[v.ID]--; j.left[v.ID] == 0 {
			j.bytes -= j.size[v.ID]
		}
	}
	for _, v := range x.gives {
		if j.left[v.ID] == 0 {
			j.bytes -= j.size[v.ID]
		}
	}
	return alive
}

// back undoes run for xs.
func (j *joiner) back(xs []*inLine) {
	for _, x := range slices.Backward(xs) {
		for _, v := range x.gives {
			if j.left[v.ID] != 0 {
				j.bytes -= j.size[v.ID]
			}
		}
		for _, v := range x.reads {
			if j.left[v.ID]++; j.left[v.ID] == 1 {
				j.bytes += j.size[v.ID]
			}
		}
	}
}

// A joining is a way to combine collectives.
type joining struct {
	key  func(op *ir.Op) string           // ops of one key may be joined; "" for none
	fits func(g []*ir.Op, op *ir.Op) bool // whether op may join g, ops of its key
	make func(b *ir.Builder, g []*ir.Op)  // appends the combined op, which defines the results of all of g
}

// join joins as many ops as it can with the next one. It walks towards the end of the
// block once: ops that depend on those found so far are late and move behind, the
// others stay before.
func (j *joiner) join(how joining) {
	next := len(j.line) - 1
	one := j.line[next]
	j.walks++
	comesAfter := func(x *inLine) {
		for _, v := range x.gives {
			j.after[v.ID] = j.walks
		}
	}
	comesAfter(one)
	g, ops, all := []*inLine{one}, []*ir.Op{one.op}, one
	var kept, late, found []*inLine // found is the ops kept and late up to last
	last, ahead := next, 0
	for k, end := next-1, j.at.last(g, next); k >= max(end, 1); k-- {
		x := j.line[k]
		needs := slices.ContainsFunc(x.reads, func(v *ir.Value) bool { return j.after[v.ID] == j.walks })
		if !needs && x.key == one.key && how.fits(ops, x.op) {
			both := &inLine{gives: slices.Concat(all.gives, x.gives), reads: slices.Concat(all.reads, x.reads), most: min(all.most, x.most)}
			if j.cheap(both, late) {
				g, ops, all = append(g, x), append(ops, x.op), both
				found, last, ahead = slices.Concat(kept, late), k, len(kept)
				comesAfter(x)
				end = j.at.last(g, next)
				continue
			}
		}
		if !needs {
			kept = append(kept, x)
			if j.run(x) > x.most {
				break // any op joined from here on would be behind x
			}
			continue
		}
		if hasEffects(x.op) {
			break
		}
		late = append(late, x)
		comesAfter(x)
	}
	j.back(kept)
	if len(g) == 1 {
		return
	}
	made := j.joined(how, g, ops, all)
	j.line = j.line[:last]
	for _, x := range slices.Backward(slices.Concat(found[:ahead], made, found[ahead:])) {
		j.push(x)
	}
}

// joined is what ops, which stand at g and are all together, become.
func (j *joiner) joined(how joining, g []*inLine, ops []*ir.Op, all *inLine) (made []*inLine) {
	for _, v := range all.reads {
		j.left[v.ID]--
	}
	for _, x := range g {
		x.gone = true
	}
	one, out := ops[0], &ir.Block{}
	how.make(&ir.Builder{Func: j.f, Block: out, Origin: one.Origin}, ops)
	for _, op := range out.Ops {
		x := j.newInLine(op)
		x.key = how.key(op)
		if op == one {
			x.most, x.done = all.most, true
		}
		for _, v := range x.reads {
			j.left[v.ID]++
		}
		j.at.made(x)
		made = append(made, x)
	}
	return made
}

// cheap reports whether x may be moved here, and late behind it, within the memory
// limits of all of them.
func (j *joiner) cheap(x *inLine, late []*inLine) bool {
	order := append([]*inLine{x}, late...)
	n := 0
	for n < len(order) && j.run(order[n]) <= order[n].most {
		n++
	}
	j.back(order[:min(n+1, len(order))])
	return n == len(order)
}

// hasEffects reports whether op has effects, so that its order among others like it
// matters.
func hasEffects(op *ir.Op) bool {
	if len(op.Regions) == 0 || op.Kind.Has(ir.Pure) {
		return !op.Kind.Has(ir.Pure)
	}
	return slices.ContainsFunc(op.Regions, func(r *ir.Block) bool {
		return slices.ContainsFunc(r.Ops, func(op *ir.Op) bool { return !op.Kind.Has(ir.Terminator) && hasEffects(op) })
	})
}

// alike joins collectives that differ in their operands only.
func (j *joiner) alike() joining {
	return joining{
		key: func(op *ir.Op) string {
			way, ok := ways[op.Kind]
			if !ok || way.rows != nil && len(op.Operands) != 1 {
				return ""
			}
			key := alikeKey(op, way.dims)
			if key == "" || movedBytes(op) > j.limit {
				return ""
			}
			return key
		},
		fits: func(g []*ir.Op, op *ir.Op) bool { return movedBytes(append(slices.Clip(g), op)...) <= j.limit },
		make: func(b *ir.Builder, g []*ir.Op) { ways[g[0].Kind].join(b, g) },
	}
}

// movedBytes is the size of the operands of ops, or of the results, whichever are
// larger, not counting scalars.
func movedBytes(ops ...*ir.Op) int {
	size := func(vs []*ir.Value) (n int) {
		for _, v := range vs {
			if v.Type.NumElements() > 1 {
				n += facts.BytesOf(v.Type)
			}
		}
		return n
	}
	in, out := 0, 0
	for _, op := range ops {
		in, out = in+size(op.Operands), out+size(op.Results)
	}
	return max(in, out)
}

// alikeKey is a text of op, a collective, without its operands, its channel and the
// attributes in but; "" where op cannot be combined.
func alikeKey(op *ir.Op, but []string) string {
	t := op.Operands[0].Type
	for _, v := range slices.Concat(op.Operands, op.Results) {
		if !v.Type.IsTensor() || !v.Type.IsStatic() || v.Type.Elem != t.Elem || v.Type.NumElements() == 0 {
			return ""
		}
	}
	var b facts.Key
	b.WriteString(op.Name() + " " + t.Elem.String())
	if channelled(op) {
		b.WriteString(" channel")
	}
	for _, a := range op.Attrs {
		if a.Name != "channel_handle" && !slices.Contains(but, a.Name) {
			facts.WriteAttr(&b, a)
		}
	}
	for _, r := range op.Regions {
		facts.WriteRegion(&b, r, func(k *facts.Key, _ *ir.Value) { k.WriteString("?") })
	}
	return b.String()
}

// channelled reports whether op has a channel: its groups then list partitions, not
// replicas.
func channelled(op *ir.Op) bool {
	c, _ := op.Attrs.Get("channel_handle").(ir.Channel)
	return c.Handle > 0
}
