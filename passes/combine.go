package passes

import (
	"slices"
	"strings"

	"ppc/ir"
)

// combine makes one collective of several that do the same:
//
//   - those whose results are added up are one of the sum of their operands
//     (combine_sums.go);
//   - collectives of one block that are alike in kind, groups, element type and
//     reducer, and of which none needs another, are one with as many operands:
//     of single numbers always, of others while operands or results together
//     take no more bytes than the module's attribute pp.combine says;
//   - permutes along lists of pairs that have no source and no target in common
//     are one along all of the pairs (combine_pairs.go).
//
// The one stands where the last of the several stood. What needs one of them
// and stood before moves behind; nothing leaves its block. That is given up
// where any op of the block would run with more than that number of bytes, or
// some scalars, more alive beside it, so a program with loops d deep takes at
// most d+1 times as many bytes more.
func combine(m *ir.Module) error {
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		j := &joiner{m: m, f: f, limit: m.Attrs.Int("pp.combine"), uses: f.Uses()}
		j.block(f.Body)
	}
	return nil
}

// A joiner combines the collectives of a function.
type joiner struct {
	m     *ir.Module
	f     *ir.Func
	limit int
	uses  []int // by ID, before anything changed

	reads map[*ir.Op][]*ir.Value // what the ops of the block at hand use, in their regions too
	alive map[*ir.Op]int         // bytes, as the block was; nil until asked for
}

func (j *joiner) block(b *ir.Block) {
	for _, op := range b.Ops {
		for _, r := range op.Regions {
			j.block(r)
		}
	}
	j.sums(b)
	j.reads, j.alive = nil, nil
	for _, how := range []joining{j.alike(), j.disjoint()} {
		done := make(map[*ir.Op]bool)
		for i := 0; i < len(b.Ops); {
			if op := b.Ops[i]; !done[op] && how.key(op) != "" {
				done[op] = true
				j.join(b, i, how)
				continue // another op may stand here now
			}
			i++
		}
	}
}

// A joining is a way in which collectives become one.
type joining struct {
	key  func(op *ir.Op) string           // ops of one key may be joined; "" for none
	fits func(g []*ir.Op, op *ir.Op) bool // whether op may join g, ops of its key
	make func(b *ir.Builder, g []*ir.Op)  // appends the one, which defines the results of all of g
}

// join joins as many ops as it can with the one at i. It walks to the end of
// the block once: what depends on those found so far is late, what does not
// stays ahead of them.
func (j *joiner) join(b *ir.Block, i int, how joining) {
	g, key := []*ir.Op{b.Ops[i]}, how.key(b.Ops[i])
	after := make(map[*ir.Value]bool)
	comesAfter := func(op *ir.Op) {
		for _, v := range op.Results {
			after[v] = true
		}
	}
	comesAfter(g[0])
	var kept, late, found []*ir.Op // found is the order up to last, once there is one
	last := i
	for k := i + 1; k < len(b.Ops)-1; k++ {
		op := b.Ops[k]
		needs := slices.ContainsFunc(j.readsOf(op), func(v *ir.Value) bool { return after[v] })
		if !needs && how.key(op) == key && how.fits(g, op) {
			if order := slices.Concat(kept, g, []*ir.Op{op}, late); j.cheap(b, i, k, order) {
				g, found, last = append(g, op), order, k
				comesAfter(op)
				continue
			}
		}
		if !needs {
			kept = append(kept, op)
			continue
		}
		if hasEffects(op) {
			break
		}
		late = append(late, op)
		comesAfter(op)
	}
	if found == nil {
		return
	}
	out := &ir.Block{}
	for _, op := range found {
		switch {
		case op == g[0]:
			how.make(&ir.Builder{Func: j.f, Block: out, Origin: op.Origin}, g)
			delete(j.reads, op) // it may be the one that reads for all of g
		case !slices.Contains(g, op):
			out.Ops = append(out.Ops, op)
		}
	}
	b.Ops = slices.Concat(b.Ops[:i], out.Ops, b.Ops[last+1:])
}

