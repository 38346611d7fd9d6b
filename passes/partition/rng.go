package partition

import (
	"slices"

	"ppc/internal/rng"
	"ppc/ir"
)

// Random bits follow from a key and a counter, so a device that knows where the
// counters of its shard begin makes that shard alone: the bits are those that the
// global tensor has there. Every device counts the state on to what it is after
// all of them.

// randomFactors is the rule of a rng_bit_generator: it can be sharded along any
// dimension of the bits whose shards are contiguous.
func randomFactors(op *ir.Op) *ir.Factors {
	f := &ir.Factors{Operands: [][][]int{make([][]int, 1)}, Results: [][][]int{make([][]int, 1), nil}}
	for d, size := range op.Results[1].Type.Shape {
		f.Sizes, f.Types = append(f.Sizes, size), append(f.Types, ir.PassThrough)
		f.Results[1] = append(f.Results[1], []int{d})
	}
	return f
}

// mayShardRandom: factor k is dimension k of the bits.
func mayShardRandom(p *program, op *ir.Op, _ *ir.Factors, k int, axes []ir.AxisRef) bool {
	t := op.Results[1].Type
	return rng.Splits(op.Word("rng_algorithm"), t.Shape, t.Elem.Bits(), k, p.mesh.RefsSize(axes))
}

// emitRandom makes this device's shard of the bits, and the state after all.
func (p *localizer) emitRandom(op *ir.Op, a *assignment, in []*ir.Value) []*ir.Value {
	axes := slices.Concat(a.results[1]...) // of one dimension
	if len(axes) == 0 {
		return p.emitAs(op, a, in, op.Attrs)
	}
	b, t, algorithm := &p.build, op.Results[1].Type, op.Word("rng_algorithm")
	part := p.local(t, a.results[1])
	perPart := rng.Counters(algorithm, part.Shape, t.Elem.Bits())
	carry := dropCarry
	if algorithm == "PHILOX" {
		carry = keepCarry
	}
	state := p.counted(in[0], b.Mul(b.Convert(p.coord(axes), ir.UI64), counters(b, perPart)), carry)
	bits := b.Emit(op.Kind, []*ir.Value{state}, op.Attrs, nil, []*ir.Type{state.Type, part}).Results[1]
	after := p.counted(in[0], counters(b, rng.Counters(algorithm, t.Shape, t.Elem.Bits())), dropCarry)
	return []*ir.Value{after.Named(op.Results[0].Name), bits.Named(op.Results[1].Name)}
}

// counters is a number of counters.
func counters(b *ir.Builder, n int) *ir.Value { return b.Const(ir.Ints64(ir.Tensor(ir.UI64), n)) }

// carry is what becomes of the carry of a counter whose upper half is the key.
type carry bool

const (
	dropCarry carry = false
	keepCarry carry = true
)

// counted is state, by counters further on: its second number, and its third by
// what is carried from there. Of two numbers, the first is the key and the upper
// half of the counter as well: the carry is dropped then, or kept in a state of
// three numbers.
func (p *localizer) counted(state, by *ir.Value, c carry) *ir.Value {
	b := &p.build
	at := func(i int) *ir.Value { return b.SliceDim(state, 0, i, i+1) }
	by = b.Reshape(by, 1)
	low := b.Add(at(1), by)
	n := state.Type.Shape[0]
	if n == 2 && c == dropCarry {
		return b.Concat(0, at(0), low)
	}
	upper := at(n % 2 * 2)
	return b.Concat(0, at(0), low, b.Add(upper, b.Convert(b.Compare("LT", low, by), ir.UI64)))
}
