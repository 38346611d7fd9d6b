package data

import (
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/internal/tensorfile"
	"ppc/ir"
)

func hashed(name string, i int) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	h.Write([]byte{byte(i), byte(i >> 8), byte(i >> 32)})
	return h.Sum64()
}

// An order is a permutation, and another one for each name.
func TestShuffled(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 64, 65, 1000} {
		var orders [2][]int
		for k, name := range []string{"a", "b"} {
			for i := range n {
				orders[k] = append(orders[k], Shuffled(hashed, name, i, n))
			}
			sorted := slices.Sorted(slices.Values(orders[k]))
			for i := range n {
				if sorted[i] != i {
					t.Fatalf("%d: %v is no permutation", n, orders[k])
				}
			}
		}
		if n > 7 && slices.Equal(orders[0], orders[1]) {
			t.Errorf("%d: two orders are the same", n)
		}
	}
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every epoch has every window once, and targets are the tokens one later. Raw files
// and arrays give the same.
func TestBatch(t *testing.T) {
	stream := make([]byte, 3*8+2) // 8 windows of 3 tokens, the last token is read by none
	for i := range stream {
		stream[i] = byte(i)
	}
	npz := filepath.Join(t.TempDir(), "a.npz")
	f, err := os.Create(npz)
	if err != nil {
		t.Fatal(err)
	}
	if err := tensorfile.Write(f, npz, []tensorfile.Named{{Name: "tokens", Array: tensorfile.Array{DType: "ui8", Shape: []int{len(stream)}, Data: stream}}}); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for _, path := range []string{write(t, "a.u8.bin", stream), npz} {
		tokens, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer tokens.Close()
		typ := ir.Tensor(ir.I32, 4, 3)
		var begins []int64
		for n := range 4 { // two epochs
			now, err := tokens.Batch(n, typ, 0, 256, hashed)
			if err != nil {
				t.Fatal(err)
			}
			next, err := tokens.Batch(n, typ, 1, 256, hashed)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 12 {
				if next.Int(i) != now.Int(i)+1 || now.Int(i) != now.Int(i-i%3)+int64(i%3) {
					t.Errorf("batch %d, place %d: token %d, then %d", n, i, now.Int(i), next.Int(i))
				}
			}
			for r := range 4 {
				begins = append(begins, now.Int(3*r))
			}
		}
		first, second := begins[:8], begins[8:]
		if slices.Equal(first, second) {
			t.Errorf("two epochs have one order: %v", first)
		}
		for _, epoch := range [][]int64{first, second} {
			if got := slices.Sorted(slices.Values(epoch)); !slices.Equal(got, []int64{0, 3, 6, 9, 12, 15, 18, 21}) {
				t.Errorf("an epoch has windows at %v", got)
			}
		}
	}
}

func TestBadStreams(t *testing.T) {
	if _, err := Open(write(t, "a.bin", []byte{1, 2, 3})); err == nil || !strings.Contains(err.Error(), "3 bytes are no whole number of 2-byte tokens") {
		t.Errorf("%v, want the number of bytes", err)
	}
	tokens, err := Open(write(t, "a.bin", []byte{1, 0, 2, 1, 3, 0}))
	if err != nil {
		t.Fatal(err)
	}
	defer tokens.Close()
	if err := tokens.Check(3); err == nil || !strings.Contains(err.Error(), "3 tokens, a window takes 4") {
		t.Errorf("%v, want the length of a window", err)
	}
	if _, err := tokens.Batch(0, ir.Tensor(ir.I32, 1, 2), 0, 256, hashed); err == nil || !strings.Contains(err.Error(), "token 1 is 258, the program takes 0 to 255") {
		t.Errorf("%v, want the token that is too large", err)
	}
}
