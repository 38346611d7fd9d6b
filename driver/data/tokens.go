// Package data reads streams of tokens and splits them into the windows that training
// takes, in an order that any step has without the ones before.
package data

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"
	"strings"

	"ppc/internal/tensorfile"
	"ppc/ir"
)

// A Tokens is a file with a stream of tokens. Of what it holds, only the windows that
// are asked for are read.
type Tokens struct {
	Path string

	n     int
	elem  ir.DType
	read  func(from, to int) ([]byte, error)
	close func() error
}

// arrayName is the array of a file of arrays that is a stream of tokens, where it has
// one axis.
const arrayName = "tokens"

// widths are the endings of files of raw integers, little end first.
var widths = []struct {
	suffix string
	elem   ir.DType
}{{".u8.bin", ir.UI8}, {".u16.bin", ir.UI16}, {".u32.bin", ir.UI32}, {".i32.bin", ir.I32}, {".bin", ir.UI16}}

// Open opens a stream of tokens: a file of raw integers, by its ending, or a file of
// arrays with a stream. It is nil where the file of arrays has batches instead.
func Open(path string) (*Tokens, error) {
	for _, w := range widths {
		if strings.HasSuffix(path, w.suffix) {
			return openRaw(path, w.elem)
		}
	}
	f, err := tensorfile.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Info(arrayName)
	if err != nil || len(info.Shape) != 1 {
		f.Close()
		return nil, nil
	}
	t := &Tokens{Path: path, n: info.Shape[0], elem: ir.DTypeByName(info.DType), close: f.Close}
	if !t.elem.IsInt() {
		f.Close()
		return nil, fmt.Errorf("%s: %q has elements of type %s, want integers", path, arrayName, info.DType)
	}
	t.read = func(from, to int) ([]byte, error) {
		a, err := f.ReadRows(arrayName, from, to)
		if err != nil {
			return nil, err
		}
		return a.Data, nil
	}
	return t, nil
}

func openRaw(path string, elem ir.DType) (*Tokens, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size()%int64(elem.Size()) != 0 {
		err = fmt.Errorf("%s: %d bytes are no whole number of %d-byte tokens; the ending says their width: .u8.bin, .u16.bin or .bin, .u32.bin, .i32.bin", path, info.Size(), elem.Size())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	t := &Tokens{Path: path, n: int(info.Size()) / elem.Size(), elem: elem, close: f.Close}
	t.read = func(from, to int) ([]byte, error) {
		b := make([]byte, (to-from)*elem.Size())
		_, err := f.ReadAt(b, int64(from)*int64(elem.Size()))
		return b, err
	}
	return t, nil
}

// Close closes the file.
func (t *Tokens) Close() error { return t.close() }

// Later is how many tokens further on an input of a program reads the stream than
// the input tokens; ok is false of inputs that a stream does not have.
func Later(input string) (n int, ok bool) {
	switch input {
	case "tokens":
		return 0, true
	case "targets":
		return 1, true
	}
	return 0, false
}

// Check reports whether there are windows of length tokens, and what follows each.
func (t *Tokens) Check(length int) error {
	if t.n <= length {
		return fmt.Errorf("%s: %d tokens, a window takes %d", t.Path, t.n, length+1)
	}
	return nil
}

// A Random gives number i of the random numbers that have a name.
type Random func(name string, i int) uint64

// Batch is batch n of an input of type typ, whose last axis is the sequence, read
// later tokens further on. Tokens are below limit, unless that is 0. Every epoch
// takes all windows of the stream once, in an order of its own, and the next epoch
// begins where a batch leaves off.
func (t *Tokens) Batch(n int, typ *ir.Type, later, limit int, random Random) (*ir.Literal, error) {
	length := typ.Shape[typ.Rank()-1]
	rows := typ.NumElements() / length
	windows := (t.n - 1) / length
	l := &ir.Literal{Type: typ, Data: make([]byte, 0, typ.Bytes())}
	element := make([]byte, typ.Elem.Size())
	for r := range rows {
		k := n*rows + r
		at := Shuffled(random, fmt.Sprint("order@", k/windows), k%windows, windows)*length + later
		raw, err := t.read(at, at+length)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Path, err)
		}
		for i := range length {
			v := t.token(raw, i)
			if limit > 0 && (v < 0 || v >= int64(limit)) {
				return nil, fmt.Errorf("%s: token %d is %d, the program takes 0 to %d", t.Path, at+i, v, limit-1)
			}
			typ.Elem.PutInt(element, v)
			l.Data = append(l.Data, element...)
		}
	}
	return l, nil
}

// token is token i of raw.
func (t *Tokens) token(raw []byte, i int) int64 {
	switch size := t.elem.Size(); {
	case t.elem == ir.UI8:
		return int64(raw[i])
	case t.elem == ir.UI16:
		return int64(binary.LittleEndian.Uint16(raw[i*size:]))
	case t.elem == ir.UI32:
		return int64(binary.LittleEndian.Uint32(raw[i*size:]))
	default:
		l := ir.Literal{Type: ir.Tensor(t.elem, len(raw)/size), Data: raw}
		return l.Int(i)
	}
}

// Shuffled is where number i below n goes in the permutation called name: a Feistel
// network of four rounds on the next even number of bits, gone through again as long
// as it leads to a number that is not below n. So any place of an order is had
// without the others.
func Shuffled(random Random, name string, i, n int) int {
	half := max(1, (bits.Len(uint(n-1))+1)/2)
	low := uint64(1)<<half - 1
	x := uint64(i)
	for {
		left, right := x>>half, x&low
		for r := range 4 {
			left, right = right, left^random(name, r<<32|int(right))&low
		}
		if x = left<<half | right; x < uint64(n) {
			return int(x)
		}
	}
}
