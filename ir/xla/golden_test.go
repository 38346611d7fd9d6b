package xla_test

import (
	"fmt"
	"strings"
	"testing"

	"ppc/internal/diag"
	"ppc/internal/golden"
	"ppc/internal/wordfuzz"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/ir/xla"
	"ppc/lower/hlo"
	"ppc/lower/hlo/rules"

	"github.com/google/go-cmp/cmp"
)

func TestGolden(t *testing.T) {
	golden.Run(t, "../../testdata/golden/xla", map[string]golden.Stage{
		"out.mlir": imported(func(src string) (*ir.Module, error) { return mlir.Parse("in.mlir", []byte(src)) }, func(m *ir.Module) (diag.List, error) {
			return xla.Import(m, xla.Options{})
		}),
		"hlo.mlir": imported(func(src string) (*ir.Module, error) { return hlo.Parse("in.hlo", []byte(src)) }, func(m *ir.Module) (diag.List, error) {
			warnings, local, err := xla.ImportHLO(m, xla.Options{})
			if local && err == nil {
				m.Form |= ir.Expanded | ir.Local
			}
			return warnings, err
		}),
	})
}

// imported is the program that importing makes, after what is warned of, or the
// errors.
func imported(read func(src string) (*ir.Module, error), load func(*ir.Module) (diag.List, error)) golden.Stage {
	return func(t *testing.T, src string, _ []string) string {
		m, err := read(src)
		if err != nil {
			t.Fatal(err)
		}
		if err := verify.Verify(m); err != nil {
			t.Fatal(err)
		}
		warnings, err := load(m)
		if err != nil {
			return err.Error() + "\n"
		}
		if err := verify.Verify(m); err != nil {
			t.Fatalf("what is made is not right: %v", err)
		}
		var b strings.Builder
		for _, w := range warnings {
			b.WriteString("// " + w.String())
		}
		return b.String() + mlir.Print(m)
	}
}

// What is imported from a program that the verifier takes is a program that it
// takes, that prints the same way when it is read again, and of which importing
// leaves everything as it is.
func FuzzImport(f *testing.F) {
	mlirs, hlos := wordfuzz.Seeds(f, "mlir", "xla"), wordfuzz.Seeds(f, "hlo", "xla")
	for _, s := range xla.Shardings {
		mlirs = append(mlirs, fmt.Sprintf("func.func @main(%%a: tensor<4x4xf32> {mhlo.sharding = %[1]q}) -> (tensor<4x4xf32> {mhlo.sharding = %[1]q}) {\n"+
			"  %%0 = stablehlo.custom_call @Sharding(%%a) {mhlo.sharding = %[1]q, backend_config = \"unspecified_dims=[1]\"} : (tensor<4x4xf32>) -> tensor<4x4xf32>\n"+
			"  %%1 = stablehlo.add %%0, %%a {mhlo.sharding = %[1]q} : tensor<4x4xf32>\n  return %%1 : tensor<4x4xf32>\n}\n", s))
		hlos = append(hlos, fmt.Sprintf("HloModule m, num_partitions=4\n\nENTRY main {\n  a = f32[4,4]{1,0} parameter(0), sharding=%s\n"+
			"  ROOT b = f32[4,4]{1,0} add(a, a), sharding=%[1]s\n}\n", s))
	}
	for _, s := range mlirs {
		f.Add(s, wordfuzz.Nothing, false)
	}
	for _, s := range hlos {
		f.Add(s, wordfuzz.Nothing, true)
	}
	words := map[bool]wordfuzz.Words{false: wordfuzz.Of(mlirs...), true: wordfuzz.Of(hlos...)}
	f.Fuzz(func(t *testing.T, src string, edits []byte, isHLO bool) {
		if len(src) < 1<<14 {
			imports(t, words[isHLO].Edit(src, edits), isHLO)
		}
	})
}

// imports holds FuzzImport for one program.
func imports(t *testing.T, src string, isHLO bool) {
	parse, load := mlir.Parse, xla.Import
	if isHLO {
		parse, load = hlo.Parse, func(m *ir.Module, o xla.Options) (diag.List, error) {
			if err := rules.Verify(m); err != nil {
				return nil, err
			}
			hlo.DropUnreached(m)
			warnings, local, err := xla.ImportHLO(m, o)
			if local && err == nil {
				m.Form |= ir.Expanded | ir.Local
			}
			return warnings, err
		}
	}
	m, err := parse("in", []byte(src))
	if err != nil || verify.Verify(m) != nil {
		return
	}
	if _, err := load(m, xla.Options{}); err != nil {
		return
	}
	if err := verify.Verify(m); err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	once := mlir.Print(m)
	if m, err = mlir.Parse("once", []byte(once)); err != nil {
		t.Fatalf("%v\n%s\nof\n%s", err, once, src)
	}
	if err := verify.Verify(m); err != nil {
		t.Fatalf("%v\n%s\nof\n%s", err, once, src)
	}
	if again := mlir.Print(m); again != once {
		t.Fatalf("read again:\n%s\nof\n%s", cmp.Diff(once, again), src)
	}
	if warnings, err := xla.Import(m, xla.Options{}); err != nil || len(warnings) > 0 {
		t.Fatalf("imported again: %v %v\n%s\nof\n%s", warnings, err, once, src)
	}
	if again := mlir.Print(m); again != once {
		t.Fatalf("imported again:\n%s\nof\n%s", cmp.Diff(once, again), src)
	}
}
