package tensorfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// samples has one array of every type that a format can spell, among them a
// scalar, an empty array and names with slashes.
func samples(spelling func(dtype) string) []Named {
	arrays := []Named{
		{"scalar", Array{"f32", []int{}, []byte{0, 0, 128, 63}}},
		{"empty", Array{"f64", []int{3, 0}, []byte{}}},
	}
	for _, t := range dtypes {
		if spelling(t) == "" || spelling(t) == Unsaid && t.name != Unsaid {
			continue
		}
		data := make([]byte, 6*t.size)
		for i := range data {
			data[i] = byte(i % 2)
		}
		arrays = append(arrays, Named{"of/" + t.name, Array{t.name, []int{2, 3}, data}})
	}
	return arrays
}

func readFile(t *testing.T, path string) []Named {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []Named
	for _, name := range f.Names() {
		a, err := f.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Named{name, *a})
	}
	return out
}

// encode writes arrays to a file and returns its bytes.
func encode(t *testing.T, path string, arrays []Named) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, path, arrays); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	for ext, spelling := range map[string]func(dtype) string{
		".npz":         func(t dtype) string { return t.npy },
		".safetensors": func(t dtype) string { return t.st },
	} {
		want, path := samples(spelling), filepath.Join(t.TempDir(), "a"+ext)
		first := encode(t, path, want)
		if diff := cmp.Diff(want, readFile(t, path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", ext, diff)
		}
		if second := encode(t, path, want); !bytes.Equal(first, second) {
			t.Errorf("%s: equal arrays gave different bytes", ext)
		}
	}
}

// npy is one .npy file, with its header as given.
func npy(dict string, data ...byte) []byte {
	b := []byte(npyMagic + "\x01\x00")
	b = binary.LittleEndian.AppendUint16(b, uint16(len(dict)))
	return append(append(b, dict...), data...)
}

// npz is an archive of one member called a.npy.
func npz(member []byte) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, _ := z.Create("a.npy")
	w.Write(member)
	z.Close()
	return b.Bytes()
}

func readOne(t *testing.T, ext string, file []byte) (*Array, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f"+ext)
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Read("a")
}

// What NumPy's extension package writes of types that NumPy lacks.
func TestNPYExtensions(t *testing.T) {
	for descr, want := range map[string]string{"<f1": "f8E5M2", "|V1": Unsaid, "<V1": Unsaid} {
		a, err := readOne(t, ".npz", npz(npy("{'descr': '"+descr+"', 'fortran_order': False, 'shape': (2,), }", 1, 2)))
		if err != nil || a.DType != want {
			t.Errorf("%s is read as %v, %v, want %s", descr, a, err, want)
		}
	}
}

