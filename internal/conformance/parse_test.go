package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"ppc/driver/suite"
	"ppc/internal/directives"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/lower/hlo"
)

// acceptMLIR holds that the unit is read and verified, and that each form in
// which it is printed is read as the same module.
func acceptMLIR(_ context.Context, u Unit) error {
	m, err := parseMLIR(u)
	if err != nil {
		return err
	}
	if err := verify.Verify(m); err != nil {
		return err
	}
	return sameAgain(m)
}

// printMLIR is acceptMLIR for programs that are run, which the runs verify.
func printMLIR(_ context.Context, u Unit) error {
	parts, err := u.Parts()
	if err != nil {
		return err
	}
	for name, text := range parts {
		if name == "" && len(parts) > 1 {
			continue // comments
		}
		m, err := mlir.Parse(u.Path, []byte(text))
		if err != nil {
			return err
		}
		if err := sameAgain(m); err != nil {
			return err
		}
	}
	return nil
}

func parseMLIR(u Unit) (*ir.Module, error) {
	source, err := u.Source()
	if err != nil {
		return nil, err
	}
	return mlir.Parse(u.Path, []byte(source))
}

// sameAgain holds that every form in which m is printed is read as a module
// that has the same generic form, and prints the same.
func sameAgain(m *ir.Module) error {
	generic := genericForm(m)
	for _, opts := range []mlir.Options{{}, {Locs: true}, {Generic: true}} {
		text := mlir.PrintWith(m, opts)
		again, err := mlir.Parse("printed.mlir", []byte(text))
		if err != nil {
			return fmt.Errorf("printed %+v: %w", opts, err)
		}
		if got := genericForm(again); got != generic {
			return fmt.Errorf("printed %+v, it is another module: %s", opts, firstDifference(generic, got))
		}
		if twice := mlir.PrintWith(again, opts); twice != text {
			return fmt.Errorf("printed %+v, it prints differently: %s", opts, firstDifference(text, twice))
		}
	}
	return nil
}

// genericForm is m in generic form, without the attributes of custom calls that
// say what holds without them.
func genericForm(m *ir.Module) string {
	m = m.Clone()
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		f.Body.Walk(func(op *ir.Op) {
			if op.Kind == ir.CustomCall && op.Attrs.Has("has_side_effect") && !op.Bool("has_side_effect") {
				op.Attrs.Delete("has_side_effect")
			}
		})
	}
	return mlir.PrintWith(m, mlir.Options{Generic: true})
}

// firstDifference shows the first line in which two texts differ.
func firstDifference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("line %d: %.300s\nthen:   %.300s", i+1, as[i], bs[i])
		}
	}
	return fmt.Sprintf("%d lines, then %d", len(as), len(bs))
}

// places counts the units that are refused, and those of which an error is at a
// line where the unit expects one.
type places struct{ refused, right atomic.Int32 }

func (p *places) String() string {
	return fmt.Sprintf("verify-error: of %d units that are refused, %d have an error at a line where the unit expects one", p.refused.Load(), p.right.Load())
}

// refuseMLIR holds that the parser or the verifier refuses the unit.
func (p *places) refuseMLIR(_ context.Context, u Unit) error {
	source, err := u.Source()
	if err != nil {
		return err
	}
	expected := directives.ExpectedErrors(source)
	m, err := mlir.Parse(u.Path, []byte(source))
	if err == nil {
		err = verify.Verify(m)
	}
	if err == nil {
		said := "is accepted" + unread(m)
		for _, e := range expected {
			said += fmt.Sprintf("\nexpected at line %d: %s", e.Line, e.Text)
		}
		return errors.New(said)
	}
	p.refused.Add(1)
	lines := suite.Lines(u.Path, err)
	for _, e := range expected {
		if lines[e.Line] {
			p.right.Add(1)
			break
		}
	}
	return nil
}

// unread says what of m the verifier does not look into.
func unread(m *ir.Module) string {
	what := make(map[string]bool)
	typ := func(t *ir.Type) {
		switch text := t.String(); {
		case strings.Contains(text, "!quant."):
			what["quantized types"] = true
		case t.Kind == ir.OpaqueType:
			what[text] = true
		}
	}
	for _, f := range m.Funcs {
		for _, r := range f.Results {
			typ(r.Type)
		}
		if f.Body == nil {
			continue
		}
		for _, v := range f.Params() {
			typ(v.Type)
		}
		f.Body.Walk(func(op *ir.Op) {
			if op.Kind == ir.Unknown {
				what[op.Name()] = true
			}
			for _, v := range op.Results {
				typ(v.Type)
			}
			for _, name := range []string{"sdy.sharding_rule", "sdy.propagation_edges", "sdy.result_propagation_edges", "sdy.block_arg_propagation_edges"} {
				if op.Attrs.Has(name) {
					what[name] = true
				}
			}
		})
	}
	if len(what) == 0 {
		return ""
	}
	return ": not looked into: " + strings.Join(slices.Sorted(maps.Keys(what)), ", ")
}

// acceptHLO holds that the unit is read, and prints as a text that is read and
// prints the same. The modules need not be alike: HLO text has no splats, no
// scalar predicates of arrays, and no values that branches capture.
func acceptHLO(_ context.Context, u Unit) error {
	m, err := parseHLO(u)
	if err != nil {
		return err
	}
	text, err := hlo.Print(m)
	if err != nil {
		return err
	}
	again, err := hlo.Parse("printed.hlo", []byte(text))
	if err != nil {
		return fmt.Errorf("printed: %w", err)
	}
	twice, err := hlo.Print(again)
	if err != nil {
		return fmt.Errorf("printed: %w", err)
	}
	if twice != text {
		return fmt.Errorf("printed, it prints differently: %s", firstDifference(text, twice))
	}
	return nil
}

// refuseHLO holds that the parser refuses the unit.
func refuseHLO(_ context.Context, u Unit) error {
	if _, err := parseHLO(u); err == nil {
		return errors.New("is accepted")
	}
	return nil
}

func parseHLO(u Unit) (*ir.Module, error) {
	source, err := u.Source()
	if err != nil {
		return nil, err
	}
	return hlo.Parse(u.Path, []byte(source))
}
