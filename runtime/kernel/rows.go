package kernel

import "unsafe"

// Rows of at most shortRow bytes are moved by assembly, many in one call; what is
// longer is worth a call of its own. One call moves about rowsBytes, so that it ends
// soon: it cannot be preempted.
const (
	shortRow  = 1024
	rowsBytes = 1 << 18
)

// MoveRows copies rows of n bytes each, which are dstRow and srcRow bytes apart;
// the first ones begin where dst and src do.
func MoveRows(dst Mem, dstRow int, src Mem, srcRow, n, rows int) {
	moveRowsOn(fastest, dst, dstRow, src, srcRow, n, rows)
}

func moveRowsOn(t *tier, dst Mem, dstRow int, src Mem, srcRow, n, rows int) {
	if n == 0 || rows == 0 {
		return
	}
	if t.moveRows == nil || rows == 1 || n < 4 || n > shortRow {
		d, s := 0, 0
		for range rows {
			copy(dst[d:d+n], src[s:s+n])
			d += dstRow
			s += srcRow
		}
		return
	}
	most := max(1, rowsBytes/n)
	for at := 0; at < rows; at += most {
		m := min(most, rows-at)
		to, from := dst[at*dstRow:], src[at*srcRow:]
		_, _ = to[(m-1)*dstRow+n-1], from[(m-1)*srcRow+n-1]
		t.moveRows(&to[0], dstRow, &from[0], srcRow, n, m, 0, 0, 1)
	}
}

// moveBoxes is MoveRows for so many boxes of rows, which are dstBox and srcBox bytes apart.
func moveBoxes(dst Mem, dstRow, dstBox int, src Mem, srcRow, srcBox, n, rows, boxes int) {
	moveBoxesOn(fastest, dst, dstRow, dstBox, src, srcRow, srcBox, n, rows, boxes)
}

func moveBoxesOn(t *tier, dst Mem, dstRow, dstBox int, src Mem, srcRow, srcBox, n, rows, boxes int) {
	if n == 0 || rows == 0 || boxes == 0 {
		return
	}
	if t.moveRows == nil || boxes == 1 || n < 4 || n > shortRow || n*rows > rowsBytes || dstBox < 0 || srcBox < 0 {
		d, s := 0, 0
		for range boxes {
			moveRowsOn(t, dst[d:], dstRow, src[s:], srcRow, n, rows)
			d += dstBox
			s += srcBox
		}
		return
	}
	most := rowsBytes / (n * rows)
	for at := 0; at < boxes; at += most {
		m := min(most, boxes-at)
		to, from := dst[at*dstBox:], src[at*srcBox:]
		_, _ = to[(m-1)*dstBox+(rows-1)*dstRow+n-1], from[(m-1)*srcBox+(rows-1)*srcRow+n-1]
		t.moveRows(&to[0], dstRow, &from[0], srcRow, n, rows, dstBox-rows*dstRow, srcBox-rows*srcRow, m)
	}
}

// spreadRowsOn fills rows of n elements of size bytes, one after the other, each with
// one element of src; these are step bytes apart.
func spreadRowsOn(t *tier, dst, src Mem, step, size, n, rows int) {
	f, bytes := t.spreadRows[size], n*size
	if f == nil || bytes < 32 || bytes > 1<<14 {
		for i := range rows {
			Fill(dst[i*bytes:(i+1)*bytes], src[i*step:i*step+size])
		}
		return
	}
	most := max(1, rowsBytes/bytes)
	for at := 0; at < rows; at += most {
		m := min(most, rows-at)
		to, from := dst[at*bytes:(at+m)*bytes], src[at*step:]
		_ = from[(m-1)*step+size-1]
		f(&to[0], &from[0], step, bytes, m)
	}
}

// fillOn is Fill on tier t.
func fillOn(t *tier, dst, v Mem) {
	if n := len(dst); n >= 64 && n <= rowsBytes && t.spreadRows[len(v)] != nil {
		t.spreadRows[len(v)](unsafe.SliceData(dst), unsafe.SliceData(v), 0, n, 1)
		return
	}
	fills[len(v)](dst, v)
}
