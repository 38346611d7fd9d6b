// Package tensorfile reads and writes files of named arrays: NumPy's .npz and
// Hugging Face's .safetensors, told apart by extension.
//
// Opening a file reads headers only. An array is read when it is asked for, so
// a caller can compare type and shape first, and what a file claims to hold
// costs no memory until its bytes have been seen.
package tensorfile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An Array is a dense array: Data holds its elements in row-major order,
// little-endian. DType is spelled as in MLIR: f32, bf16, i8, ui8, i1,
// complex<f32>. A boolean takes one byte.
type Array struct {
	DType string
	Shape []int
	Data  []byte
}

// An Info is what a file's headers say of one array.
type Info struct {
	Name  string
	DType string
	Shape []int
}

// A Named is an array and its name in a file.
type Named struct {
	Name  string
	Array Array
}

// A File is an open file of arrays. It is safe for concurrent use.
type File struct {
	Path    string
	entries []entry
	index   map[string]int
	closer  io.Closer
}

// An entry is one array of a file: what is known of it, or why it cannot be
// read, and how to read it.
type entry struct {
	Info
	err  error
	read func(from, to int) ([]byte, error) // the bytes of the elements from one to another
}

// A format is one way to keep arrays in a file.
type format struct {
	ext   string
	open  func(r io.ReaderAt, size int64) ([]entry, error)
	write func(w io.Writer, arrays []Named) error
}

var formats = [...]format{
	{".npz", openNPZ, writeNPZ},
	{".safetensors", openSafetensors, writeSafetensors},
}

func formatOf(path string) (format, error) {
	var known []string
	for _, f := range formats {
		if strings.EqualFold(filepath.Ext(path), f.ext) {
			return f, nil
		}
		known = append(known, f.ext)
	}
	return format{}, fmt.Errorf("%s: arrays are kept in %s files", path, strings.Join(known, " and "))
}

// CheckName reports whether the name has an extension that can be read and
// written, as an error that names those that can.
func CheckName(path string) error {
	_, err := formatOf(path)
	return err
}

// Open opens the file, or the files of an index, and reads their headers.
func Open(path string) (*File, error) {
	if IsIndex(path) {
		return openIndex(path)
	}
	format, err := formatOf(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&(os.ModeNamedPipe|os.ModeDevice|os.ModeSocket) != 0 {
		return nil, fmt.Errorf("%s: arrays are read from regular files, not from a pipe or device", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	file, err := openFile(f, path, format)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

func openFile(f *os.File, path string, format format) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errors.New("is a folder")
	}
	entries, err := format.open(f, info.Size())
	if err != nil {
		return nil, err
	}
	file := &File{Path: path, entries: entries, index: make(map[string]int, len(entries)), closer: f}
	for i, e := range entries {
		if _, ok := file.index[e.Name]; ok {
			return nil, fmt.Errorf("array %q is there twice", e.Name)
		}
		file.index[e.Name] = i
	}
	return file, nil
}

// Close closes the file. Arrays that were read stay.
func (f *File) Close() error { return f.closer.Close() }

// Names returns the names of the arrays, in the file's order.
func (f *File) Names() []string {
	names := make([]string, len(f.entries))
	for i, e := range f.entries {
		names[i] = e.Name
	}
	return names
}

// Has reports whether there is an array of that name.
func (f *File) Has(name string) bool {
	_, ok := f.index[name]
	return ok
}

// Info returns type and shape of an array.
func (f *File) Info(name string) (Info, error) {
	i, ok := f.index[name]
	if !ok {
		return Info{}, fmt.Errorf("%s: there is no array %q", f.Path, name)
	}
	if err := f.entries[i].err; err != nil {
		return Info{}, fmt.Errorf("%s: array %q: %w", f.Path, name, err)
	}
	return f.entries[i].Info, nil
}

// Read returns an array.
func (f *File) Read(name string) (*Array, error) {
	info, err := f.Info(name)
	if err != nil {
		return nil, err
	}
	return f.read(info, 0, math.MaxInt)
}

// ReadRows returns the part of an array that has the rows from one to another
// on its first axis, and takes memory for that part only.
func (f *File) ReadRows(name string, from, to int) (*Array, error) {
	info, err := f.Info(name)
	if err != nil {
		return nil, err
	}
	if len(info.Shape) == 0 || from < 0 || from > to || to > info.Shape[0] {
		return nil, fmt.Errorf("%s: array %q of shape %v has no rows %d to %d", f.Path, name, info.Shape, from, to)
	}
	return f.read(info, from, to)
}

func (f *File) read(info Info, from, to int) (*Array, error) {
	row, _ := byName(info.DType)
	shape := slices.Clone(info.Shape)
	n, err := byteSize(shape, row.size)
	first, last := 0, n
	if err == nil && len(shape) > 0 && to-from < shape[0] {
		each := n / shape[0]
		first, last, shape[0] = from*each, to*each, to-from
	}
	var data []byte
	if err == nil {
		data, err = f.entries[f.index[info.Name]].read(first, last)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: array %q: %w", f.Path, info.Name, err)
	}
	return &Array{info.DType, shape, data}, nil
}

// Write writes the arrays, in this order, to w in the format that the
// extension of path names. Equal arrays give equal bytes.
func Write(w io.Writer, path string, arrays []Named) error {
	format, err := formatOf(path)
	if err != nil {
		return err
	}
	seen := make(map[string]bool, len(arrays))
	for _, a := range arrays {
		if seen[a.Name] {
			return fmt.Errorf("array %q is there twice", a.Name)
		}
		seen[a.Name] = true
		if err := a.Array.check(); err != nil {
			return fmt.Errorf("array %q: %w", a.Name, err)
		}
	}
	return format.write(w, arrays)
}

func (a *Array) check() error {
	row, ok := byName(a.DType)
	if !ok {
		return fmt.Errorf("element type %s cannot be written", a.DType)
	}
	n, err := byteSize(a.Shape, row.size)
	if err != nil {
		return err
	}
	if n != len(a.Data) {
		return fmt.Errorf("%s%v takes %d bytes, there are %d", a.DType, a.Shape, n, len(a.Data))
	}
	return nil
}

// byteSize is the number of bytes of an array, or an error where it is not a
// number of bytes that memory can have.
func byteSize(shape []int, elem int) (int, error) {
	n := elem
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v has a negative size", shape)
		}
	}
	if slices.Contains(shape, 0) {
		return 0, nil
	}
	for _, d := range shape {
		if n > math.MaxInt/d {
			return 0, fmt.Errorf("shape %v is too large", shape)
		}
		n *= d
	}
	return n, nil
}

// readAll reads exactly n bytes of r. It takes memory as bytes arrive, so a
// stream that is shorter than it claims does not cost what it claims.
func readAll(r io.Reader, n int) ([]byte, error) {
	const step = 1 << 20
	data := make([]byte, 0, min(n, step))
	for len(data) < n {
		data = slices.Grow(data, min(n-len(data), max(len(data), step)))
		free := data[len(data):min(n, cap(data))]
		k, err := io.ReadFull(r, free)
		data = data[:len(data)+k]
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil, fmt.Errorf("truncated after %d of %d bytes", len(data), n)
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}
