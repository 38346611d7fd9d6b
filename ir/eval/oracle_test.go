package eval

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ppc/internal/conformance"
	"ppc/internal/optest"
	"ppc/internal/shared"
	"ppc/internal/tensorfile"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/ir/verify"
)

// What the verifier accepts gives results or an error.
func TestVerifiedDoesNotPanic(t *testing.T) {
	ran := 0
	for _, u := range conformance.Units(t, "verify-ok", "sdy-parse", "sdy-partition", "sdy-collective") {
		source, err := u.Source()
		if err != nil {
			t.Fatal(err)
		}
		m, err := mlir.Parse(u.Path, []byte(source))
		if err != nil || verify.Verify(m) != nil {
			continue
		}
		for _, f := range m.Funcs {
			if evaluates(t, u.Name(), m, f) {
				ran++
			}
		}
	}
	t.Logf("%d functions give results", ran)
}

// evaluates reports whether f gives results for ones.
func evaluates(t *testing.T, name string, m *ir.Module, f *ir.Func) bool {
	if f.Body == nil {
		return false
	}
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%s, %s: %v", name, f.Name, r)
		}
	}()
	var args []*ir.Literal
	for _, p := range f.Params() {
		if !p.Type.IsTensor() || !p.Type.IsStatic() {
			return false
		}
		args = append(args, ir.SplatOf(p.Type, 1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Run(m, f, args, Options{Context: ctx, Memory: 1 << 20})
	return err == nil
}

// An oracle is a program that JAX exported, with what XLA computed.
type oracle struct {
	name      string
	tolerance float64
	ops       []string
}

func oracles(t *testing.T, dir string) []oracle {
	data, err := os.ReadFile(filepath.Join(dir, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var os []oracle
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		c := strings.Split(line, "\t")
		if i == 0 {
			continue
		}
		o := oracle{name: c[0], ops: strings.Fields(c[9])}
		fmt.Sscan(c[7], &o.tolerance)
		os = append(os, o)
	}
	return os
}

// known reports whether the table has every op.
func (o oracle) known() bool {
	return !slices.ContainsFunc(o.ops, func(name string) bool {
		return !strings.HasPrefix(name, "sdy.mesh") && name != "sdy.sharding" && ir.KindByName(name) == ir.Unknown
	})
}

// roughConstants are programs whose constants have been rounded, so that in
// float64 they do not give what the recorded float64 program gave.
var roughConstants = map[string]float64{"bf16_dot": 1e-2, "shapes": 1e-8, "while_dynamic": 1e-7,
	"tx_adamw_1dev": 1e-7, "mt_llama_s4f2_grad": 1e-10, "transcendental": 1e-7}

// What XLA computed, to its tolerance; and in float64, to 1e-12, what the same
// program gave there.
func TestOracle(t *testing.T) {
	dir := shared.Dir(t, "oracle/stablehlo")
	for _, o := range oracles(t, dir) {
		if !o.known() {
			continue
		}
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			o.run(t, dir)
		})
	}
}

func (o oracle) run(t *testing.T, dir string) {
	src, err := os.ReadFile(filepath.Join(dir, o.name+".mlir"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := mlir.Parse(o.name, src)
	if err != nil {
		t.Fatal(err)
	}
	npz, err := tensorfile.Open(filepath.Join(dir, o.name+".npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer npz.Close()
	var args []*ir.Literal
	for i := range m.Main().Params() {
		args = append(args, readLiteral(t, npz, fmt.Sprintf("in%d", i)))
	}
	out, err := Run(m, m.Main(), args, Options{})
	if err != nil {
		t.Fatal(err)
	}
	wide, err := Run(m, m.Main(), args, Options{Float64: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		o.compare(t, fmt.Sprintf("out%d", i), npz, out[i], o.tolerance)
		o.compare(t, fmt.Sprintf("ref%d", i), npz, wide[i], max(1e-12, roughConstants[o.name]))
	}
}

// compare checks got against the array called name, if there is one.
func (o oracle) compare(t *testing.T, name string, npz *tensorfile.File, got *ir.Literal, tolerance float64) {
	if !npz.Has(name) {
		return
	}
	want := readLiteral(t, npz, name)
	if !want.Type.Elem.IsFloat() && !want.Type.Elem.IsComplex() {
		tolerance = 0
	}
	if abs, rel := optest.MaxDiff(got, want); !(rel <= tolerance) {
		t.Errorf("%s: off by %g, relatively %g, want at most %g", name, abs, rel, tolerance)
	}
}

func readLiteral(t *testing.T, npz *tensorfile.File, name string) *ir.Literal {
	a, err := npz.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	return &ir.Literal{Type: ir.Tensor(ir.DTypeByName(a.DType), a.Shape...), Data: a.Data}
}
