// Package conformance reads the corpus of upstream compiler tests that lies
// with the shared material. Only tests use it.
package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ppc/internal/shared"
)

// A Unit is one runnable piece of a file of the corpus: a row of its manifest.
type Unit struct {
	Dir     string // of the corpus
	Path    string // of the file, within Dir
	Segment int    // of the file, from 0
	Kind    string
	Ops     []string
	DTypes  []string
	Devices int
	Notes   string
}

// Name is the unit's file and segment, as lists of units write it.
func (u Unit) Name() string { return fmt.Sprintf("%s#%d", u.Path, u.Segment) }

// Units are the units of the given kinds, in the order of the manifest.
func Units(t testing.TB, kinds ...string) []Unit {
	t.Helper()
	dir := filepath.Join(shared.Dir(t), "conformance")
	data, err := os.ReadFile(filepath.Join(dir, "manifest.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var units []Unit
	for line := range strings.Lines(string(data)) {
		c := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(c) < 8 || !slices.Contains(kinds, c[2]) {
			continue
		}
		u := Unit{Dir: dir, Path: c[0], Kind: c[2], Ops: strings.Split(c[3], ","), DTypes: strings.Split(c[4], ","), Notes: c[7]}
		u.Segment, _ = strconv.Atoi(c[1])
		u.Devices, _ = strconv.Atoi(c[5])
		units = append(units, u)
	}
	return units
}

// Source is the text of the unit, with check ops in generic form.
func (u Unit) Source(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(u.Dir, filepath.FromSlash(u.Path)))
	if err != nil {
		t.Fatal(err)
	}
	segment := 0
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		if strings.TrimRight(line, "\r\n") == "// -----" {
			segment++
			line = "\n"
		}
		if segment == u.Segment {
			b.WriteString(line)
		}
	}
	return genericChecks(b.String())
}

// Parts are the texts of the files that the unit puts together, by name: those
// that stand behind lines such as //--- part1.mlir.
func (u Unit) Parts(t testing.TB) map[string]string {
	t.Helper()
	parts := make(map[string]string)
	name := ""
	for line := range strings.Lines(u.Source(t)) {
		if n, ok := strings.CutPrefix(line, "//--- "); ok {
			name, line = strings.TrimSpace(n), "\n"
		}
		parts[name] += line
	}
	return parts
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
func (u Unit) Case(t testing.TB) Case {
	t.Helper()
	file := strings.TrimSuffix(u.Path, filepath.Ext(u.Path)) + ".json"
	data, err := os.ReadFile(filepath.Join(u.Dir, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	var c Case
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// Skips reads a list of units that need not pass: on each line a name, a tab
// and the reason. Lines that begin with // are comments.
func Skips(t testing.TB, file string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reasons := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		if name, reason, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && !strings.HasPrefix(name, "//") {
			reasons[name] = reason
		}
	}
	return reasons
}

const (
	valuePattern = `(%[\w.$-]+(?:#\d+)?)`
	typePattern  = `(tensor<(?:[^<>]|<[^<>]*>)*>)`
)

var (
	constCheck = regexp.MustCompile(`check\.(expect_\w+_const) ` + valuePattern + `,\s*(dense<[^>]*>)\s*:\s*` + typePattern + `(?:\s*\{([^}]*)\})?`)
	pairCheck  = regexp.MustCompile(`check\.(expect_\w+) ` + valuePattern + `,\s*` + valuePattern + `((?:,\s*\w+ = [\w.]+)*)\s*:\s*` + typePattern + `(?:,\s*` + typePattern + `)?`)
)

// genericChecks rewrites the pretty form of the check ops, whose dialect is
// upstream's own for tests, to the generic one.
func genericChecks(src string) string {
	src = constCheck.ReplaceAllStringFunc(src, func(s string) string {
		m := constCheck.FindStringSubmatch(s)
		attrs := "value = " + m[3] + " : " + m[4]
		if strings.TrimSpace(m[5]) != "" {
			attrs += ", " + m[5]
		}
		return fmt.Sprintf("\"check.%s\"(%s) {%s} : (%s) -> ()", m[1], m[2], attrs, m[4])
	})
	return pairCheck.ReplaceAllStringFunc(src, func(s string) string {
		m := pairCheck.FindStringSubmatch(s)
		return fmt.Sprintf("\"check.%s\"(%s, %s) {%s} : (%s, %s) -> ()", m[1], m[2], m[3], strings.TrimPrefix(m[4], ","), m[5], m[5])
	})
}
