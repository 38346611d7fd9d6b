package eval

import (
	"slices"
	"testing"

	"ppc/internal/optest"
	"ppc/ir"
)

// A namedTest is a test whose name begins with the op that it is of, and may go
// on with another: "reduce of nothing", "pp.checkpoint and pp.name".
type namedTest struct {
	name string
	run  func(t *testing.T)
}

// opTests are the tests of single ops.
func opTests() []namedTest {
	var all []namedTest
	for _, c := range unaryCases {
		all = append(all, namedTest{optest.Name(c.kind) + " of " + c.elem.String(), c.run})
	}
	for _, c := range binaryCases {
		all = append(all, namedTest{optest.Name(c.kind) + " of " + c.elem.String(), c.run})
	}
	for _, c := range slices.Concat(elementwiseCases(), movementCases(), dotCases(), reduceCases(), wideCases(), sortCases(), indexingCases(), controlCases(), pipelineCases()) {
		all = append(all, namedTest{c.name, c.run})
	}
	all = append(all, gonumTests...)
	for _, c := range deviceCases() {
		all = append(all, namedTest{c.name, c.run})
	}
	return all
}

// Every op but terminators has one row with one function, which computes what the
// cases say.
func TestOp(t *testing.T) {
	tests := make(map[ir.Kind][]namedTest)
	for _, c := range opTests() {
		ks := optest.OpsOf(c.name)
		if len(ks) == 0 {
			t.Errorf("the case %q is called after no op", c.name)
		}
		for _, k := range ks {
			tests[k] = append(tests[k], c)
		}
	}
	optest.Each(t, func(t *testing.T, k ir.Kind) {
		r, ok := table[k]
		n := 0
		for _, set := range []bool{r.each != nil, r.one != nil, r.run != nil} {
			if set {
				n++
			}
		}
		if want := !k.Has(ir.Terminator); ok != want || want && n != 1 {
			t.Errorf("%s in the table of ir/eval/table.go: row %v, %d functions", k, ok, n)
		}
		for _, c := range tests[k] {
			t.Run(c.name, c.run)
		}
	})
}
