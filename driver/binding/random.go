package binding

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"

	"ppc/internal/rng"
)

// A Stream is an endless sequence of random numbers of which any can be had
// without the others: number i is threefry of the counter i under a key made
// of seed and name. So a tensor's elements depend on nothing but the seed, the
// tensor's name and their place in it.
type Stream struct{ k0, k1 uint32 }

func NewStream(seed uint64, name string) Stream {
	h := sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, seed), name...))
	return Stream{binary.LittleEndian.Uint32(h[0:]), binary.LittleEndian.Uint32(h[4:])}
}

// Bits returns number i, 64 random bits.
func (s Stream) Bits(i int) uint64 {
	hi, lo := rng.Threefry2x32(s.k0, s.k1, uint32(uint64(i)>>32), uint32(i))
	return uint64(hi)<<32 | uint64(lo)
}

// Uniform returns number i as one of the 2^52 midpoints of equal parts of
// (0, 1).
func (s Stream) Uniform(i int) float64 {
	return (float64(s.Bits(i)>>12) + 0.5) / (1 << 52)
}

// Normal returns number i with the standard normal distribution, by the
// inverse of its distribution function. It is taken at the near end of (0, 1),
// where the argument has all its digits.
func (s Stream) Normal(i int) float64 {
	u := s.Uniform(i)
	if u > 0.5 {
		return math.Sqrt2 * math.Erfcinv(2*(1-u))
	}
	return -math.Sqrt2 * math.Erfcinv(2*u)
}

// Below returns number i as an integer in [0, n).
func (s Stream) Below(i, n int) int {
	hi, _ := bits.Mul64(s.Bits(i), uint64(n))
	return int(hi)
}
