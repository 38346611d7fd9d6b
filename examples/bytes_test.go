package examples_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ppc/driver"
	"ppc/internal/golden"
	"ppc/internal/shared"
	"ppc/ir/lang"
)

// bytesTable has, for every example, forward and as a step of training, and for
// every program that JAX exported for several devices, the bytes that a device
// receives in a step: here, as Shardy partitions the program, and as XLA does.
// tools/bytes.py writes it:
//
//	tools/bytes.py --ppc ppc -o testdata/golden/bytes/bytes.tsv $(git ls-files 'examples/*.pp') ../shared/oracle/{stablehlo,tpu}/*.mlir
const bytesTable = "../testdata/golden/bytes/bytes.tsv"

// No program moves more bytes than Shardy's or XLA's, and each as many as the
// table says.
func TestBytes(t *testing.T) {
	in := checkBytes(t, func(name string) bool { return strings.HasPrefix(name, "examples/") })
	for _, file := range exampleFiles(t) {
		if name := "examples/" + strings.TrimSuffix(file, ".pp"); !in[name] {
			t.Errorf("%s is not in %s", name, bytesTable)
		}
	}
}

// The same of the programs that JAX exported.
func TestBytesOfExports(t *testing.T) {
	shared.Dir(t, "oracle/stablehlo")
	shared.Dir(t, "oracle/tpu")
	checkBytes(t, func(name string) bool { return !strings.HasPrefix(name, "examples/") })
}

// checkBytes holds the programs of the table whose names are wanted to their
// rows, and returns them, a step of training under the name of its program.
func checkBytes(t *testing.T, wanted func(name string) bool) map[string]bool {
	t.Helper()
	lines := bytesLines(t)
	in := make(map[string]bool)
	for i, line := range lines[1:] {
		row := strings.Split(line, "\t")
		if !wanted(row[0]) {
			continue
		}
		in[strings.TrimSuffix(row[0], " step")] = true
		t.Run(row[0], func(t *testing.T) {
			got := bytesReceived(t, row[0])
			for k, whose := range []string{"Shardy's", "XLA's"} {
				if theirs, err := strconv.Atoi(row[2+k]); err == nil && got > theirs {
					t.Errorf("%d bytes, %s program %d", got, whose, theirs)
				}
			}
			if golden.Updating() {
				row[1] = strconv.Itoa(got)
				lines[i+1] = strings.Join(row, "\t")
			} else if row[1] != strconv.Itoa(got) {
				t.Errorf("%d bytes, the table says %s", got, row[1])
			}
		})
	}
	if golden.Updating() {
		if err := os.WriteFile(bytesTable, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

// bytesLines are the lines of the table.
func bytesLines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(bytesTable)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// bytesOfSteps is what the table, to which TestBytes holds the compiler, has for the
// training steps of examples, by file without its extension.
func bytesOfSteps(t *testing.T) map[string]int {
	t.Helper()
	steps := make(map[string]int)
	for _, line := range bytesLines(t)[1:] {
		row := strings.Split(line, "\t")
		program, step := strings.CutSuffix(row[0], " step")
		example, ok := strings.CutPrefix(program, "examples/")
		if !step || !ok {
			continue
		}
		n, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatalf("%s: %v", row[0], err)
		}
		steps[example] = n
	}
	return steps
}

// exampleFiles are the examples that have a model.
func exampleFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.pp", "maxtext/*.pp"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "\nmodel ") {
				files = append(files, file)
			}
		}
	}
	return files
}

// bytesReceived is how many bytes a device receives in a step of the program that a
// row is about.
func bytesReceived(t *testing.T, name string) int {
	t.Helper()
	if example, ok := strings.CutPrefix(name, "examples/"); ok {
		file, step := strings.CutSuffix(example, " step")
		p, err := lang.Load(file+".pp", lang.Options{Train: step})
		if err != nil {
			t.Fatal(err)
		}
		return bytesOf(t, p.Module)
	}
	found, err := filepath.Glob(filepath.Join(shared.Dir(t, "oracle"), "*", name+".mlir"))
	if err != nil || len(found) != 1 {
		t.Fatalf("no program %s: %v, %v", name, found, err)
	}
	text, err := driver.Lower(t.Context(), &driver.Source{File: found[0]}, driver.LowerOptions{Emit: "stats-json"})
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var c struct {
			Collective        string
			Moved, Executions int
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		total += c.Moved * c.Executions
	}
	return total
}
