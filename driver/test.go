package driver

import (
	"context"
	"errors"
	"path/filepath"

	"ppc/driver/suite"
)

// TestOptions says which programs are run, and by what.
type TestOptions struct {
	Evaluator bool // the reference evaluator, in place of the runtime
}

// A TestResult is what became of one program of a test file.
type TestResult struct {
	Name string
	Err  error // nil if it passes
}

// Test runs the programs of a file that hold their own results (check.expect_*) or
// expect errors, and says of each what became of it.
func Test(ctx context.Context, src *Source, opts TestOptions, each func(TestResult)) error {
	if ext := filepath.Ext(src.File); ext == ".pp" || ext == ".hlo" {
		return usage("test: %s: programs that hold their own results are in .mlir files; run --check holds this one against a reference", src.name())
	}
	text, err := src.text(src.name())
	if err != nil {
		return err
	}
	var on suite.Machine = suite.Compiled{}
	if opts.Evaluator {
		on = suite.Evaluator{}
	}
	cases := suite.Cases(src.name(), string(text))
	if len(cases) == 0 {
		return errors.New(src.name() + ": there is no program in it")
	}
	for _, c := range cases {
		keep := reproducer{pattern: "ppc-test-*.mlir", command: "ppc test %s", text: func() string { return c.Source }}
		_, err := guard(ctx, "testing "+c.Name(), keep, func() (any, error) { return nil, c.Test(ctx, on) })
		var bug *Bug
		if Stopped(err) || errors.As(err, &bug) {
			return err
		}
		each(TestResult{c.Name(), err})
	}
	return nil
}
