package rng

import "slices"

// Counters is how many counters Generate takes for a tensor.
func Counters(algorithm string, shape []int, n int) int {
	count, wide := product(shape), n > 32
	switch {
	case algorithm == "THREE_FRY" && wide:
		return count
	case algorithm == "THREE_FRY":
		if at := halved(shape); at >= 0 && shape[at] > 0 {
			return count / shape[at] * ((shape[at] + 1) / 2)
		}
		return min(count, 1)
	case wide:
		count *= 2
	}
	return (count + 3) / 4
}

// Splits reports whether the bits of a tensor, sharded along dimension d into a
// number of parts, are for each what Generate gives for it alone from where the
// counters of the parts before end. The parts must follow one another in the
// tensor, the counters of each must be complete, and the words of a counter must be
// as far apart in a shard as in the full tensor.
func Splits(algorithm string, shape []int, n, d, parts int) bool {
	if product(shape[:d]) != 1 || shape[d] == 0 || shape[d]%parts != 0 {
		return false
	}
	part := slices.Clone(shape)
	part[d] /= parts
	switch wide := n > 32; {
	case algorithm == "THREE_FRY" && wide:
		return true
	case algorithm == "THREE_FRY":
		at := halved(shape)
		return at == halved(part) && (at != d || part[d]%2 == 0)
	case algorithm == "PHILOX" && wide:
		return product(part)%2 == 0
	case algorithm == "PHILOX":
		return product(part)%4 == 0
	}
	return false
}