func TestNPYOrders(t *testing.T) {
	want := &Array{"i16", []int{2, 3}, []byte{1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0}}
	for name, member := range map[string][]byte{
		"C":       npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }", 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0),
		"Fortran": npy("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }", 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6, 0),
		"big":     npy("{'shape': (2L, 3L), 'fortran_order': False, 'descr': '>i2'}\n", 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6),
	} {
		got, err := readOne(t, ".npz", npz(member))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func safetensors(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func TestErrors(t *testing.T) {
	full := npz(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 0, 0, 0, 0))
	for _, c := range []struct {
		name, ext string
		file      []byte
		want      string
	}{
		{"truncated npz", ".npz", full[:len(full)-10], "truncated"},
		{"empty npz", ".npz", nil, "truncated"},
		{"text", ".npz", npz([]byte("hello")), "not an .npy array"},
		{"object", ".npz", npz(npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }")), `NumPy's type "|O"; have b1 i1`},
		{"structured", ".npz", npz(npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }")), "structured type"},
		{"unicode", ".npz", npz(npy("{'descr': '<U5', 'fortran_order': False, 'shape': (1,), }")), `"<U5"`},
		{"too few bytes", ".npz", npz(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 0, 0, 0, 0)), "f32[2] takes 8 bytes, the archive holds 4"},
		{"huge", ".npz", npz(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }")), "too large"},
		{"huge but possible", ".npz", npz(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999,), }")), "the archive holds 0"},
		{"size", ".npz", npz(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }")), "is no size"},
		{"no shape", ".npz", npz(npy("{'descr': '<f4', 'fortran_order': False}")), "lacks shape"},
		{"negative npy", ".npz", npz(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }")), "shape in the .npy header: want a tuple of sizes"},
		{"fraction", ".safetensors", safetensors(`{"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}}`, 0), `array "a": shape: found a JSON number 1.5, want a whole number`},
		{"type of no text", ".safetensors", safetensors(`{"a":{"dtype":8,"shape":[1],"data_offsets":[0,1]}}`, 0), `array "a": dtype: found a JSON number, want a string`},
		{"metadata", ".safetensors", safetensors(`{"__metadata__":{"x":3}}`), "__metadata__: found a JSON number, want a string"},
		{"broken JSON", ".safetensors", safetensors(`{"a":{"dtype":x}}`, 0), "no JSON at byte"},
		{"no dictionary", ".npz", npz(npy("nonsense")), "no dictionary"},
		{"missing", ".safetensors", safetensors(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 0), `no array "a"`},
		{"short", ".safetensors", []byte{1, 2}, "2 bytes"},
		{"truncated header", ".safetensors", safetensors(`{"a":{"dtype":"U8"`)[:12], "truncated"},
		{"huge header", ".safetensors", binary.LittleEndian.AppendUint64(nil, 1<<60), "at most 100000000"},
		{"no JSON", ".safetensors", safetensors(`[]`), "not a JSON object"},
		{"no end", ".safetensors", safetensors(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}`, 0), "does not end"},
		{"out of range", ".safetensors", safetensors(`{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}`, 0), "bytes 0 to 9, the file has 1"},
		{"negative", ".safetensors", safetensors(`{"a":{"dtype":"U8","shape":[9],"data_offsets":[-9,0]}}`, 0), "bytes -9 to 0"},
		{"wrong size", ".safetensors", safetensors(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 0, 0, 0, 0), "f32[2] takes 8 bytes, the header gives it 4"},
		{"negative size", ".safetensors", safetensors(`{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,4]}}`, 0, 0, 0, 0), "negative"},
		{"overlap", ".safetensors", safetensors(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 0, 0, 0), `"a" and "b" overlap`},
		{"hole", ".safetensors", safetensors(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}}`, 0, 0, 0, 0, 0), `no array has bytes 2 to 4, before array "b"`},
		{"hole before", ".safetensors", safetensors(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 0, 0, 0), `no array has bytes 0 to 1, before array "a"`},
		{"hole and nothing", ".safetensors", safetensors(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"c":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}}`, 0, 0), `no array has bytes 1 to 2, before array "c"`},
		{"rest", ".safetensors", safetensors(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 0, 0, 0), "no array has bytes 2 to 3, the last"},
		{"only a rest", ".safetensors", safetensors(`{}`, 0), "no array has bytes 0 to 1, the last"},
		{"no shape", ".safetensors", safetensors(`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, 0), `array "a": there is no shape`},
		{"places", ".safetensors", safetensors(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}}`, 0), `array "a": data_offsets has 3 numbers, want 2`},
		{"more JSON", ".safetensors", safetensors(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}} {}`, 0), "3 bytes follow the JSON object"},
		{"twice", ".safetensors", safetensors(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 0), "twice"},
		{"type", ".safetensors", safetensors(`{"a":{"dtype":"F4","shape":[1],"data_offsets":[0,1]}}`, 0), `type "F4"; have BOOL`},
		{"extension", ".pt", nil, "kept in .npz and .safetensors files"},
	} {
		_, err := readOne(t, c.ext, c.file)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

func TestDamagedData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.npz")
	data := make([]byte, 4096)
	for i := range data {
		data[i] = byte(i * i)
	}
	file := encode(t, path, []Named{{"a", Array{"ui8", []int{len(data)}, data}}})
	file[len(file)/2] ^= 0x55
	if _, err := readOne(t, ".npz", file); err == nil {
		t.Error("damaged elements were read without an error")
	}
}

