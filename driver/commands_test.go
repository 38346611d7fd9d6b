package driver

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ppc/internal/conformance"
	"ppc/internal/wordfuzz"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/lower/hlo"
	"ppc/passes/pass"
)

// A command is one that a program goes through; it returns what the program did
// wrong, which is no fault of ppc.
type command struct {
	name    string
	run     func(ctx context.Context, t *testing.T, src *Source) error
	endless bool // whether it may never end
}

var commands = []command{
	{name: "check", run: func(ctx context.Context, _ *testing.T, src *Source) error { return Check(ctx, []*Source{src}) }},
	{name: "lower --emit=ir", run: lowers("ir", func(text string) error { return readBack(text, mlir.Parse) })},
	{name: "lower --emit=stablehlo", run: lowers("stablehlo", func(text string) error { return readBack(text, mlir.Parse) })},
	{name: "lower --emit=hlo", run: lowers("hlo", func(text string) error { return readBack(text, hlo.Parse) })},
	{name: "lower --stats", run: lowers("stats", nil)},
	eachPass,
	{name: "report", run: func(ctx context.Context, _ *testing.T, src *Source) error {
		r, err := MakeReport(ctx, src, ReportOptions{})
		if err == nil {
			_, _, _ = r.Text(false), r.JSON(), r.HTML()
		}
		return err
	}},
	{name: "lint", run: func(ctx context.Context, _ *testing.T, src *Source) error {
		_, err := Lint(ctx, src, LintOptions{})
		return err
	}},
	{name: "run", run: func(ctx context.Context, _ *testing.T, src *Source) error {
		_, err := Run(ctx, src, RunOptions{Memory: 1 << 22})
		return err
	}},
}

// eachPass prints what each pass makes of a program, and demands that it is read back.
var eachPass = command{name: "lower --after", run: func(ctx context.Context, t *testing.T, src *Source) error {
	p, err := src.load(ctx, lang.Options{Train: true})
	if err != nil {
		return err
	}
	var texts []string
	p.each = append(p.each, func(_ int, q *pass.Pass, m *ir.Module) error {
		texts = append(texts, "// "+q.Name+"\n"+mlir.Print(m))
		return nil
	})
	err = p.compile(ctx, "", "")
	for _, text := range texts {
		if bad := readBack(text, mlir.Parse); bad != nil {
			t.Errorf("--after prints what is not read back: %v\n%s", bad, text)
		}
	}
	return err
}}

// lowers prints a program, and demands of the text what good says.
func lowers(emit string, good func(text string) error) func(context.Context, *testing.T, *Source) error {
	return func(ctx context.Context, t *testing.T, src *Source) error {
		text, err := Lower(ctx, src, LowerOptions{Emit: emit})
		if err == nil && good != nil {
			if bad := good(text); bad != nil {
				t.Errorf("--emit=%s prints what is not read back: %v\n%s", emit, bad, text)
			}
		}
		return err
	}
}

func readBack(text string, parse func(string, []byte) (*ir.Module, error)) error {
	m, err := parse("printed", []byte(text))
	if err == nil {
		err = verify.Verify(m)
	}
	return err
}

// hasPlace is what refusals say first: a place, or the file where the program as a whole is refused.
var hasPlace = regexp.MustCompile(`(?m)^(\S+:\d+:\d+: |<stdin>:( there is no @main| the module(:| has) | a run takes )|deadlock: )`)

