package driver

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	"ppc/internal/optest"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/ir/verify"
)

// A verifiedMaker makes random programs that the verifier takes: every op of the
// table for one device or two, at its edges. Each choice is one byte, so that a
// fuzzer changes one at a time; when the bytes are used up, what they are the
// seed of goes on.
type verifiedMaker struct {
	data    []byte
	more    *rand.Rand
	b       *ir.Builder
	pool    []*ir.Value
	funcs   []*ir.Func
	devices int
	depth   int
}

func (g *verifiedMaker) n(n int) int {
	if len(g.data) == 0 {
		return g.more.IntN(n)
	}
	v := int(g.data[0]) % n
	g.data = g.data[1:]
	return v
}

func (g *verifiedMaker) coin() bool { return g.n(2) == 0 }

func of[T any](g *verifiedMaker, xs ...T) T { return xs[g.n(len(xs))] }

// verifiedProgram is a program of at most ops ops, and the text of it; nil where
// the verifier refuses what was made.
func verifiedProgram(data []byte, ops int) (*ir.Module, string) {
	g := newVerifiedMaker(data)
	for range 1 + g.n(ops) {
		g.op()
	}
	return g.program()
}

func newVerifiedMaker(data []byte) *verifiedMaker {
	h := fnv.New64a()
	h.Write(data)
	g := &verifiedMaker{data: data, more: rand.New(rand.NewPCG(h.Sum64(), 1))}
	f := ir.NewFunc("main")
	g.b, g.devices = ir.NewBuilder(f), 1+g.n(2)
	for i := range g.n(4) {
		g.pool = append(g.pool, f.NewArg(f.Body, g.tensor(), fmt.Sprint("p", i)))
	}
	return g
}

// program is what has been made, and the text of it; nil where the verifier
// refuses it.
func (g *verifiedMaker) program() (*ir.Module, string) {
	f := g.b.Func
	var results []*ir.Value
	for _, v := range g.pool[max(0, len(g.pool)-4):] {
		if v.Type.IsTensor() {
			results = append(results, v)
		}
	}
	g.b.Return(results...)
	m := &ir.Module{Name: "verified", Funcs: append([]*ir.Func{f}, g.funcs...)}
	m.Attrs.Set("mhlo.num_partitions", ir.Int{Value: g.devices, Type: ir.I32})
	if verify.Verify(m) != nil {
		return nil, ""
	}
	return m, mlir.Print(m)
}

// op appends one op, if one can be made that keeps its constraints.
func (g *verifiedMaker) op() {
	kinds := g.kinds()
	g.make(kinds[g.n(len(kinds))])
}

// make appends an op of the given kind; it reports whether that can be done.
func (g *verifiedMaker) make(kind ir.Kind) bool {
	for range 8 {
		before := len(g.b.Block.Ops)
		op := makersOf(kind)(g, kind)
		if op != nil && g.sound(op) {
			g.pool = append(g.pool, op.Results...)
			return true
		}
		g.b.Block.Ops = g.b.Block.Ops[:before]
	}
	return false
}

// kinds are the ops that may be appended at the maker's position.
func (g *verifiedMaker) kinds() []ir.Kind {
	var out []ir.Kind
	for _, k := range ir.Kinds() {
		if makersOf(k) != nil && (g.devices > 1 || !k.Has(ir.Collective)) && (g.depth < 2 || !slices.Contains(nesting, k)) {
			out = append(out, k)
		}
	}
	return out
}

// sound makes op, which has no results but those of given types, part of the
// block, unless it breaks a constraint.
func (g *verifiedMaker) sound(op *ir.Op) bool {
	for i, r := range op.Results {
		if r.Type == nil {
			return false
		}
		op.Results[i].Def, op.Results[i].Index = op, i
	}
	types, broken := ir.Infer(op)
	if broken != nil || len(types) != len(op.Results) && len(op.Results) > 0 || len(types) == 0 {
		return false
	}
	if len(op.Results) == 0 {
		for i, t := range types {
			if t.IsTensor() && (t.NumElements() > maxVerified || t.Rank() > 6) {
				return false
			}
			v := g.b.Func.NewValue(t, "")
			v.Def, v.Index = op, i
			op.Results = append(op.Results, v)
		}
	}
	for i, t := range types {
		if !t.Equal(op.Results[i].Type) {
			return false
		}
	}
	g.b.Block.Ops = append(g.b.Block.Ops, op)
	return true
}

// maxVerified bounds the elements of a value.
const maxVerified = 4096

