package tensorfile

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// An .npz is a zip archive of .npy files, stored or deflated.

func openNPZ(r io.ReaderAt, size int64) ([]entry, error) {
	z, err := zip.NewReader(r, size)
	if errors.Is(err, zip.ErrFormat) {
		return nil, fmt.Errorf("not an .npz file, or one that is truncated: a zip archive ends with its directory, which these %d bytes do not", size)
	}
	if err != nil {
		return nil, fmt.Errorf("not an .npz file: %w", err)
	}
	entries := make([]entry, 0, len(z.File))
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue // a folder
		}
		entries = append(entries, npzEntry(f))
	}
	return entries, nil
}

func npzEntry(f *zip.File) entry {
	e := entry{Info: Info{Name: strings.TrimSuffix(f.Name, ".npy")}}
	h, err := npzHeader(f)
	if err != nil {
		e.err = err
		return e
	}
	e.DType, e.Shape = h.dtype.name, h.shape
	e.read = func(from, to int) ([]byte, error) {
		if h.fortran && len(h.shape) > 1 && to-from < h.bytes {
			return nil, errors.New("it is stored column by column, of which no rows are read: store it in row-major order")
		}
		rc, err := f.Open()
		if err != nil {
			return nil, err
		}
		defer rc.Close()
		if _, err := readNPYHeader(rc); err != nil {
			return nil, err
		}
		if _, err := io.CopyN(io.Discard, rc, int64(from)); err != nil {
			return nil, fmt.Errorf("damaged: %w", err)
		}
		data, err := readAll(rc, to-from)
		if err != nil {
			return nil, err
		}
		return h.canonical(data), toEnd(rc, h.bytes-to)
	}
	return e
}

// maxRest bounds what is read for its checksum alone.
const maxRest = 1 << 28

// toEnd reads what is left of a member after the bytes that are wanted: that is
// what makes the archive check its checksum. Of a large array from which little
// is wanted, the rest is left unread.
func toEnd(r io.Reader, rest int) error {
	if rest > maxRest {
		return nil
	}
	if n, err := io.Copy(io.Discard, r); err != nil || n > int64(rest) {
		return fmt.Errorf("damaged: %w", errors.Join(err, extra(max(0, n-int64(rest)))))
	}
	return nil
}

func extra(n int64) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d bytes follow the array", n)
}

// npzHeader reads the header of one member and holds it against the size that
// the archive gives.
func npzHeader(f *zip.File) (*npyHeader, error) {
	rc, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	h, err := readNPYHeader(rc)
	if err != nil {
		return nil, err
	}
	if have := f.UncompressedSize64; have != uint64(h.length)+uint64(h.bytes) {
		return nil, fmt.Errorf("%s%v takes %d bytes, the archive holds %d", h.dtype.name, h.shape, h.bytes, int64(have)-int64(h.length))
	}
	return h, nil
}

// deflaters are compressors at rest, each of which has large tables.
var deflaters = sync.Pool{New: func() any {
	c, err := flate.NewWriter(io.Discard, flate.BestSpeed)
	if err != nil {
		panic("tensorfile: " + err.Error()) // there is no such level
	}
	return c
}}

// A deflater compresses one array.
type deflater struct{ *flate.Writer }

// newDeflater has a compressor that takes little time: the digits of numbers that a program
// computes have hardly anything for the others to find.
func newDeflater(w io.Writer) (io.WriteCloser, error) {
	c := deflaters.Get().(*flate.Writer)
	c.Reset(w)
	return deflater{c}, nil
}

func (d deflater) Close() error {
	defer deflaters.Put(d.Writer)
	return d.Writer.Close()
}

func writeNPZ(w io.Writer, arrays []Named) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, newDeflater)
	for _, a := range arrays {
		// The oldest date a zip can have: NumPy writes the same.
		m, err := z.CreateHeader(&zip.FileHeader{Name: a.Name + ".npy", Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)})
		if err != nil {
			return err
		}
		if _, err := m.Write(npyHeaderText(&a.Array)); err != nil {
			return err
		}
		if _, err := m.Write(a.Array.Data); err != nil {
			return err
		}
	}
	return z.Close()
}
