package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"ppc/internal/golden"
	"ppc/internal/shared"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/lower/hlo"
	"ppc/lower/lint"
	"ppc/passes"
	"ppc/passes/pass"
)

const archives = "../../testdata/golden/lint"

// read parses a program in any language; train asks for a step of training
// where the program has one.
func read(src string, set ...string) (*ir.Module, error) {
	switch {
	case strings.HasPrefix(src, "HloModule"):
		m, err := hlo.Parse("in.hlo", []byte(src))
		if err != nil {
			return nil, err
		}
		m.Form |= ir.Expanded | ir.Local
		return m, verify.Verify(m)
	case strings.HasPrefix(src, "axes"), strings.HasPrefix(src, "include"):
		read := func(name string) ([]byte, error) {
			if name == "in.pp" {
				return []byte(src), nil
			}
			return os.ReadFile(filepath.Join("../../examples", filepath.Base(name)))
		}
		p, err := lang.Load("in.pp", lang.Options{ReadFile: read, Train: true, Set: set})
		if err != nil {
			return nil, err
		}
		return p.Module, nil
	}
	m, err := mlir.Parse("in.mlir", []byte(src))
	if err != nil {
		return nil, err
	}
	distributed := strings.Contains(src, "sdy.sharding") || strings.Contains(src, "sdy.manual")
	if m.Form == 0 && !distributed {
		m.Form |= ir.Expanded | ir.Local
	}
	return m, verify.Verify(m)
}

// find lints a program as the command does.
func find(m *ir.Module) ([]*lint.Finding, error) {
	passed := lint.Before(m)
	if passed != nil {
		if err := passes.Run(m, passes.Config{Warn: func(w *pass.Error) { passed.Warn(w) }}); err != nil {
			return nil, err
		}
	}
	return lint.Of(m, passed)
}

func TestGolden(t *testing.T) {
	golden.Run(t, archives, map[string]golden.Stage{
		"lint": func(t *testing.T, src string, _ []string) string {
			var b strings.Builder
			for _, f := range findings(t, src) {
				fmt.Fprintln(&b, f)
			}
			return b.String()
		},
	})
}

// Every lint is explained, and has an archive that it finds something in, and
// one close by in which it finds nothing. Every archive is one of these.
func TestTable(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(archives, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	cases := make(map[string]int) // by lint and whether it finds something
	for _, path := range paths {
		name, rest, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".txtar"), "_")
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(lint.Table, func(l lint.Lint) bool { return l.Name == name }) {
			t.Errorf("%s: there is no such lint", path)
		}
		want := !strings.HasSuffix(rest, "not")
		if found := strings.Contains(string(ar.Files[1].Data), "["+name+"]"); found != want {
			t.Errorf("%s: the lint finds something: %v, want %v", path, found, want)
		}
		cases[fmt.Sprint(name, want)]++
	}
	for _, l := range lint.Table {
		if len(strings.Fields(l.Explain)) < 40 || strings.Contains(l.Explain, "\n\n") || l.Doc == "" {
			t.Errorf("%s: want one line and one paragraph that explain it", l.Name)
		}
		if cases[l.Name+"true"] == 0 || cases[l.Name+"false"] == 0 {
			t.Errorf("%s: want an archive that triggers it and one, called %s_not, that does not", l.Name, l.Name)
		}
	}
}

// Every finding is cured: what its message ends with, done to the archive's
// program, makes it go away and brings no warning that was not there. A setting
// is a line "cure: pipeline.gather=once" of the archive's comment, and is named in
// the message; a change of the program makes the file called cured.
func TestCures(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(archives, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		name, rest, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".txtar"), "_")
		if strings.HasSuffix(rest, "not") {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			ar, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			before := findings(t, string(ar.Files[0].Data))
			src, set := cured(ar)
			if src == "" && set == nil {
				t.Fatal("want a line \"cure: block.key=value\" above, or a file called cured with the program in which nothing is found")
			}
			known := make(map[string]bool)
			for _, f := range before {
				known[f.Lint] = true
				for _, s := range set {
					if _, key, _ := strings.Cut(s, "."); f.Lint == name && !strings.Contains(f.Msg, strings.Replace(key, "=", " = ", 1)) {
						t.Errorf("the message does not name %s: %s", s, f)
					}
				}
			}
			if src == "" {
				src = string(ar.Files[0].Data)
			}
			for _, f := range findings(t, src, set...) {
				if f.Lint == name || f.Severity == lint.Warning || !known[f.Lint] {
					t.Errorf("found in the cured program: %s", f)
				}
			}
		})
	}
}

