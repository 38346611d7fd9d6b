package kernel

import (
	"bytes"
	"slices"
	"testing"

	"ppc/ir"
)

// Every tier moves rows of every length and distance, one row or many, and writes no
// byte beside them.
func TestMoveRows(t *testing.T) {
	src := NewMem(1 << 20)
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	lengths := []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 100, 128, 1000, 1024, 1025, 4000}
	for i := range tiers {
		tr := &tiers[i]
		if !tr.has {
			continue
		}
		for _, n := range lengths {
			for _, rows := range []int{0, 1, 2, 5, 300} {
				for _, gap := range [][2]int{{0, 0}, {3, 8}, {64, 1}, {0, -n}} { // the last repeats a row
					dstRow, srcRow := n+gap[0], n+gap[1]
					if (rows+1)*max(dstRow, srcRow) > len(src) {
						continue
					}
					got, want := NewMem(rows*dstRow+n+1), NewMem(rows*dstRow+n+1)
					for r := range rows {
						copy(want[r*dstRow+1:][:n], src[r*srcRow:])
					}
					moveRowsOn(tr, got[1:], dstRow, src, srcRow, n, rows)
					if !bytes.Equal(got, want) {
						t.Fatalf("%s: %d rows of %d bytes, %d and %d apart, differ", tr.name, rows, n, dstRow, srcRow)
					}
				}
			}
		}
	}
}

// Every tier moves boxes of rows, and writes no byte beside them.
func TestMoveBoxes(t *testing.T) {
	src := NewMem(1 << 20)
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	for i := range tiers {
		tr := &tiers[i]
		if !tr.has {
			continue
		}
		for _, n := range []int{0, 3, 4, 6, 8, 12, 16, 20, 32, 48, 64, 100, 1024, 1028} {
			for _, c := range [][5]int{{1, 0, 0, 0, 0}, {2, 5, 3, 1, 0}, {4, 0, 0, 7, -4 * n}, {4, 0, 0, -n, 2 * n}, {3, 64, n, 0, 16}, {40, 1, 0, 3, 5}} {
				rows, dstRow, srcRow := c[0], n+c[1], n+c[3]
				dstBox, srcBox := rows*dstRow+c[2], max(0, rows*srcRow+c[4])
				for _, boxes := range []int{0, 1, 2, 9} {
					got, want := NewMem(boxes*dstBox+n+1), NewMem(boxes*dstBox+n+1)
					for b := range boxes {
						for r := range rows {
							copy(want[b*dstBox+r*dstRow+1:][:n], src[b*srcBox+r*srcRow:])
						}
					}
					moveBoxesOn(tr, got[1:], dstRow, dstBox, src, srcRow, srcBox, n, rows, boxes)
					if !bytes.Equal(got, want) {
						t.Fatalf("%s: %d boxes of %d rows of %d bytes, %v apart, differ", tr.name, boxes, rows, n, c[1:])
					}
				}
			}
		}
	}
}

// Matrices of every size are transposed, and no byte beside them is written.
func TestTransposedCopies(t *testing.T) {
	src := NewMem(1 << 20)
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	sizes := []int{1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 64, 65, 100}
	for _, elem := range []int{1, 2, 4, 8, 16} {
		for _, n0 := range sizes {
			for _, n1 := range sizes {
				for _, gap := range []int{0, 3} {
					for _, c := range [][2][]int{{{n1 + gap, 1}, {1, n0 + gap}}, {{1, n0 + gap}, {n1 + gap, 1}}} {
						got := NewMem(((n0+gap)*(n1+gap) + 7) * elem)
						want := slices.Clone(got)
						for i := range n0 {
							for j := range n1 {
								copy(want[(3+i*c[0][0]+j*c[0][1])*elem:][:elem], src[(2+i*c[1][0]+j*c[1][1])*elem:])
							}
						}
						NewCopy(elem, []int{n0, n1}, c[0], c[1]).Run(got, src, 3, 2)
						if !bytes.Equal(got, want) {
							t.Fatalf("%d by %d elements of %d bytes, %v apart, differ", n0, n1, elem, c)
						}
					}
				}
			}
		}
	}
}

// Every tier fills rows with elements of every size, and writes no byte beside them.
func TestSpreadRows(t *testing.T) {
	src := NewMem(1 << 16)
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	for i := range tiers {
		tr := &tiers[i]
		if !tr.has {
			continue
		}
		for _, size := range []int{1, 2, 4, 8, 16} {
			for _, n := range []int{1, 2, 3, 7, 8, 9, 16, 17, 31, 64, 100, 5000} {
				for _, step := range []int{0, size, 3 * size} {
					const rows = 9
					got, want := NewMem((rows+1)*n*size), NewMem((rows+1)*n*size)
					for r := range rows {
						for j := range n {
							copy(want[(r*n+j)*size:][:size], src[r*step:])
						}
					}
					spreadRowsOn(tr, got[:rows*n*size], src, step, size, n, rows)
					if !bytes.Equal(got, want) {
						t.Fatalf("%s: %d elements of %d bytes, %d apart, differ", tr.name, n, size, step)
					}
					if fillOn(tr, got[:n*size], src[:size]); !bytes.Equal(got[:n*size], bytes.Repeat(src[:size], n)) || !bytes.Equal(got[n*size:], want[n*size:]) {
						t.Fatalf("%s: filling %d elements of %d bytes differs", tr.name, n, size)
					}
				}
			}
		}
	}
}

// TestFoldParts holds what is folded chunk by chunk to be what is folded element by element:
// of rows that are shorter than a chunk, longer, and one.
func TestFoldParts(t *testing.T) {
	for _, c := range [][2]int{{3, 4}, {1000, 12}, {7, foldChunk}, {5, foldChunk + 400}, {1, 3*foldChunk + 8}, {foldChunk/64 + 3, 64}} {
		rows, n := c[0], c[1]
		at, stride := n, 3*n
		var parts []Mem
		for i := range 3 {
			parts = append(parts, numbers(ir.Tensor(ir.F32, (rows*stride)/4+i)))
		}
		acc, want := NewMem(rows*n), NewMem(rows*n)
		for i, x := range View[float32](want) {
			from := (at + i*4/n*stride + i*4%n) / 4
			x = View[float32](parts[0])[from]
			for _, p := range parts[1:] {
				x += View[float32](p)[from]
			}
			View[float32](want)[i] = x
		}
		new(Work).FoldParts(binaries[ir.Add][ir.F32], acc, parts, at, stride, n)
		if !bytes.Equal(acc, want) {
			t.Errorf("%d rows of %d bytes: other numbers", rows, n)
		}
	}
}
