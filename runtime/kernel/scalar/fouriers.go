package scalar

import (
	"math/cmplx"
	"sync"

	"ppc/ir"
)

// Fouriers transform an array along its dimensions from one on.
type Fouriers struct {
	shape   []int
	first   int
	inverse bool
	plans   func() []*Fourier // by dimension from first on
}

// NewFouriers transform arrays of a shape along its dimensions from first on; or they are the inverse.
func NewFouriers(shape []int, first int, inverse bool) *Fouriers {
	return &Fouriers{shape, first, inverse, sync.OnceValue(func() (plans []*Fourier) {
		for _, n := range shape[first:] {
			plans = append(plans, NewFourier(n, inverse))
		}
		return plans
	})}
}

// Run transforms v; scratch is twice as long as the longest dimension.
func (f *Fouriers) Run(v, scratch []complex128) {
	if len(v) == 0 {
		return
	}
	st := ir.Strides(f.shape)
	for i, p := range f.plans() {
		d := f.first + i
		n, step := f.shape[d], st[d]
		line, result := scratch[:n], scratch[n:2*n]
		for at := range len(v) / n {
			start := at/step*step*n + at%step
			for k := range n {
				line[k] = v[start+k*step]
			}
			p.Transform(result, line, 1)
			for k := range n {
				x := result[k]
				if f.inverse {
					x /= complex(float64(n), 0)
				}
				v[start+k*step] = x
			}
		}
	}
}

// Mirror fills v from the half that half, of shape from, is of it: the other half
// is the conjugate, in reverse order along every dimension.
func (f *Fouriers) Mirror(v, half []complex128, from []int) {
	last := len(f.shape) - 1
	index := make([]int, len(f.shape))
	own := ir.Strides(from)
	for k := range v {
		beyond, at := index[last] >= from[last], 0
		for d, i := range index {
			if beyond && d >= f.first && i > 0 {
				i = f.shape[d] - i
			}
			at += i * own[d]
		}
		v[k] = half[at]
		if beyond {
			v[k] = cmplx.Conj(v[k])
		}
		for d := last; d >= 0; d-- {
			if index[d]++; index[d] < f.shape[d] {
				break
			}
			index[d] = 0
		}
	}
}
