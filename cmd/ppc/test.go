package main

import (
	"fmt"
	"strings"

	"ppc/driver"
)

type testCmd struct {
	Engine string   `enum:"runtime,evaluator" default:"runtime" help:"What runs the programs: the runtime (the default), or the reference evaluator."`
	JSON   bool     `name:"json" help:"One JSON object per line."`
	Files  []string `arg:"" name:"file" help:"A .mlir file whose programs are apart by lines // -----; - is standard input."`
}

func (c *testCmd) Run(std *streams) error {
	var failed failures
	passed, units := 0, 0
	for _, file := range c.Files {
		src := &driver.Source{File: file, Lang: "mlir", Stdin: std.stdin, Stdout: std.stdoutFile, Warn: std.warn, Reading: std.heap.Read}
		err := driver.Test(std.ctx, src, driver.TestOptions{Evaluator: c.Engine == "evaluator"}, func(r driver.TestResult) {
			units++
			if r.Err == nil {
				passed++
			}
			std.tested(r, c.JSON)
		})
		failed.add(err)
		if driver.Stopped(err) {
			break
		}
	}
	if !c.JSON {
		fmt.Fprintf(std.stdout, "%d of %d programs passed\n", passed, units)
	}
	if passed < units {
		failed.add(errFound)
	}
	return failed.err()
}

// tested prints what became of a program, in one line or more, or as one object.
func (s *streams) tested(r driver.TestResult, asJSON bool) {
	row := testRow{Name: r.Name, Passed: r.Err == nil}
	if r.Err != nil {
		row.Message = r.Err.Error()
	}
	switch {
	case asJSON:
		s.json(row)
	case row.Passed:
		fmt.Fprintf(s.stdout, "ok    %s\n", s.quote(r.Name))
	default:
		fmt.Fprintf(s.stdout, "FAIL  %s\n      %s\n", s.quote(r.Name), strings.ReplaceAll(s.quote(row.Message), "\n", "\n      "))
	}
}

type testRow struct {
	Name    string `json:"name"`
	Passed  bool   `json:"passed"`
	Message string `json:"message"`
}
