// Package lines finds the lines and columns of places in a text.
package lines

import (
	"slices"
	"strings"
)

// An Index finds lines. Asked for places in ascending order, as a parser
// does, it passes over the source once.
type Index struct {
	starts     []int // of every stride-th line found so far, from the first one on
	first      int   // counted from 0, as last is
	last, from int   // the line found last, and where it starts
	until      int   // its newline, where that is known
}

const stride = 64

// From is the index of a text for places from start on, where a line begins, which is counted
// from 0.
func From(line, start int) Index {
	return Index{starts: []int{start}, first: line, last: line, from: start}
}

// next is where the line after the one that starts at from does, which is before
// offset at or there; -1 where there is none.
func (*Index) next(src string, from, at int) int {
	if from >= len(src) {
		return -1
	}
	n := strings.IndexByte(src[from:], '\n')
	if n < 0 || from+n >= at {
		return -1
	}
	return from + n + 1
}

// Find returns line and column, from 1, of offset at.
func (x *Index) Find(src string, at int) (line, col int) {
	if x.starts == nil {
		x.starts = []int{0}
	}
	if x.from <= at && at <= x.until {
		return x.last + 1, at - x.from + 1
	}
	if at < x.from {
		k, ok := slices.BinarySearch(x.starts, at)
		if !ok {
			k--
		}
		line, from := x.first+k*stride, x.starts[k]
		for n := x.next(src, from, at); n >= 0; n = x.next(src, from, at) {
			line, from = line+1, n
		}
		return line + 1, at - from + 1
	}
	for n := x.next(src, x.from, at); n >= 0; n = x.next(src, x.from, at) {
		x.last, x.from = x.last+1, n
		if (x.last-x.first)%stride == 0 {
			x.starts = append(x.starts, n)
		}
	}
	if n := strings.IndexByte(src[min(at, len(src)):], '\n'); n >= 0 {
		x.until = at + n
	}
	return x.last + 1, at - x.from + 1
}

// Text is a line that Find has returned.
func (x *Index) Text(src string, line int) string {
	start := x.starts[(line-1)/stride]
	for range (line - 1) % stride {
		start += strings.IndexByte(src[start:], '\n') + 1
	}
	if n := strings.IndexByte(src[start:], '\n'); n >= 0 {
		return src[start : start+n]
	}
	return src[start:]
}
