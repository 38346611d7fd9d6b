package optest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"ppc/ir"
	"ppc/ir/facts"
)

// A Program is a program under construction whose loss is to be
// differentiated, with the arguments to do it at.
type Program struct {
	*rand.Rand
	B    *ir.Builder
	M    *ir.Module
	Args []*ir.Literal
}

// New returns a program whose random choices follow from seed, with an empty main
// whose gradient is taken with respect to all inputs.
func New(seed uint64) *Program {
	f := ir.NewFunc("main")
	m := &ir.Module{Funcs: []*ir.Func{f}}
	m.Attrs.Set("pp.gradient", ir.Str("all"))
	return &Program{Rand: rand.New(rand.NewPCG(seed, 0)), B: ir.NewBuilder(f), M: m}
}

// param is a new parameter of the program with the argument l.
func (p *Program) Param(l *ir.Literal) *ir.Value {
	v := p.B.Func.NewArg(p.B.Func.Body, l.Type, "")
	v.Attrs = ir.AttrsOf(facts.Named("pp.kind", ir.Str("input")), facts.Named("pp.name", ir.Str(fmt.Sprint("x", len(p.Args)))))
	p.Args = append(p.Args, l)
	return v
}

// within is a parameter with elements between low and high.
func (p *Program) Within(low, high float64, shape ...int) *ir.Value {
	return p.Param(p.Numbers(low, high, ir.Tensor(ir.F64, shape...)))
}

// Numbers is a random literal of type t, uniform between low and high.
func (p *Program) Numbers(low, high float64, t *ir.Type) *ir.Literal {
	vs := make([]float64, t.NumElements())
	for i := range vs {
		vs[i] = low + (high-low)*p.Float64()
	}
	return ir.Floats64(t, vs...)
}

// float is a parameter with elements of both signs.
func (p *Program) Float(shape ...int) *ir.Value { return p.Within(-2, 2, shape...) }

// typed is a parameter with elements of both signs of the given type.
func (p *Program) typed(elem ir.DType, shape ...int) *ir.Value {
	v := p.Float(shape...)
	v.Type = v.Type.WithElem(elem)
	return v
}

// apart is a parameter whose elements differ by 0.1 and more, from each other
// and from zero.
func (p *Program) apart(shape ...int) *ir.Value {
	t := ir.Tensor(ir.F64, shape...)
	vs := make([]float64, t.NumElements())
	for i, k := range p.Perm(len(vs)) {
		vs[i] = (float64(k-len(vs)/2) + 0.5 + 0.2*p.Float64()) * 0.2
	}
	return p.Param(ir.Floats64(t, vs...))
}

// integers is a constant of type i32 with elements from low to high.
func (p *Program) Integers(low, high int, shape ...int) *ir.Value {
	t := ir.Tensor(ir.I32, shape...)
	vs := make([]int, t.NumElements())
	for i := range vs {
		vs[i] = low + p.IntN(high-low+1)
	}
	return p.B.Const(ir.Ints64(t, vs...))
}

// booleans is a constant.
func (p *Program) booleans(shape ...int) *ir.Value {
	return p.B.Convert(p.Integers(0, 1, shape...), ir.I1)
}

// shape has up to three dimensions of sizes 1 to 3.
func (p *Program) shape() []int { return p.Sizes(p.IntN(4)) }

// Sizes is a random shape of the given rank, with sizes from 1 to 3.
func (p *Program) Sizes(rank int) []int {
	s := make([]int, rank)
	for d := range s {
		s[d] = 1 + p.IntN(3)
	}
	return s
}

// some are the numbers below n, each with an even chance.
func (p *Program) some(n int) []int {
	return slices.DeleteFunc(facts.UpTo(n), func(int) bool { return p.IntN(2) == 0 })
}

// attr emits an op of one result that follows from the rest.
func (p *Program) Attr(k ir.Kind, operands []*ir.Value, attrs ...ir.NamedAttr) []*ir.Value {
	return p.B.Emit(k, operands, ir.AttrsOf(attrs...), nil, nil).Results
}

// finish makes the sum of the floating-point vs, each weighted at random, the
// program's loss.
func (p *Program) Finish(vs []*ir.Value) {
	scalar := ir.Tensor(ir.F64)
	loss := p.B.Splat(scalar, 0)
	for _, v := range vs {
		if !v.Type.Elem.IsFloat() {
			continue
		}
		v = p.B.Convert(v, ir.F64)
		weighted := p.B.Mul(v, p.B.Const(p.Numbers(0.5, 2, v.Type)))
		loss = p.B.Add(loss, p.B.Reduce(ir.Add, weighted, p.B.Splat(scalar, 0), facts.UpTo(v.Type.Rank())...))
	}
	p.B.Return(loss)
}

// Floats are the elements of l.
func Floats(l *ir.Literal) []float64 {
	vs := make([]float64, l.Type.NumElements())
	for i := range vs {
		vs[i] = l.Float(i)
	}
	return vs
}
