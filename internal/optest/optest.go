// Package optest is what the tests of single ops share: the name of an op in the
// name of a test, and small random programs of each op with arguments for them.
// Only tests use it. All tests of one op are subtests of a TestOp in the package
// that they test:
//
//	go test -run '^TestOp$/^cholesky$' ./...
package optest

import (
	"slices"
	"strings"
	"testing"

	"ppc/ir"
)

// Name is op k in the name of a test: cholesky, sdy.all_gather, pp.scan.
func Name(k ir.Kind) string { return strings.TrimPrefix(k.String(), "stablehlo.") }

// Each runs test for every op, as the subtest of its name.
func Each(t *testing.T, test func(t *testing.T, k ir.Kind)) {
	for _, k := range ir.Kinds() {
		t.Run(Name(k), func(t *testing.T) { test(t, k) })
	}
}

// A Case builds a program of one op, and returns what it computes.
type Case struct {
	Name   string // the op's, and what tells the case from others of the op
	Linear bool   // in all parameters at once
	Build  func(p *Program) []*ir.Value
}

// Op is the op that c is a case of.
func (c Case) Op() ir.Kind { return OpsOf(c.Name)[0] }

// OpsOf are the ops that a test called name is of: the first word, and the second
// after an "and".
func OpsOf(name string) []ir.Kind {
	var ks []ir.Kind
	for i, word := range strings.Fields(name) {
		if i > 0 && (i != 2 || !strings.Contains(name, " and ")) {
			continue
		}
		for _, full := range []string{word, "stablehlo." + word} {
			if k := ir.KindByName(full); k != ir.Unknown {
				ks = append(ks, k)
			}
		}
	}
	return ks
}

// Cases has a case for every op that has a gradient or can be mapped, and more
// where their rules distinguish.
var Cases = slices.Concat(elementwiseCases, moveCases, indexCases, reduceCases, raggedCases, windowCases, algebraCases, controlCases, deviceCases)

// Of are the cases of k.
func Of(k ir.Kind) []Case {
	return slices.DeleteFunc(slices.Clone(Cases), func(c Case) bool { return c.Op() != k })
}
