package tensorfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const npyMagic = "\x93NUMPY"

// maxNPYHeader is far beyond what a plain array needs; NumPy's own reader
// refuses headers of more than 10,000 bytes.
const maxNPYHeader = 10_000

// An npyHeader is the header of an .npy file.
type npyHeader struct {
	dtype   dtype
	big     bool // big-endian
	fortran bool // column-major
	shape   []int
	bytes   int // of the elements
	length  int // of the header
}

// readNPYHeader reads the header and leaves r at the first element.
func readNPYHeader(r io.Reader) (*npyHeader, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || string(head[:6]) != npyMagic {
		return nil, errors.New("not an .npy array")
	}
	var size [4]byte
	sizeBytes := 4
	switch version := head[6]; version {
	case 1:
		sizeBytes = 2
	case 2, 3:
	default:
		return nil, fmt.Errorf(".npy version %d, want 1, 2 or 3", version)
	}
	if _, err := io.ReadFull(r, size[:sizeBytes]); err != nil {
		return nil, errors.New("the .npy header is truncated")
	}
	n := int64(binary.LittleEndian.Uint32(size[:]))
	if n > maxNPYHeader {
		return nil, fmt.Errorf("the .npy header claims %d bytes, at most %d are read", n, maxNPYHeader)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, errors.New("the .npy header is truncated")
	}
	h, err := parseNPYHeader(string(text))
	if err != nil {
		return nil, err
	}
	h.length = len(head) + sizeBytes + len(text)
	return h, nil
}

// npyDict matches the one dictionary that NumPy writes: three keys in any
// order, a plain type. Python would accept much else.
var (
	npyDict    = regexp.MustCompile(`^\s*\{(.*)\}\s*$`)
	npyDescr   = regexp.MustCompile(`['"]descr['"]\s*:\s*(['"]([^'"]*)['"]|[^,]*)`)
	npyFortran = regexp.MustCompile(`['"]fortran_order['"]\s*:\s*(True|False)`)
	npyShape   = regexp.MustCompile(`['"]shape['"]\s*:\s*\(([0-9L,\s]*)\)`)
)

func parseNPYHeader(text string) (*npyHeader, error) {
	dict := npyDict.FindStringSubmatch(text)
	if dict == nil {
		return nil, errors.New("the .npy header is no dictionary")
	}
	descr, fortran, shape := npyDescr.FindStringSubmatch(dict[1]), npyFortran.FindStringSubmatch(dict[1]), npyShape.FindStringSubmatch(dict[1])
	for _, key := range []struct {
		name, want string
		found      []string
	}{
		{"descr", "a type", descr}, {"fortran_order", "True or False", fortran}, {"shape", "a tuple of sizes, such as (2, 3)", shape},
	} {
		switch {
		case key.found != nil:
		case strings.Contains(dict[1], key.name):
			return nil, fmt.Errorf("%s in the .npy header: want %s", key.name, key.want)
		default:
			return nil, fmt.Errorf("the .npy header lacks %s", key.name)
		}
	}
	h := &npyHeader{fortran: fortran[1] == "True", shape: []int{}}
	name := descr[2]
	if name == "" {
		return nil, fmt.Errorf("elements of the structured type %s; have %s", strings.TrimSpace(descr[1]), npyTypes())
	}
	var ok bool
	if h.dtype, ok = byNPY(strings.TrimLeft(name, "<>|=")); !ok {
		return nil, fmt.Errorf("elements of NumPy's type %q; have %s", name, npyTypes())
	}
	h.big = name[0] == '>'
	for field := range strings.SplitSeq(shape[1], ",") {
		field = strings.TrimSuffix(strings.TrimSpace(field), "L") // Python 2 wrote 3L
		if field == "" {
			continue
		}
		d, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("shape (%s): %s is no size", shape[1], field)
		}
		h.shape = append(h.shape, d)
	}
	var err error
	h.bytes, err = byteSize(h.shape, h.dtype.size)
	return h, err
}

func npyTypes() string { return spellings(func(t dtype) string { return t.npy }) }

// canonical returns the elements in row-major order, little-endian.
func (h *npyHeader) canonical(data []byte) []byte {
	if h.big && h.dtype.part > 1 {
		for i := 0; i+h.dtype.part <= len(data); i += h.dtype.part {
			slices.Reverse(data[i : i+h.dtype.part])
		}
	}
	if h.fortran && len(h.shape) > 1 {
		return rowMajor(data, h.shape, h.dtype.size)
	}
	return data
}

// rowMajor reorders column-major elements: it walks the result in order and
// keeps the place of the element in the source.
func rowMajor(data []byte, shape []int, size int) []byte {
	out := make([]byte, 0, len(data))
	stride := make([]int, len(shape))
	n := size
	for i, d := range shape {
		stride[i] = n
		n *= d
	}
	index, at := make([]int, len(shape)), 0
	for len(out) < len(data) {
		out = append(out, data[at:at+size]...)
		for i := len(shape) - 1; i >= 0; i-- {
			index[i]++
			at += stride[i]
			if index[i] < shape[i] {
				break
			}
			at -= shape[i] * stride[i]
			index[i] = 0
		}
	}
	return out
}

// npyHeaderText is the header of an array, padded so that the elements start
// at a multiple of 64 bytes, as NumPy does.
func npyHeaderText(a *Array) []byte {
	row, _ := byName(a.DType)
	order := "<"
	if row.size == 1 {
		order = "|"
	}
	dims := make([]string, len(a.Shape))
	for i, d := range a.Shape {
		dims[i] = strconv.Itoa(d)
	}
	shape := strings.Join(dims, ", ")
	if len(dims) == 1 {
		shape += ","
	}
	var b bytes.Buffer
	dict := fmt.Sprintf("{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }", order, row.npy, shape)
	const before = len(npyMagic) + 4
	pad := 63 - (before+len(dict))%64
	b.WriteString(npyMagic + "\x01\x00")
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(dict)+pad+1)))
	b.WriteString(dict)
	b.WriteString(strings.Repeat(" ", pad))
	b.WriteByte('\n')
	return b.Bytes()
}
