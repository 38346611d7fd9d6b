package driver

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ppc/internal/conformance"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/lower/hlo"
)

// A command is one that a program goes through; it returns what the program did
// wrong, which is no fault of ppc.
type command struct {
	name string
	run  func(ctx context.Context, t *testing.T, src *Source) error
}

var commands = []command{
	{"check", func(ctx context.Context, _ *testing.T, src *Source) error { return Check(ctx, []*Source{src}) }},
	{"lower --emit=ir", lowers("ir", func(text string) error { return readBack(text, mlir.Parse) })},
	{"lower --emit=stablehlo", lowers("stablehlo", func(text string) error { return readBack(text, mlir.Parse) })},
	{"lower --emit=hlo", lowers("hlo", func(text string) error { return readBack(text, hlo.Parse) })},
	{"lower --stats", lowers("stats", nil)},
	{"lint", func(ctx context.Context, _ *testing.T, src *Source) error {
		_, err := Lint(ctx, src, LintOptions{})
		return err
	}},
	{"run", func(ctx context.Context, _ *testing.T, src *Source) error {
		_, err := Run(ctx, src, RunOptions{Memory: 1 << 22})
		return err
	}},
}

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

// through runs c on a program in lang. Whatever it comes to is a result or a
// refusal that names a place.
func (c *command) through(t *testing.T, lang, text string) error {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	t.Setenv("TMPDIR", t.TempDir()) // of reproducers
	err := c.run(ctx, t, &Source{File: "-", Lang: lang, Stdin: strings.NewReader(text)})
	var bug *Bug
	var use *UsageError
	switch {
	case err == nil:
	case errors.As(err, &bug):
		t.Errorf("ppc %s: %v\n%s\n\n%s", c.name, err, bug.Stack, text)
	case ctx.Err() != nil:
		t.Errorf("ppc %s: not done in 20 s:\n%s", c.name, text)
	case errors.As(err, &use), !strings.Contains(err.Error(), stdinName):
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
