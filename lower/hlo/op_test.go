package hlo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ppc/internal/optest"
	"ppc/ir"
	"ppc/ir/verify"
)

// Every op that may stand in a per-device program has a row, whose opcode is not
// among those that are carried through, and stands in a program that is printed
// and read.
func TestOp(t *testing.T) {
	has := make(map[ir.Kind][]int) // the programs, by number
	for i, p := range programs {
		seen := make(map[ir.Kind]bool)
		module(p.name, p.mesh, p.build).Main().Body.Walk(func(op *ir.Op) {
			if !seen[op.Kind] {
				has[op.Kind] = append(has[op.Kind], i)
			}
			seen[op.Kind] = true
		})
	}
	optest.Each(t, func(t *testing.T, k ir.Kind) {
		final := !k.Has(ir.Pipeline) && (!k.Has(ir.Composite) || k.Has(ir.InHLO)) && !k.Has(ir.Terminator) && !strings.HasPrefix(k.String(), "sdy.")
		r := rowOf(k)
		if (r != nil) != final {
			t.Errorf("%s has a row in table, lower/hlo/table.go: %v, want %v", k, r != nil, final)
		}
		if r == nil {
			return
		}
		if _, ok := otherOpcodes[r.opcode]; ok {
			t.Errorf("%s is the opcode of %s, and in otherOpcodes, lower/hlo/opcodes.go, one that is carried through", r.opcode, k)
		}
		if len(has[k]) == 0 && notPrinted[k] == "" {
			t.Errorf("%s is in none of the programs of lower/hlo/programs_test.go", k)
		}
		for _, i := range has[k] {
			t.Run(programs[i].name, func(t *testing.T) { testRoundTrip(t, i) })
		}
	})
}

// notPrinted says of ops that are in no program why they are not.
var notPrinted = map[ir.Kind]string{
	ir.Erf: "is made of other ops before", ir.Call: "is of several functions", ir.CustomCall: "its target alone knows",
	ir.TupleOp: "is taken apart as it is read", ir.GetTupleElement: "likewise",
}

// testRoundTrip holds that what Print writes of program i is a sound module that
// prints the same.
func testRoundTrip(t *testing.T, i int) {
	p := programs[i]
	text, err := Print(module(p.name, p.mesh, p.build))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(p.name+".hlo", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := verify.Verify(m); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(text, again(t, text)); diff != "" {
		t.Errorf("-printed +printed again:\n%s", diff)
	}
}
