package tensorfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// IndexExt ends the name of a file that says in which .safetensors files beside
// it arrays are.
const IndexExt = ".safetensors.index.json"

// maxIndex bounds the bytes of an index.
const maxIndex = 1 << 28

// IsIndex reports whether path is the name of an index.
func IsIndex(path string) bool {
	return len(path) > len(IndexExt) && strings.EqualFold(path[len(path)-len(IndexExt):], IndexExt)
}

// An index is the content of such a file.
type index struct {
	Metadata  map[string]any    `json:"metadata"`
	WeightMap map[string]string `json:"weight_map"`
}

// openIndex opens the files that an index names, as one. All arrays that they
// lack are reported together.
func openIndex(path string) (*File, error) {
	text, err := readIndex(path)
	if err != nil {
		return nil, err
	}
	var ix index
	if err := json.Unmarshal(text, &ix); err != nil {
		return nil, fmt.Errorf("%s: not an index of .safetensors files: %w", path, inWords(err))
	}
	if len(ix.WeightMap) == 0 {
		return nil, fmt.Errorf("%s: not an index of .safetensors files: weight_map names no array", path)
	}
	out := &File{Path: path, index: make(map[string]int)}
	var shards closers
	out.closer = &shards
	open := make(map[string]*File)
	var errs []error
	for _, name := range sorted(ix.WeightMap) {
		shard := ix.WeightMap[name]
		f, tried := open[shard]
		if !tried {
			if shard != filepath.Base(shard) || shard == "." || shard == ".." || !strings.EqualFold(filepath.Ext(shard), ".safetensors") {
				errs = append(errs, fmt.Errorf("%s: array %q is in %q, want the name of a .safetensors file beside the index", path, name, shard))
			} else if f, err = Open(filepath.Join(filepath.Dir(path), shard)); err != nil {
				errs = append(errs, err)
				f = nil
			} else {
				shards = append(shards, f)
			}
			open[shard] = f
		}
		if f == nil {
			continue
		}
		at, ok := f.index[name]
		if !ok {
			errs = append(errs, fmt.Errorf("%s: there is no array %q, which %s says is there", f.Path, name, filepath.Base(path)))
			continue
		}
		out.index[name] = len(out.entries)
		out.entries = append(out.entries, f.entries[at])
	}
	if len(errs) > 0 {
		shards.Close()
		return nil, errors.Join(errs...)
	}
	return out, nil
}

func readIndex(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: an index is a regular file", path)
	}
	if info.Size() > maxIndex {
		return nil, fmt.Errorf("%s: %d bytes, at most %d are read of an index", path, info.Size(), maxIndex)
	}
	return os.ReadFile(path)
}

func sorted(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

type closers []io.Closer

func (c *closers) Close() error {
	var errs []error
	for _, f := range *c {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Shards divides arrays, in their order, among files of at most that many bytes of
// elements each, or of one array that has more, and returns them with the text of
// the index at path.
func Shards(path string, arrays []Named, limit int) (names []string, parts [][]Named, text []byte, err error) {
	size, total := 0, 0
	for _, a := range arrays {
		n := len(a.Array.Data)
		if len(parts) == 0 || size+n > limit && size > 0 {
			parts, size = append(parts, nil), 0
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], a)
		size, total = size+n, total+n
	}
	stem := path[:len(path)-len(IndexExt)]
	ix := index{Metadata: map[string]any{"total_size": total}, WeightMap: make(map[string]string)}
	for i, part := range parts {
		name := fmt.Sprintf("%s-%05d-of-%05d.safetensors", stem, i+1, len(parts))
		names = append(names, name)
		for _, a := range part {
			ix.WeightMap[a.Name] = filepath.Base(name)
		}
	}
	text, err = json.MarshalIndent(ix, "", "  ")
	return names, parts, append(text, '\n'), err
}