// cured is the program in which what an archive shows does not happen, "" for
// that of the archive, with the settings that see to it.
func cured(ar *txtar.Archive) (src string, set []string) {
	for line := range strings.Lines(string(ar.Comment)) {
		if words, ok := strings.CutPrefix(line, "cure:"); ok {
			set = strings.Fields(words)
		}
	}
	for _, f := range ar.Files {
		if strings.HasPrefix(f.Name, "cured.") {
			src = string(f.Data)
		}
	}
	return src, set
}

func findings(t *testing.T, src string, set ...string) []*lint.Finding {
	t.Helper()
	m, err := read(src, set...)
	if err != nil {
		t.Fatal(err)
	}
	found, err := find(m)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// MaxText's training step as XLA:TPU has scheduled it: nine weights are gathered
// in each of 129 iterations, forward and backward, and eight sums are combined
// over fsdp in each iteration of the backward loop, two of them together, all
// but those two hidden in fusions.
func TestTPU(t *testing.T) {
	src, err := os.ReadFile(filepath.Join(shared.Dir(t, "oracle/tpu"), "llama2_7b_per_iteration.hlo"))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	m, err := read(string(src))
	if err != nil {
		t.Fatal(err)
	}
	found, err := find(m)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	count := make(map[string]int)
	for _, f := range found {
		count[f.Lint+" in "+f.Loop]++
		if f.Pos.File != "in.hlo" || f.Pos.Line == 0 {
			t.Errorf("no place: %s", f)
		}
		switch f.Lint {
		case "weight-gather-in-loop":
			if f.Executions != 129 || f.Axes != "fsdp" || !strings.HasPrefix(f.Name, "state['model']['decoder']['pipeline_module']['layers']") || f.Source.Line == 0 {
				t.Errorf("want a weight that is gathered over fsdp 129 times, and where: %+v", f)
			}
		case "reduce-in-loop":
			if f.Executions != 129 || f.Axes != "fsdp" || f.Severity != lint.Note {
				t.Errorf("want a sum that is scattered over fsdp 129 times: %+v", f)
			}
		case "growing-residual":
			if want := 129 * 3 * 2048 * 4096 * 2; f.Bytes != want {
				t.Errorf("%d bytes, want %d: %s", f.Bytes, want, f)
			}
		}
	}
	want := map[string]int{"weight-gather-in-loop in while": 9, "weight-gather-in-loop in while.13": 9, "reduce-in-loop in while.13": 8,
		"growing-residual in while": 1, "involuntary-replication in ": 2}
	if fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("found %v, want %v", count, want)
	}
}

// MaxText's sliding window keeps the gathered weights of all repeats for the
// backward pass, which is most of what it takes more than gathering in each
// iteration: nine weights, each of 16 repeats, in float32.
func TestWindowThatIsKept(t *testing.T) {
	src, err := os.ReadFile(filepath.Join(shared.Dir(t, "oracle/tpu"), "llama2_7b_per_repeat.mlir"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := read(string(src))
	if err != nil {
		t.Fatal(err)
	}
	found, err := find(m)
	if err != nil {
		t.Fatal(err)
	}
	n, bytes := 0, 0
	for _, f := range found {
		if f.Lint == "growing-residual" && f.Severity == lint.Warning {
			n++
			bytes += f.Bytes
			if f.Executions != 16 || f.Loop != "while" || !strings.Contains(f.Msg, "gathered weights") {
				t.Errorf("want weights of each of 16 repeats: %s", f)
			}
		}
		if f.Lint == "weight-gather-in-loop" {
			t.Errorf("every repeat is gathered once: %s", f)
		}
	}
	if want := 16 * 4 * (3*4096*11008 + 4*4096*4096 + 2*4096); n != 9 || bytes != want {
		t.Errorf("%d residuals of %d bytes, want 9 of %d", n, bytes, want)
	}
}
