package optest

import (
	"ppc/ir"
	"ppc/ir/facts"
)

// positive is a positive definite matrix, or several.
func (p *Program) positive(n int, batch ...int) *ir.Value {
	x := p.Float(append(batch, n, n)...)
	dims := facts.UpTo(len(batch))
	rank := len(batch)
	square := p.B.Dot(x, x, ir.Dot{LhsBatch: dims, RhsBatch: dims, LhsContract: []int{rank + 1}, RhsContract: []int{rank + 1}})
	row, col := p.B.Iota(ir.Tensor(ir.I32, square.Type.Shape...), rank), p.B.Iota(ir.Tensor(ir.I32, square.Type.Shape...), rank+1)
	return p.B.Add(square, p.B.Convert(p.B.Compare("EQ", row, col), ir.F64))
}

var algebraCases = []Case{
	{Name: "cholesky", Build: func(p *Program) []*ir.Value {
		return p.Attr(ir.Cholesky, []*ir.Value{p.positive(3, p.Sizes(p.IntN(2))...)}, facts.Named("lower", ir.Bool(p.IntN(2) == 0)))
	}},
	{Name: "triangular_solve", Build: func(p *Program) []*ir.Value {
		batch := p.Sizes(p.IntN(2))
		transpose := []string{"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}[p.IntN(3)]
		return p.Attr(ir.TriangularSolve, []*ir.Value{p.positive(3, batch...), p.Float(append(batch, 3, 3)...)}, facts.Named("left_side", ir.Bool(p.IntN(2) == 0)),
			facts.Named("lower", ir.Bool(p.IntN(2) == 0)), facts.Named("unit_diagonal", ir.Bool(p.IntN(2) == 0)), facts.Named("transpose_a", ir.HLOEnum("transpose", transpose)))
	}},
	{Name: "fft", Linear: true, Build: func(p *Program) []*ir.Value {
		x := p.Float(append(p.Sizes(p.IntN(2)), 4, 6)...)
		length := ir.Ints{6}
		if p.IntN(2) == 0 {
			length = ir.Ints{4, 6}
		}
		y := p.Attr(ir.FFT, []*ir.Value{x}, facts.Named("fft_type", ir.HLOEnum("fft_type", "RFFT")), facts.Named("fft_length", length))[0]
		return []*ir.Value{p.B.Unary(ir.Real, y), p.B.Unary(ir.Imag, y)}
	}},
	{Name: "fft of complex numbers", Linear: true, Build: func(p *Program) []*ir.Value {
		dims := append(p.Sizes(p.IntN(2)), 3, 5)
		length := ir.Ints{5}
		if p.IntN(2) == 0 {
			length = ir.Ints{3, 5}
		}
		z := p.B.Binary(ir.ComplexOp, p.Float(dims...), p.Float(dims...))
		kind := []string{"FFT", "IFFT", "IRFFT"}[p.IntN(3)]
		if kind == "IRFFT" {
			length[len(length)-1] = 8 + p.IntN(2)
		}
		y := p.Attr(ir.FFT, []*ir.Value{z}, facts.Named("fft_type", ir.HLOEnum("fft_type", kind)), facts.Named("fft_length", length))[0]
		if kind == "IRFFT" {
			return []*ir.Value{y}
		}
		return []*ir.Value{p.B.Unary(ir.Real, y), p.B.Unary(ir.Imag, y)}
	}},
	{Name: "real", Build: func(p *Program) []*ir.Value {
		return []*ir.Value{p.B.Unary(ir.Real, p.complex(p.Sizes(1+p.IntN(2))...))}
	}},
	{Name: "imag", Build: func(p *Program) []*ir.Value {
		return []*ir.Value{p.B.Unary(ir.Imag, p.complex(p.Sizes(1+p.IntN(2))...))}
	}},
	{Name: "complex", Build: func(p *Program) []*ir.Value {
		dims := p.Sizes(1 + p.IntN(2))
		z, w := p.complex(dims...), p.complex(dims...)
		k := []ir.Kind{ir.Exponential, ir.ExponentialMinusOne, ir.Log, ir.LogPlusOne, ir.Logistic, ir.Sine, ir.Cosine, ir.Tanh, ir.Sqrt, ir.Rsqrt, ir.Negate}[p.IntN(11)]
		away := p.B.Splat(ir.Tensor(ir.C128, dims...), 3) // from zeros, poles and cuts
		y := p.B.Div(p.B.Mul(p.B.Unary(k, p.B.Add(z, away)), w), p.B.Add(w, away))
		return []*ir.Value{p.B.Unary(ir.Real, y), p.B.Unary(ir.Imag, y), p.B.Unary(ir.Abs, p.B.Sub(p.B.Add(z, away), w))}
	}},
}

// complex is a tensor of complex numbers of small parts.
func (p *Program) complex(dims ...int) *ir.Value {
	half := p.B.Splat(ir.Tensor(ir.F64, dims...), 0.5)
	return p.B.Binary(ir.ComplexOp, p.B.Mul(half, p.B.Unary(ir.Tanh, p.Float(dims...))), p.B.Mul(half, p.B.Unary(ir.Tanh, p.Float(dims...))))
}