func TestWriteErrors(t *testing.T) {
	one := Array{"ui8", []int{1}, []byte{0}}
	for _, c := range []struct {
		file   string
		arrays []Named
		want   string
	}{
		{"a.npz", []Named{{"x", one}, {"x", one}}, "twice"},
		{"a.safetensors", []Named{{"x", Array{"complex<f64>", []int{1}, make([]byte, 16)}}}, ".safetensors has no element type"},
		{"a.npz", []Named{{"x", Array{"f32", []int{2}, make([]byte, 4)}}}, "takes 8 bytes, there are 4"},
		{"a.csv", nil, "kept in"},
	} {
		err := Write(io.Discard, c.file, c.arrays)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.file, err, c.want)
		}
	}
}

// A part of an array is that part of the whole, in both formats; what a part
// of the archive has not been read for is still checked.
func TestReadRows(t *testing.T) {
	data := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	for _, ext := range []string{".npz", ".safetensors"} {
		path := filepath.Join(t.TempDir(), "x"+ext)
		file := encode(t, path, []Named{{"before", Array{"i8", []int{1}, []byte{9}}}, {"a", Array{"i16", []int{3, 2}, data}}, {"s", Array{"i8", []int{}, []byte{1}}}})
		if err := os.WriteFile(path, file, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for from := range 4 {
			for to := from; to <= 3; to++ {
				got, err := f.ReadRows("a", from, to)
				if err != nil {
					t.Fatal(err)
				}
				if want := (&Array{"i16", []int{to - from, 2}, data[4*from : 4*to]}); !cmp.Equal(got, want) {
					t.Errorf("%s: rows %d to %d are %v, want %v", ext, from, to, got, want)
				}
			}
		}
		for _, c := range []struct {
			name     string
			from, to int
		}{{"a", 2, 4}, {"a", -1, 1}, {"a", 2, 1}, {"s", 0, 0}, {"b", 0, 0}} {
			if _, err := f.ReadRows(c.name, c.from, c.to); err == nil {
				t.Errorf("%s: rows %d to %d of %s are there", ext, c.from, c.to, c.name)
			}
		}
	}
}

// fuzzOpen reads whatever an input claims to hold. Reading is bounded by what
// deflate can expand the input to, which is what the archive really holds.
func fuzzOpen(f *testing.F, ext string) {
	format, err := formatOf(ext)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		entries, err := format.open(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.err != nil {
				continue
			}
			row, ok := byName(e.DType)
			n, err := byteSize(e.Shape, row.size)
			if !ok || err != nil {
				t.Fatalf("%s%v: %v", e.DType, e.Shape, err)
			}
			data, err := e.read(0, n)
			if err != nil {
				continue
			}
			if len(data) > 1100*len(file) {
				t.Fatalf("%d bytes came out of %d", len(data), len(file))
			}
			if n != len(data) {
				t.Fatalf("%s%v with %d bytes", e.DType, e.Shape, len(data))
			}
		}
	})
}

func FuzzNPZ(f *testing.F) {
	f.Add(npz(npy("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }", 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6, 0)))
	f.Add(npz(npy("{'descr': '>c8', 'fortran_order': False, 'shape': (), }", 1, 2, 3, 4, 5, 6, 7, 8)))
	f.Add([]byte("PK\x05\x06" + strings.Repeat("\x00", 18)))
	fuzzOpen(f, "x.npz")
}

func FuzzSafetensors(f *testing.F) {
	f.Add(safetensors(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"format":"pt"}}`, 0, 0, 0, 0, 1, 1, 1, 1))
	f.Add(safetensors(fmt.Sprintf(`{"a":{"dtype":"I64","shape":[%d,%d],"data_offsets":[0,0]}}`, 1<<40, 1<<40)))
	fuzzOpen(f, "x.safetensors")
}

func FuzzNPYHeader(f *testing.F) {
	f.Add("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }")
	f.Add("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,)}")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseNPYHeader(text)
		if err == nil && h.bytes < 0 {
			t.Fatalf("%d bytes", h.bytes)
		}
	})
}
