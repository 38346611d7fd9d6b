package tensorfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A .safetensors file is the length of a header, eight bytes; the header, a
// JSON object from names to type, shape and place; and the elements.

// maxSafetensorsHeader is the limit of the format's own reader.
const maxSafetensorsHeader = 100_000_000

type stInfo struct {
	DType   string  `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// check finds what of an array's entry is not there.
func (i *stInfo) check() error {
	switch {
	case i.Shape == nil:
		return errors.New("there is no shape")
	case len(i.Offsets) != 2:
		return fmt.Errorf("data_offsets has %d numbers, want 2", len(i.Offsets))
	}
	return nil
}

func openSafetensors(r io.ReaderAt, size int64) ([]entry, error) {
	var head [8]byte
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return nil, fmt.Errorf("not a .safetensors file: %d bytes, the length of the header alone takes 8", size)
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxSafetensorsHeader {
		return nil, fmt.Errorf("not a .safetensors file: the header claims %d bytes, at most %d are read", n, maxSafetensorsHeader)
	}
	if int64(n) > size-8 {
		return nil, fmt.Errorf("truncated: the header claims %d bytes, the file has %d after its length", n, size-8)
	}
	text, err := readAll(io.NewSectionReader(r, 8, int64(n)), int(n))
	if err != nil {
		return nil, err
	}
	names, infos, err := parseSafetensors(text)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	data := io.NewSectionReader(r, 8+int64(n), size-8-int64(n))
	entries := make([]entry, len(names))
	for i, name := range names {
		entries[i] = stEntry(name, infos[i], data)
	}
	return entries, checkPlaces(names, infos, data.Size())
}

// parseSafetensors reads the header token by token, so that a name given
// twice is seen.
func parseSafetensors(text []byte) (names []string, infos []stInfo, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, errors.New("not a JSON object")
	}
	seen := make(map[string]bool)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, nil, inWords(err)
		}
		name, _ := t.(string)
		if seen[name] {
			return nil, nil, fmt.Errorf("array %q is there twice", name)
		}
		seen[name] = true
		if name == "__metadata__" {
			var skip map[string]string
			if err := d.Decode(&skip); err != nil {
				return nil, nil, fmt.Errorf("__metadata__: %w", inWords(err))
			}
			continue
		}
		var info stInfo
		if err := d.Decode(&info); err != nil {
			return nil, nil, fmt.Errorf("array %q: %w", name, inWords(err))
		}
		if err := info.check(); err != nil {
			return nil, nil, fmt.Errorf("array %q: %w", name, err)
		}
		names, infos = append(names, name), append(infos, info)
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, errors.New("the JSON object does not end")
	}
	if rest := text[d.InputOffset():]; len(bytes.Trim(rest, " \t\r\n")) > 0 {
		return nil, nil, fmt.Errorf("%d bytes follow the JSON object", len(rest))
	}
	return names, infos, nil
}

func stEntry(name string, info stInfo, data *io.SectionReader) entry {
	e := entry{Info: Info{Name: name, Shape: info.Shape}}
	row, ok := bySafetensors(info.DType)
	if !ok {
		e.err = fmt.Errorf("element type %q; have %s", info.DType, spellings(func(t dtype) string { return t.st }))
		return e
	}
	e.DType = row.name
	n, err := byteSize(info.Shape, row.size)
	begin, end := info.Offsets[0], info.Offsets[1]
	switch {
	case err != nil:
		e.err = err
	case begin < 0 || begin > end || end > data.Size():
		e.err = fmt.Errorf("bytes %d to %d, the file has %d: truncated or damaged", begin, end, data.Size())
	case int64(n) != end-begin:
		e.err = fmt.Errorf("%s%v takes %d bytes, the header gives it %d", row.name, info.Shape, n, end-begin)
	}
	e.read = func(from, to int) ([]byte, error) {
		return readAll(io.NewSectionReader(data, begin+int64(from), int64(to-from)), to-from)
	}
	return e
}

// checkPlaces refuses a file whose arrays do not fill the space after the header,
// each byte once: the format has no holes, in which something could hide. Arrays
// that are not within the file at all are left to whoever wants to read them.
func checkPlaces(names []string, infos []stInfo, size int64) error {
	order := make([]int, 0, len(infos))
	for i, info := range infos {
		if info.Offsets[0] < 0 || info.Offsets[0] > info.Offsets[1] || info.Offsets[1] > size {
			return nil
		}
		order = append(order, i)
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(infos[i].Offsets[0], infos[j].Offsets[0]), cmp.Compare(infos[i].Offsets[1], infos[j].Offsets[1]))
	})
	end, last := int64(0), ""
	for _, i := range order {
		switch begin := infos[i].Offsets[0]; {
		case begin < end:
			return fmt.Errorf("header: arrays %q and %q overlap: one ends with byte %d, the other begins at %d", last, names[i], end, begin)
		case begin > end:
			return fmt.Errorf("header: no array has bytes %d to %d, before array %q: the format has no holes", end, begin, names[i])
		}
		end, last = infos[i].Offsets[1], names[i]
	}
	if end < size {
		return fmt.Errorf("header: no array has bytes %d to %d, the last of the file: the format has no holes", end, size)
	}
	return nil
}

func writeSafetensors(w io.Writer, arrays []Named) error {
	var b strings.Builder
	b.WriteByte('{')
	at := 0
	for i, a := range arrays {
		row, _ := byName(a.Array.DType)
		if row.st == "" {
			return fmt.Errorf("array %q: .safetensors has no element type for %s; .npz has", a.Name, a.Array.DType)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(a.Name)
		if err != nil {
			return err
		}
		info, err := json.Marshal(stInfo{row.st, append([]int{}, a.Array.Shape...), []int64{int64(at), int64(at + len(a.Array.Data))}})
		if err != nil {
			return err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(info)
		at += len(a.Array.Data)
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 { // the elements start at a multiple of 8
		b.WriteByte(' ')
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(b.Len()))); err != nil {
		return err
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	for _, a := range arrays {
		if _, err := w.Write(a.Array.Data); err != nil {
			return err
		}
	}
	return nil
}
