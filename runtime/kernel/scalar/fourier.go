package scalar

import "math"

// A Fourier transforms n numbers: of n = p m, with p prime, it makes p transforms
// of m numbers each, and of what these have in the same place one of p.
type Fourier struct {
	n, p  int
	part  *Fourier     // of m numbers; nil where n is 1
	roots []complex128 // exp(∓2πi k/n)
}

// NewFourier returns the transform of n numbers, or its inverse but for a factor of 1/n.
func NewFourier(n int, inverse bool) *Fourier {
	if n < 2 {
		return &Fourier{n: n}
	}
	p := 2
	for n%p != 0 && p*p < n {
		p++
	}
	if n%p != 0 {
		p = n
	}
	pl := &Fourier{n: n, p: p, part: NewFourier(n/p, inverse), roots: make([]complex128, n)}
	for k := range pl.roots {
		s, c := math.Sincos(2 * math.Pi * float64(k) / float64(n))
		if !inverse {
			s = -s
		}
		pl.roots[k] = complex(c, s)
	}
	return pl
}

// Transform makes out of every step-th number of in, n of them.
func (pl *Fourier) Transform(out, in []complex128, step int) {
	if pl.n < 2 {
		copy(out[:pl.n], in)
		return
	}
	m := pl.n / pl.p
	for r := range pl.p {
		pl.part.Transform(out[r*m:], in[r*step:], step*pl.p)
	}
	var few [8]complex128
	terms := few[:min(pl.p, len(few))]
	if pl.p > len(few) {
		terms = make([]complex128, pl.p)
	}
	for k := range m {
		for r := range terms {
			terms[r] = out[r*m+k] * pl.roots[r*k]
		}
		for q := range pl.p {
			var sum complex128
			for r, t := range terms {
				sum += t * pl.roots[r*q*m%pl.n]
			}
			out[q*m+k] = sum
		}
	}
}
