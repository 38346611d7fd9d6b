package mlir

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ppc/internal/shared"
)

// stable reports where printing what was parsed, or parsing and printing it
// once more, goes wrong.
func stable(src []byte) error {
	m, err := Parse("in.mlir", src)
	if err != nil {
		return err
	}
	for _, opts := range []Options{{}, {Locs: true}, {Generic: true}} {
		once := PrintWith(m, opts)
		again, err := Parse("printed.mlir", []byte(once))
		if err != nil {
			return fmt.Errorf("printed %+v: %w", opts, err)
		}
		if twice := PrintWith(again, opts); once != twice {
			return fmt.Errorf("printed %+v: %s", opts, firstDifference(once, twice))
		}
	}
	return nil
}

// firstDifference shows the first line in which two texts differ.
func firstDifference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("line %d: %.300s\nthen:   %.300s", i+1, as[i], bs[i])
		}
	}
	return fmt.Sprintf("%d lines, then %d", len(as), len(bs))
}

// Programs that JAX printed print the same way.
func TestOracle(t *testing.T) {
	for _, dir := range []string{"oracle/stablehlo", "oracle/tpu"} {
		files, err := filepath.Glob(filepath.Join(shared.Dir(t), dir, "*.mlir"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s (%v)", dir, err)
		}
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				src, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if err := stable(src); err != nil {
					t.Fatal(err)
				}
				m, err := Parse(file, src)
				if err != nil {
					t.Fatal(err)
				}
				if got := Print(m); got != string(src) {
					t.Error("not as it was: ", firstDifference(string(src), got))
				}
			})
		}
	}
}

// A unit is a module of the conformance corpus.
type unit struct {
	name, kind, notes string
	src               []byte
}

// units are the modules of the given kinds.
func units(t *testing.T, kinds ...string) []unit {
	dir := filepath.Join(shared.Dir(t), "conformance")
	f, err := os.Open(filepath.Join(dir, "manifest.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var us []unit
	files := make(map[string][]string)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		row := strings.Split(lines.Text(), "\t")
		if len(row) < 8 || !slices.Contains(kinds, row[2]) {
			continue
		}
		if files[row[0]] == nil {
			src, err := os.ReadFile(filepath.Join(dir, row[0]))
			if err != nil {
				t.Fatal(err)
			}
			files[row[0]] = strings.Split("\n"+string(src), "\n// -----\n")
		}
		n, err := strconv.Atoi(row[1])
		if err != nil || n >= len(files[row[0]]) {
			t.Fatalf("%s has no segment %s", row[0], row[1])
		}
		us = append(us, unit{row[0] + "#" + row[1], row[2], row[7], []byte(files[row[0]][n])})
	}
	return us
}

// The modules of the conformance corpus are read and printed again.
func TestCorpus(t *testing.T) {
	for _, kind := range []string{"verify-ok", "sdy-parse", "interpret", "testdata"} {
		t.Run(kind, func(t *testing.T) {
			us := units(t, kind)
			good := 0
			for _, u := range us {
				if err := stable(u.src); err != nil {
					t.Errorf("%s: %v", u.name, err)
				} else {
					good++
				}
			}
			t.Logf("%d of %d", good, len(us))
		})
	}
}
