// Package rng generates random bits from a key and a counter, as XLA's
// rng-bit-generator does: the same bits wherever and however often it is asked.
package rng

import "fmt"

// Generate returns n bits, up to 64, for each element of a tensor of the given
// shape, in row-major order, and the state after them. The state is a key and a
// counter, of one number or, with PHILOX, of two.
func Generate(algorithm string, state []uint64, shape []int, n int) (bits, next []uint64, err error) {
	if len(state) != 2 && (len(state) != 3 || algorithm == "THREE_FRY") {
		return nil, nil, fmt.Errorf("a state of %d numbers is none of %s", len(state), algorithm)
	}
	generate := philox
	if algorithm == "THREE_FRY" {
		generate = threeFry
	}
	bits, next = generate(state, shape, n > 32)
	for i := range bits {
		bits[i] &= 1<<n - 1
	}
	return bits, next, nil
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// philox makes four words of each counter, which elements take one after the
// other, wide ones two each. The counter has 128 bits: of a state of two, the
// upper half is the key.
func philox(state []uint64, shape []int, wide bool) (bits, next []uint64) {
	key, counter := state[0], [2]uint64{state[1], state[len(state)%2*2]}
	n := product(shape)
	words := n
	if wide {
		words *= 2
	}
	var all []uint32
	for len(all) < words {
		all = append(all, philoxRounds(counter, key)...)
		if counter[0]++; counter[0] == 0 {
			counter[1]++
		}
	}
	bits = make([]uint64, n)
	for i := range bits {
		if wide {
			bits[i] = uint64(all[2*i]) | uint64(all[2*i+1])<<32
		} else {
			bits[i] = uint64(all[i])
		}
	}
	next = append([]uint64{}, state...)
	next[1] = counter[0]
	if len(state) == 3 {
		next[2] = counter[1]
	}
	return bits, next
}

// philoxRounds is Philox4x32-10.
func philoxRounds(counter [2]uint64, key uint64) []uint32 {
	c := [4]uint32{uint32(counter[0]), uint32(counter[0] >> 32), uint32(counter[1]), uint32(counter[1] >> 32)}
	k := [2]uint32{uint32(key), uint32(key >> 32)}
	for range 10 {
		p, q := uint64(c[0])*0xD2511F53, uint64(c[2])*0xCD9E8D57
		c = [4]uint32{uint32(q>>32) ^ c[1] ^ k[0], uint32(q), uint32(p>>32) ^ c[3] ^ k[1], uint32(p)}
		k[0], k[1] = k[0]+0x9E3779B9, k[1]+0xBB67AE85
	}
	return c[:]
}

// threeFry makes two words of each counter: a wide element takes both. For others,
// a dimension is split in halves, the first even one or else the largest, and one
// half takes the first words, the other the second: next to each other in front of
// the rest of the shape.
func threeFry(state []uint64, shape []int, wide bool) (bits, next []uint64) {
	n := product(shape)
	bits = make([]uint64, n)
	next = []uint64{state[0], state[1]}
	if wide {
		for i := range bits {
			x := threeFryRounds(state[1]+uint64(i), state[0])
			bits[i] = uint64(x[0]) | uint64(x[1])<<32
		}
		next[1] += uint64(n)
		return bits, next
	}
	at := halved(shape)
	before, size, after := 1, 1, 1
	if at >= 0 {
		before, size, after = product(shape[:at]), shape[at], product(shape[at+1:])
	}
	half := (size + 1) / 2
	for b := range before {
		for h := range half {
			for a := range after {
				x := threeFryRounds(state[1]+uint64((b*half+h)*after+a), state[0])
				for lane, word := range x {
					// The halves alternate along a dimension that has been split.
					if k := 2*h + lane; k < size {
						bits[(b*size+k)*after+a] = uint64(word)
					}
				}
			}
		}
	}
	next[1] += uint64(before * half * after)
	return bits, next
}

// halved is the dimension that is split, -1 if there is none.
func halved(shape []int) int {
	at := -1
	for d, n := range shape {
		if n%2 == 0 {
			return d
		}
		if at < 0 || n > shape[at] {
			at = d
		}
	}
	return at
}

// threeFryRounds is [Threefry2x32] of a counter and a key, the low words first.
func threeFryRounds(counter, key uint64) [2]uint32 {
	x0, x1 := Threefry2x32(uint32(key), uint32(key>>32), uint32(counter), uint32(counter>>32))
	return [2]uint32{x0, x1}
}

// Threefry2x32 is the block function of Salmon, Moraes, Dror and Shaw,
// "Parallel random numbers: as easy as 1, 2, 3" (2011), with 20 rounds.
func Threefry2x32(k0, k1, x0, x1 uint32) (uint32, uint32) {
	rotations := [2][4]int{{13, 15, 26, 6}, {17, 29, 16, 24}}
	keys := [3]uint32{k0, k1, 0x1BD11BDA ^ k0 ^ k1}
	x0 += keys[0]
	x1 += keys[1]
	for i := range uint32(5) {
		for _, r := range rotations[i%2] {
			x0 += x1
			x1 = (x1<<r | x1>>(32-r)) ^ x0
		}
		x0 += keys[(i+1)%3]
		x1 += keys[(i+2)%3] + i + 1
	}
	return x0, x1
}
