// Package conformance runs what is tested against suites of other compilers:
// it reads the manifest of such a suite and its files, holds what became of
// each unit against a list of the units that are known to fail, and renders the
// table. Only tests use it.
package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"ppc/internal/directives"
	"ppc/internal/shared"
)

// A Unit is one runnable piece of a file of a suite: a row of its manifest.
type Unit struct {
	Path    string // of the file, within the folder of the manifest
	Segment int    // of the file, from 0
	Kind    string
	Notes   string

	files *files
}

// Name is the unit's file and segment.
func (u Unit) Name() string { return fmt.Sprintf("%s#%d", u.Path, u.Segment) }

// Units are the units of the given kinds, in the order of the manifest in the
// folder conformance of the shared material; without it the test is skipped.
func Units(t testing.TB, kinds ...string) []Unit {
	t.Helper()
	units, err := Read(filepath.Join(shared.Dir(t, "conformance"), "manifest.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(units, func(u Unit) bool { return !slices.Contains(kinds, u.Kind) })
}

// columns are those of a manifest that are read, by name.
var columns = []string{"path", "segment", "kind", "notes"}

// Read reads a manifest: a table with tabs between its columns, which its first
// line names, and a row for each unit. Files are beside it.
func Read(manifest string) ([]Unit, error) {
	data, err := os.ReadFile(manifest)
	if err != nil {
		return nil, err
	}
	header, rows, _ := strings.Cut(string(data), "\n")
	names := strings.Split(strings.TrimRight(header, "\r"), "\t")
	var at []int
	for _, c := range columns {
		i := slices.Index(names, c)
		if i < 0 {
			return nil, fmt.Errorf("%s:1: there is no column %s among %s", manifest, c, strings.Join(names, ", "))
		}
		at = append(at, i)
	}
	fs := &files{dir: filepath.Dir(manifest), segments: make(map[string][]string)}
	var units []Unit
	seen := make(map[Place]bool)
	n := 1
	for line := range strings.Lines(rows) {
		n++
		c := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		if len(c) == 1 && c[0] == "" {
			continue
		}
		if len(c) != len(names) {
			return nil, fmt.Errorf("%s:%d: %d columns, want %d", manifest, n, len(c), len(names))
		}
		segment, err := strconv.Atoi(c[at[1]])
		if err != nil || segment < 0 {
			return nil, fmt.Errorf("%s:%d: %q is no segment", manifest, n, c[at[1]])
		}
		u := Unit{Path: c[at[0]], Segment: segment, Kind: c[at[2]], Notes: c[at[3]], files: fs}
		if seen[u.Place()] {
			return nil, fmt.Errorf("%s:%d: there are two rows for %s", manifest, n, u.Name())
		}
		seen[u.Place()] = true
		units = append(units, u)
	}
	if len(units) == 0 {
		return nil, fmt.Errorf("%s: there are no units", manifest)
	}
	return units, nil
}

// files are the files of a suite, each read once.
type files struct {
	dir      string
	mu       sync.Mutex
	segments map[string][]string // by path
}

func (f *files) segment(path string, i int) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	segments := f.segments[path]
	if segments == nil {
		data, err := os.ReadFile(filepath.Join(f.dir, filepath.FromSlash(path)))
		if err != nil {
			return "", fmt.Errorf("%s cannot be read", path)
		}
		segments = directives.Split(string(data))
		f.segments[path] = segments
	}
	if i >= len(segments) {
		return "", fmt.Errorf("%s has %d segments, there is no number %d", path, len(segments), i)
	}
	return segments[i], nil
}

// Source is the text of the unit, with the ops of upstream's test dialects in
// generic form; lines stay where they are.
func (u Unit) Source() (string, error) {
	text, err := u.files.segment(u.Path, u.Segment)
	return directives.Generic(text), err
}

// Parts are the texts of the files that the unit puts together, by name: those
// that stand behind lines such as //--- part1.mlir.
func (u Unit) Parts() (map[string]string, error) {
	source, err := u.Source()
	parts := make(map[string]string)
	name := ""
	for line := range strings.Lines(source) {
		if n, ok := strings.CutPrefix(line, "//--- "); ok {
			name, line = strings.TrimSpace(n), "\n"
		}
		parts[name] += line
	}
	return parts, err
}

// A Case is what a unit of HLO text is run with: the .json file beside it.
type Case struct {
	Replicas, Partitions int
	Mode                 string     `json:"program_mode"` // replica, partition or global
	Inputs               [][]Tensor // by device, by argument
	Expected             [][]Tensor // by device, by result; nil: any
	Tolerance            struct {
		Kind     string
		Abs, Rel float64
	}
}

// A Tensor is an array as text.
type Tensor struct {
	DType string
	Shape []int
	Data  []any
}

// Case reads the .json file of the unit.
func (u Unit) Case() (Case, error) {
	var c Case
	file := strings.TrimSuffix(u.Path, filepath.Ext(u.Path)) + ".json"
	data, err := os.ReadFile(filepath.Join(u.files.dir, filepath.FromSlash(file)))
	if err != nil {
		return c, fmt.Errorf("%s cannot be read", file)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	if len(c.Expected) == 0 {
		return c, errors.New(file + ": nothing is expected")
	}
	return c, nil
}