// through runs c on a program in lang. Whatever it comes to is a result or a
// refusal that names a place.
func (c *command) through(t *testing.T, lang, text string) error {
	long := 20 * time.Second
	if c.endless {
		long = time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	t.Setenv("TMPDIR", t.TempDir()) // of reproducers
	err := c.run(ctx, t, &Source{File: "-", Lang: lang, Stdin: strings.NewReader(text)})
	var bug *Bug
	var use *UsageError
	switch {
	case err == nil:
	case errors.As(err, &bug):
		t.Errorf("ppc %s: %v\n%s\n\n%s", c.name, err, bug.Stack, text)
	case ctx.Err() != nil && c.endless:
	case ctx.Err() != nil:
		t.Errorf("ppc %s: not done in 20 s:\n%s", c.name, text)
	case errors.As(err, &use), !hasPlace.MatchString(err.Error()):
		t.Errorf("ppc %s: refused without a place: %v\n\n%s", c.name, err, text)
	}
	return err
}

// everyCommand runs a program through all commands. What check takes, run takes
// too, and the other way round.
func everyCommand(t *testing.T, lang, text string) {
	errs := make(map[string]error)
	for _, c := range commands {
		errs[c.name] = c.through(t, lang, text)
	}
	large := errs["run"] != nil && strings.Contains(errs["run"].Error(), "a run takes")
	if (errs["check"] == nil) != (errs["run"] == nil) && !large {
		t.Errorf("check says %v, run %v\n\n%s", errs["check"], errs["run"], text)
	}
}

// Random programs that the verifier takes go through every command.
func TestCommandsOnVerified(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		if m, text := verifiedProgram(randomBytes(r, 60), 8); m != nil {
			everyCommand(t, "mlir", text)
		}
		if t.Failed() {
			return
		}
	}
}

func fuzzCommand(f *testing.F, name string) {
	f.Add([]byte{})
	f.Add([]byte("every byte is one choice: an op, a type, a size, an operand"))
	for _, c := range commands {
		if c.name == name {
			f.Fuzz(func(t *testing.T, data []byte) {
				if m, text := verifiedProgram(data, 8); m != nil {
					c.through(t, "mlir", text)
				}
			})
			return
		}
	}
	f.Fatalf("there is no command %s", name)
}

func FuzzLowerIR(f *testing.F) { fuzzCommand(f, "lower --emit=ir") }

func FuzzLowerStableHLO(f *testing.F) { fuzzCommand(f, "lower --emit=stablehlo") }

func FuzzLowerHLO(f *testing.F) { fuzzCommand(f, "lower --emit=hlo") }

func FuzzStats(f *testing.F) { fuzzCommand(f, "lower --stats") }

func FuzzLint(f *testing.F) { fuzzCommand(f, "lint") }

func FuzzRun(f *testing.F) { fuzzCommand(f, "run") }

// written are the programs of the goldens and the examples in a language.
func written(t testing.TB, lang string) []string {
	texts := wordfuzz.Seeds(t, lang, "*")
	examples, _ := filepath.Glob("../examples/*." + lang)
	for _, path := range examples {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(src))
	}
	return texts
}

// What each pass makes of a program is printed as one that is read back.
func TestAfterEachPass(t *testing.T) {
	for _, lang := range []string{"pp", "mlir", "hlo"} {
		for _, text := range written(t, lang) {
			if _ = eachPass.through(t, lang, text); t.Failed() {
				return
			}
		}
	}
}

// A program that is written, edited by words, goes through a command.
func FuzzEdited(f *testing.F) {
	type language struct {
		lang  string
		texts []string
		words wordfuzz.Words
	}
	var langs []language
	for _, lang := range []string{"pp", "mlir", "hlo"} {
		texts := written(f, lang)
		langs = append(langs, language{lang, texts, wordfuzz.Of(texts...)})
	}
	for i := range commands {
		f.Add(uint(i), uint(i), uint(i), wordfuzz.Nothing)
	}
	f.Fuzz(func(t *testing.T, lang, text, through uint, edits []byte) {
		l, c := langs[lang%uint(len(langs))], commands[through%uint(len(commands))]
		c.endless = c.name == "run"
		c.through(t, l.lang, l.words.Edit(l.texts[text%uint(len(l.texts))], edits))
	})
}

// What StableHLO's and Shardy's verifiers take goes through every command.
func TestCommandsOnSuites(t *testing.T) {
	for _, u := range conformance.Units(t, "verify-ok", "sdy-parse") {
		t.Run(u.Name(), func(t *testing.T) {
			text, err := u.Source()
			if err != nil {
				t.Fatal(err)
			}
			everyCommand(t, "mlir", text)
		})
	}
}
