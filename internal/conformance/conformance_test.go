package conformance

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"ppc/driver/suite"
	"ppc/internal/golden"
	"ppc/internal/shared"
)

// runners run the kinds of units that there are: the parsers and verifier of
// each text form, and both evaluators.
func runners(places *places) []*Runner {
	const limit = time.Minute
	return []*Runner{
		{Name: "mlir", Limit: limit, Kinds: []Kind{
			{"verify-ok", acceptMLIR}, {"sdy-parse", acceptMLIR}, {"verify-error", places.refuseMLIR}, {"interpret", printMLIR}, {"testdata", printMLIR},
		}},
		{Name: "hlo", Limit: limit, Kinds: []Kind{
			{"hlo-parse", acceptHLO}, {"hlo-parse-error", refuseHLO}, {"hlo-pipeline", acceptHLO}, {"hlo-collective", acceptHLO},
		}},
		{Name: "eval", Limit: limit, Kinds: kindsOf(suite.Evaluator{})},
		{Name: "runtime", Limit: limit, Kinds: kindsOf(suite.Compiled{})},
	}
}

// TestConformance holds the parsers, the verifier and both evaluators to the
// suites of StableHLO, Shardy and XLA: every unit of the manifest passes, but
// for those that the lists in testdata/conformance give a reason for, which
// must fail. With PPC_UPDATE=1 it rewrites the lists.
func TestConformance(t *testing.T) {
	units, err := Read(filepath.Join(shared.Dir(t, "conformance"), "manifest.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	places := new(places)
	var outcomes []*Outcome
	for _, r := range runners(places) {
		file := filepath.Join("testdata", "conformance", r.Name+".tsv") // of the module
		path := filepath.Join(shared.Root(t), file)
		list, err := ReadList(path)
		if err != nil {
			t.Fatal(err)
		}
		list.File = filepath.ToSlash(file)
		o := r.Run(units, list)
		if golden.Updating() {
			list.Update(o)
			if err := os.WriteFile(path, []byte(list.Text()), 0o644); err != nil {
				t.Fatal(err)
			}
		} else {
			for _, fault := range o.Faults() {
				t.Error(fault)
			}
		}
		outcomes = append(outcomes, o)
	}
	for _, u := range units {
		if !known(u.Kind) {
			t.Errorf("%s: there is no runner for units of kind %s", u.Name(), u.Kind)
		}
	}
	t.Logf("\n%s\n%s", places, Table(outcomes...))
}

// known reports whether some runner runs units of the kind.
func known(kind string) bool {
	for _, r := range runners(nil) {
		for _, k := range r.Kinds {
			if k.Name == kind {
				return true
			}
		}
	}
	return false
}
