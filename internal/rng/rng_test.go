package rng

import (
	"slices"
	"testing"
)

// The numbers are what XLA's CPU back end gives.
func TestGenerate(t *testing.T) {
	const key = 0x1122334455667788
	for _, c := range []struct {
		algorithm string
		shape     []int
		bits      int
		counter   uint64
		want      []uint64
	}{
		{"DEFAULT", []int{7}, 32, 7, []uint64{0x31580956, 0x206d3ba8, 0xf94abb95, 0xf8407f93, 0x4713c5ac, 0xb6a2f94c, 0xe9dc9c40}},
		{"PHILOX", nil, 32, 6, []uint64{0x31580956}},
		{"PHILOX", []int{3}, 64, 7, []uint64{0x206d3ba831580956, 0xf8407f93f94abb95, 0xb6a2f94c4713c5ac}},
		{"PHILOX", []int{3}, 8, 6, []uint64{0x56, 0xa8, 0x95}},
		{"THREE_FRY", []int{7}, 32, 9, []uint64{0x9c7b114a, 0x1baadcd0, 0x964b16c6, 0x642f03b0, 0x438e47da, 0x4ac59abf, 0xd555eba4}},
		{"THREE_FRY", []int{2, 3}, 32, 8, []uint64{0x9c7b114a, 0x964b16c6, 0x438e47da, 0x1baadcd0, 0x642f03b0, 0x4ac59abf}},
		{"THREE_FRY", []int{3, 5}, 32, 14, []uint64{0x9c7b114a, 0x1baadcd0, 0x964b16c6, 0x642f03b0, 0x438e47da, 0xd555eba4, 0xa3674753, 0x16530ae5, 0x37064224, 0xd12a5dad,
			0x72eac708, 0x4d4643f1, 0x68ab5322, 0xe1fca285, 0x90fd9271}},
		{"THREE_FRY", nil, 32, 6, []uint64{0x9c7b114a}},
		{"THREE_FRY", []int{3}, 64, 8, []uint64{0x1baadcd09c7b114a, 0x642f03b0964b16c6, 0x4ac59abf438e47da}},
		{"THREE_FRY", []int{3}, 16, 7, []uint64{0x114a, 0xdcd0, 0x16c6}},
	} {
		got, next, err := Generate(c.algorithm, []uint64{key, 5}, c.shape, c.bits)
		if err != nil || !slices.Equal(got, c.want) || !slices.Equal(next, []uint64{key, c.counter}) {
			t.Errorf("%s %v %d: got %#x, then %#x, %v", c.algorithm, c.shape, c.bits, got, next, err)
		}
	}
	if _, _, err := Generate("THREE_FRY", []uint64{1, 2, 3}, nil, 32); err == nil {
		t.Error("a state of three numbers is taken")
	}
}

// The vectors that the authors of threefry publish.
func TestThreefry(t *testing.T) {
	for _, c := range []struct{ k0, k1, x0, x1, want0, want1 uint32 }{
		{0, 0, 0, 0, 0x6b200159, 0x99ba4efe},
		{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x1cb996fc, 0xbb002be7},
		{0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3, 0xc4923a9c, 0x483df7a0},
	} {
		y0, y1 := Threefry2x32(c.k0, c.k1, c.x0, c.x1)
		if y0 != c.want0 || y1 != c.want1 {
			t.Errorf("threefry(%x %x, %x %x) = %x %x, want %x %x", c.k0, c.k1, c.x0, c.x1, y0, y1, c.want0, c.want1)
		}
	}
}
