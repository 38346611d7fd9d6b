package driver

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
)

// A stream is an endless sequence of random numbers of which any can be had
// without the others: number i is threefry of the counter i under a key made
// of seed and name. So a tensor's elements depend on nothing but the seed, the
// tensor's name and their place in it.
type stream struct{ k0, k1 uint32 }

func newStream(seed uint64, name string) stream {
	h := sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, seed), name...))
	return stream{binary.LittleEndian.Uint32(h[0:]), binary.LittleEndian.Uint32(h[4:])}
}

// bits returns number i, 64 random bits.
func (s stream) bits(i int) uint64 {
	hi, lo := threefry2x32(s.k0, s.k1, uint32(uint64(i)>>32), uint32(i))
	return uint64(hi)<<32 | uint64(lo)
}

// uniform returns number i as one of the 2^52 midpoints of equal parts of
// (0, 1).
func (s stream) uniform(i int) float64 {
	return (float64(s.bits(i)>>12) + 0.5) / (1 << 52)
}

// normal returns number i with the standard normal distribution, by the
// inverse of its distribution function. It is taken at the near end of (0, 1),
// where the argument has all its digits.
func (s stream) normal(i int) float64 {
	u := s.uniform(i)
	if u > 0.5 {
		return math.Sqrt2 * math.Erfcinv(2*(1-u))
	}
	return -math.Sqrt2 * math.Erfcinv(2*u)
}

// below returns number i as an integer in [0, n).
func (s stream) below(i, n int) int {
	hi, _ := bits.Mul64(s.bits(i), uint64(n))
	return int(hi)
}

// threefry2x32 is the block function of Salmon, Moraes, Dror and Shaw,
// "Parallel random numbers: as easy as 1, 2, 3" (2011), with 20 rounds.
func threefry2x32(k0, k1, x0, x1 uint32) (uint32, uint32) {
	rotations := [2][4]int{{13, 15, 26, 6}, {17, 29, 16, 24}}
	keys := [3]uint32{k0, k1, 0x1BD11BDA ^ k0 ^ k1}
	x0 += keys[0]
	x1 += keys[1]
	for i := range uint32(5) {
		for _, r := range rotations[i%2] {
			x0 += x1
			x1 = bits.RotateLeft32(x1, r) ^ x0
		}
		x0 += keys[(i+1)%3]
		x1 += keys[(i+2)%3] + i + 1
	}
	return x0, x1
}