// readsOf is what op uses, in its regions too.
func (j *joiner) readsOf(op *ir.Op) []*ir.Value {
	if len(op.Regions) == 0 {
		return op.Operands
	}
	vs, ok := j.reads[op]
	if !ok {
		vs = slices.Concat(op.Operands, op.Captures())
		if j.reads == nil {
			j.reads = make(map[*ir.Op][]*ir.Value)
		}
		j.reads[op] = vs
	}
	return vs
}

// hasEffects reports whether the order of op among others like it matters.
func hasEffects(op *ir.Op) bool {
	if len(op.Regions) == 0 || op.Kind.Has(ir.Pure) {
		return !op.Kind.Has(ir.Pure)
	}
	return slices.ContainsFunc(op.Regions, func(r *ir.Block) bool {
		return slices.ContainsFunc(r.Ops, func(op *ir.Op) bool { return !op.Kind.Has(ir.Terminator) && hasEffects(op) })
	})
}

// cheap reports whether b may run with the ops from i to k in the given order.
func (j *joiner) cheap(b *ir.Block, i, k int, order []*ir.Op) bool {
	if j.alive == nil {
		j.alive = j.aliveBeside(b, b.Ops)
	}
	for op, n := range j.aliveBeside(b, slices.Concat(b.Ops[:i], order, b.Ops[k+1:])) {
		if was, ok := j.alive[op]; ok && n > was+max(j.limit, smallBytes) {
			return false
		}
	}
	return true
}

// aliveBeside is, by op, the bytes of the values of b that are needed by it or
// after it, if b runs in that order. The function's parameters are always there.
func (j *joiner) aliveBeside(b *ir.Block, order []*ir.Op) map[*ir.Op]int {
	last, size, bytes := make(map[*ir.Value]int), make(map[*ir.Value]int), 0
	begins := func(v *ir.Value, at int) {
		last[v], size[v] = at, bytesOf(v.Type)
		bytes += size[v]
	}
	for at, op := range order {
		for _, v := range op.Results {
			last[v] = at
		}
		for _, v := range j.readsOf(op) {
			last[v] = at
		}
	}
	ends := make([][]*ir.Value, len(order)+1)
	for v, at := range last {
		ends[at] = append(ends[at], v)
	}
	if b != j.f.Body {
		for _, v := range b.Args {
			if at, used := last[v]; used {
				begins(v, at)
			}
		}
	}
	alive := make(map[*ir.Op]int, len(order))
	for at, op := range order {
		for _, v := range op.Results {
			begins(v, last[v])
		}
		alive[op] = bytes
		for _, v := range ends[at] {
			bytes -= size[v] // none of what b only looks at
		}
	}
	return alive
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

// movedBytes is the size of the operands of ops, or of the results, whichever
// are larger, leaving out single numbers.
func movedBytes(ops ...*ir.Op) int {
	size := func(vs []*ir.Value) (n int) {
		for _, v := range vs {
			if v.Type.NumElements() > 1 {
				n += bytesOf(v.Type)
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

// alikeKey says what op, a collective, does, but for its operands, its channel
// and the attributes in but; "" where that is not all that there is.
func alikeKey(op *ir.Op, but []string) string {
	t := op.Operands[0].Type
	for _, v := range slices.Concat(op.Operands, op.Results) {
		if !v.Type.IsTensor() || !v.Type.IsStatic() || v.Type.Elem != t.Elem || v.Type.NumElements() == 0 {
			return ""
		}
	}
	var b strings.Builder
	b.WriteString(op.Name() + " " + t.Elem.String())
	if channelled(op) {
		b.WriteString(" channel")
	}
	for _, a := range op.Attrs {
		if a.Name != "channel_handle" && !slices.Contains(but, a.Name) {
			writeAttr(&b, a)
		}
	}
	for _, r := range op.Regions {
		writeRegion(&b, r, func(*ir.Value) string { return "?" })
	}
	return b.String()
}

// channelled reports whether op has a channel: its groups are of partitions then.
func channelled(op *ir.Op) bool {
	c, _ := op.Attrs.Get("channel_handle").(ir.Channel)
	return c.Handle > 0
}

// adopt makes v, so far the result of another op, result k of op.
func adopt(op *ir.Op, k int, v *ir.Value) {
	op.Results[k] = v
	v.Def, v.Index = op, k
}
