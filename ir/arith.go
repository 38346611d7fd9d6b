package ir

// Product is the product of ns; 1 of none.
func Product(ns []int) int {
	p := 1
	for _, n := range ns {
		p *= n
	}
	return p
}

// ProductUpTo is the product of ns, or -1 where it is larger than most or a factor
// is not positive.
func ProductUpTo(ns []int, most int) int {
	p := 1
	for _, n := range ns {
		if n < 1 || p > most/n {
			return -1
		}
		p *= n
	}
	return p
}

// Strides says how far apart, in row-major order, the neighbours along each
// dimension of a tensor of the given shape are.
func Strides(shape []int) []int {
	st, n := make([]int, len(shape)), 1
	for d := len(shape) - 1; d >= 0; d-- {
		st[d] = n
		n *= shape[d]
	}
	return st
}

// GCD is the greatest common divisor of a and b.
func GCD(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
