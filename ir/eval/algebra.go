package eval

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"ppc/ir"
)

// The ops of linear algebra compute with complex numbers throughout, rounded
// once at the end.

// complexes are the elements of x as complex numbers.
func (x *tensor) complexes() []complex128 {
	out := make([]complex128, x.len())
	for k := range out {
		if x.c != nil {
			out[k] = x.c[k]
		} else {
			out[k] = complex(x.f[k], 0)
		}
	}
	return out
}

// setComplexes makes v the elements of x, of real x their real parts.
func (x *tensor) setComplexes(v []complex128) {
	copy(x.c, v)
	for k := range x.f {
		x.f[k] = real(v[k])
	}
	x.round()
}

// cholesky: row by row, l[i][j] = (a[i][j] - sum of l[i][k] conj(l[j][k])) /
// l[j][j], the sum over k < j, and the root of that on the diagonal. Of a matrix
// that has no such factor, all is NaN. The upper factor is the adjoint of the
// lower one of the matrix whose upper triangle is read.
func cholesky(e *exec) *tensor {
	out, a := e.result(0), e.in[0].complexes()
	n := out.shape[len(out.shape)-1]
	l := make([]complex128, len(a))
	lower := e.op.Bool("lower")
	for at := 0; at < len(a); at += n * n {
		element := func(i, j int) complex128 {
			if lower {
				return a[at+i*n+j]
			}
			return cmplx.Conj(a[at+j*n+i])
		}
		m := make([]complex128, n*n) // the lower factor
		sound := true
		for i := range n {
			for j := range i + 1 {
				s := element(i, j)
				for k := range j {
					s -= m[i*n+k] * cmplx.Conj(m[j*n+k])
				}
				if i == j {
					sound = sound && real(s) > 0
					m[i*n+i] = complex(math.Sqrt(real(s)), 0)
				} else {
					m[i*n+j] = s / m[j*n+j]
				}
			}
		}
		for i := range n {
			for j := range n {
				switch {
				case !sound:
					l[at+i*n+j] = cmplx.NaN()
				case lower:
					l[at+i*n+j] = m[i*n+j]
				default:
					l[at+i*n+j] = cmplx.Conj(m[j*n+i])
				}
			}
		}
	}
	out.setComplexes(l)
	return out
}

// triangularSolve: x a = b is aᵀ xᵀ = bᵀ. Of a x = b, with a lower triangular, x
// follows row by row from the first, with an upper one from the last.
func triangularSolve(e *exec) *tensor {
	op, out := e.op, e.result(0)
	a, b := e.in[0].complexes(), e.in[1].complexes()
	rank := len(out.shape)
	n, rows, columns := e.in[0].shape[rank-1], out.shape[rank-2], out.shape[rank-1]
	left, transpose, lower := op.Bool("left_side"), op.Word("transpose_a") != "NO_TRANSPOSE", op.Bool("lower")
	if n == 0 || rows*columns == 0 {
		return out
	}
	turned := transpose == left // whether the equation to solve has a transposed
	others := columns           // right sides
	if !left {
		others = rows
	}
	for batch := range len(a) / (n * n) {
		coefficient := func(i, j int) complex128 {
			if turned {
				i, j = j, i
			}
			v := a[batch*n*n+i*n+j]
			if op.Word("transpose_a") == "ADJOINT" {
				v = cmplx.Conj(v)
			}
			return v
		}
		for s := range others {
			x := func(i int) *complex128 {
				if left {
					return &b[batch*rows*columns+i*columns+s]
				}
				return &b[batch*rows*columns+s*columns+i]
			}
			for step := range n {
				order := func(step int) int { return step }
				if lower == turned { // an upper triangle
					order = func(step int) int { return n - 1 - step }
				}
				i := order(step)
				for known := range step {
					k := order(known)
					*x(i) -= coefficient(i, k) * *x(k)
				}
				if !op.Bool("unit_diagonal") {
					*x(i) /= coefficient(i, i)
				}
			}
		}
	}
	out.setComplexes(b)
	return out
}

// fft: y[k] = sum of x[j] exp(-2πi jk/n) along each of the last dimensions in
// turn; the inverse has the other sign, and divides by n.
func fft(e *exec) ([]*tensor, error) {
	out, x := e.result(0), e.in[0]
	kind, length := e.op.Word("fft_type"), e.op.Ints("fft_length")
	rank := len(x.shape)
	shape := append(append([]int{}, out.shape[:rank-len(length)]...), length...)
	v, inverse := x.complexes(), kind == "IFFT" || kind == "IRFFT"
	switch {
	case kind == "IRFFT":
		v = mirrored(v, x.shape, shape, length)
	case !slices.Equal(x.shape, shape):
		return nil, fmt.Errorf("fft_length %v of %s: want the sizes of the last dimensions", length, x)
	}
	for d := rank - len(length); d < rank; d++ {
		v = transformed(v, shape, d, inverse)
	}
	if kind == "RFFT" {
		half := make([]complex128, 0, out.len())
		last := length[len(length)-1]
		for at := 0; at < len(v); at += last {
			half = append(half, v[at:at+last/2+1]...)
		}
		v = half
	}
	out.setComplexes(v)
	return []*tensor{out}, nil
}

// mirrored is v, of shape from, extended to the shape to by Hermitian symmetry: an
// element beyond the half of the last dimension is the conjugate of the element at
// the negated indices in all transformed dimensions.
func mirrored(v []complex128, from, to, length []int) []complex128 {
	out := make([]complex128, ir.Product(to))
	last := len(to) - 1
	index := make([]int, len(to))
	st := ir.Strides(from)
	for k := range out {
		at, conjugate := 0, index[last] >= from[last]
		for d, i := range index {
			if conjugate && d >= len(to)-len(length) {
				i = (to[d] - i) % to[d]
			}
			at += i * st[d]
		}
		out[k] = v[at]
		if conjugate {
			out[k] = cmplx.Conj(out[k])
		}
		next(index, to)
	}
	return out
}

// transformed is the transform of v along dimension d of shape, by definition.
func transformed(v []complex128, shape []int, d int, inverse bool) []complex128 {
	out := make([]complex128, len(v))
	n, step := shape[d], ir.Strides(shape)[d]
	roots := make([]complex128, n)
	for k := range roots {
		angle := -2 * math.Pi * float64(k) / float64(n)
		if inverse {
			angle = -angle
		}
		roots[k] = complex(math.Cos(angle), math.Sin(angle))
	}
	for at := range out {
		k := at / step % n
		var sum complex128
		for j := range n {
			sum += v[at+(j-k)*step] * roots[j*k%n]
		}
		if inverse {
			sum /= complex(float64(n), 0)
		}
		out[at] = sum
	}
	return out
}