func (g *verifiedMaker) elem() ir.DType {
	if g.n(3) > 0 {
		return of(g, ir.F32, ir.F32, ir.I32, ir.F64, ir.I1, ir.UI32, ir.BF16, ir.C64)
	}
	all := slices.DeleteFunc(slices.Clone(ir.DTypes()), func(e ir.DType) bool { return e == ir.Index }) // of which there is no constant
	return all[g.n(len(all))]
}

func (g *verifiedMaker) shape() []int {
	shape := make([]int, of(g, 0, 1, 1, 2, 2, 3))
	for d := range shape {
		shape[d] = of(g, 0, 1, 1, 2, 2, 3, 4)
	}
	return shape
}

func (g *verifiedMaker) tensor() *ir.Type { return ir.Tensor(g.elem(), g.shape()...) }

// any is some tensor.
func (g *verifiedMaker) any() *ir.Value {
	if len(g.pool) > 0 && g.n(4) > 0 {
		if v := g.pool[len(g.pool)-1-g.n(min(len(g.pool), 8))]; v.Type.IsTensor() {
			return v
		}
	}
	return g.of(g.tensor())
}

// of is a value of type t: one that is there, or a constant, a splat or one of
// random elements.
func (g *verifiedMaker) of(t *ir.Type) *ir.Value {
	var have []*ir.Value
	for _, v := range g.pool {
		if v.Type.Equal(t) {
			have = append(have, v)
		}
	}
	if len(have) > 0 && g.n(4) > 0 {
		return have[g.n(len(have))]
	}
	if t.NumElements() > maxVerified {
		return g.b.Splat(t, 1)
	}
	data := make([]byte, t.Bytes())
	size := t.Elem.Part().Size()
	for at := 0; at < len(data); at += size {
		t.Elem.Part().PutFloat(data[at:], of(g, 0, 1, 2, 3, -1, 0.5, -2, 7))
	}
	if size := t.Elem.Size(); t.NumElements() > 0 && g.coin() {
		data = data[:size]
	}
	return g.b.Const(&ir.Literal{Type: t, Data: data})
}

// dims are some dimensions of a tensor of the given rank, in random order.
func (g *verifiedMaker) dims(rank int) []int {
	out := []int{}
	for d := range rank {
		if g.coin() {
			out = slices.Insert(out, g.n(len(out)+1), d)
		}
	}
	return out
}

// sizes are numbers, one for each of n, from those given.
func (g *verifiedMaker) sizes(n int, from ...int) ir.Ints {
	out := make(ir.Ints, n)
	for d := range out {
		out[d] = of(g, from...)
	}
	return out
}

// Most of what is made is taken by the verifier.
func TestVerifiedPrograms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const programs = 1000
	taken := 0
	for range programs {
		if m, _ := verifiedProgram(randomBytes(r, 40), 12); m != nil {
			taken++
		}
	}
	if taken < programs*9/10 {
		t.Errorf("the verifier takes %d of %d programs", taken, programs)
	}
}

// Programs of each op that the verifier takes go through every command.
func TestOp(t *testing.T) {
	optest.Each(t, func(t *testing.T, k ir.Kind) {
		switch has, not := makersOf(k) != nil, k.Has(ir.Terminator) || k.Has(ir.Pipeline) || slices.Contains(elsewhere, k); {
		case has && slices.Contains(elsewhere, k):
			t.Fatalf("%s has a maker in verifiedMakers, driver/verified_ops_test.go, and is in elsewhere", k)
		case !has && !not:
			t.Fatalf("%s has no maker in verifiedMakers, driver/verified_ops_test.go", k)
		case !has:
			return
		}
		r := rand.New(rand.NewPCG(3, uint64(k)))
		for range 100 {
			if text := verifiedOf(k, randomBytes(r, 60)); text != "" {
				everyCommand(t, "mlir", text)
				return
			}
		}
		t.Errorf("the maker of %s in verifiedMakers, driver/verified_ops_test.go, makes nothing that the verifier takes", k)
	})
}

// verifiedOf is a program of a few ops whose last is of kind k; "" where none is
// made of data.
func verifiedOf(k ir.Kind, data []byte) string {
	g := newVerifiedMaker(data)
	if k.Has(ir.Collective) {
		g.devices = 2
	}
	for range g.n(3) {
		g.op()
	}
	if !g.make(k) {
		return ""
	}
	_, text := g.program()
	return text
}

func randomBytes(r *rand.Rand, n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}
