package dialect_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"ppc/internal/optest"
	"ppc/ir"
	"ppc/ir/dialect"
	"ppc/ir/mlir"
	"ppc/ir/verify"
)

// exampleModule has the values, functions and mesh that the examples of the
// op table use.
const exampleModule = `module @example {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func private @layer(%x: tensor<2x8xf32>, %w: tensor<8x8xf32>) -> tensor<2x8xf32> {
    return %x : tensor<2x8xf32>
  }
  func.func private @full_batch(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
    return %x : tensor<4x8xf32>
  }
  func.func @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %w: tensor<8x4xf32>, %f: tensor<f32>,
      %i: tensor<4x8xi32>, %j: tensor<4x8xi32>, %n: tensor<i32>, %p: tensor<4x8xi1>, %q: tensor<4x8xi1>, %t: tensor<i1>,
      %k: tensor<2x1xi32>, %u: tensor<2x8xf32>, %m: tensor<8x8xf32>, %stack: tensor<2x8x8xf32>, %kernel: tensor<3x4x6xf32>,
      %pair: tuple<tensor<4x8xf32>, tensor<f32>>, %e: tensor<8xf32>) -> tensor<4x8xf32> {
EXAMPLE
    return %a : tensor<4x8xf32>
  }
}
`

// exampleText is a module with the example of k in it.
func exampleText(k ir.Kind) string {
	text := strings.Replace(exampleModule, "EXAMPLE", indent(k.Example()), 1)
	if k == ir.FuncReturn { // is the only return
		text = strings.Replace(text, indent(k.Example())+"\n", "", 1)
	}
	return text
}

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }

// parseExample returns a module with the example of k in it, verified.
func parseExample(t *testing.T, k ir.Kind) *ir.Module {
	t.Helper()
	m, err := mlir.Parse(k.String(), []byte(exampleText(k)))
	if err != nil {
		t.Fatalf("%s: %v", k, err)
	}
	if err := verify.Verify(m); err != nil {
		t.Fatalf("%s: %v", k, err)
	}
	return m
}

// Every op has an example, which uses it, verifies, mangled or not, and is
// printed as it stands in the table; some archive breaks its rules; and what its
// row says of it is what it computes.
func TestOp(t *testing.T) {
	seen, _ := brokenOps(t)
	optest.Each(t, func(t *testing.T, k ir.Kind) {
		t.Run("example", func(t *testing.T) { testExample(t, k) })
		t.Run("mangled", func(t *testing.T) { testMangled(t, k) })
		t.Run("row", func(t *testing.T) { testRow(t, k) })
		if !seen[k] && !k.Has(ir.Elementwise) { // elementwise ones stand for each other
			t.Errorf("no archive in testdata/golden/verify breaks a rule of %s", k)
		}
	})
}

// The ops without a Kind have examples too, which verify and are printed as they
// stand in the table, and break when mangled without a panic.
func TestReferenceExamples(t *testing.T) {
	_, broken := brokenOps(t)
	for i, row := range dialect.References() {
		if !broken[row.Name] {
			t.Errorf("no archive in testdata/golden/verify breaks a rule of %s", row.Name)
		}
		text := strings.Replace(exampleModule, "EXAMPLE", indent(row.Example), 1)
		m, err := mlir.Parse(row.Name, []byte(text))
		if err != nil {
			t.Errorf("%s: %v", row.Name, err)
			continue
		}
		if err := verify.Verify(m); err != nil {
			t.Errorf("%s: %v", row.Name, err)
			continue
		}
		printed := mlir.Print(m)
		if !strings.Contains(printed, indent(row.Example)+"\n") || !strings.Contains(row.Example, row.Name) {
			t.Errorf("the example\n%s\nis printed otherwise, in\n%s", indent(row.Example), printed)
		}
		generic := mlir.PrintWith(m, mlir.Options{Generic: true})
		if reread, err := mlir.Parse("generic", []byte(generic)); err != nil || mlir.Print(reread) != printed {
			t.Errorf("%s, in generic form: %v\n%s", row.Name, err, generic)
		}
		r := rand.New(rand.NewPCG(uint64(i), 2))
		for range 100 {
			c := m.Clone()
			dialect.Mangle(r, c)
			dialect.CheckAgain(t, m, c)
			dialect.CheckMangled(t, c)
		}
	}
}

// testExample: what is printed in either form is read back as the same.
func testExample(t *testing.T, k ir.Kind) {
	m := parseExample(t, k)
	uses := 0
	m.Main().Body.Walk(func(op *ir.Op) {
		if op.Kind == k {
			uses++
		}
	})
	if uses == 0 {
		t.Error("the example does not use the op")
	}
	text := mlir.Print(m)
	if !strings.Contains(text, indent(k.Example())+"\n") {
		t.Errorf("the example\n%s\nis printed otherwise: by its row in ir/mlir/syntax.go, or for want of one, in\n%s", indent(k.Example()), text)
	}
	for _, generic := range []bool{false, true} {
		printed := mlir.PrintWith(m, mlir.Options{Generic: generic})
		reread, err := mlir.Parse("printed", []byte(printed))
		if err != nil {
			t.Fatalf("%v, in\n%s", err, printed)
		}
		if got := mlir.Print(reread); got != text {
			t.Errorf("printed after reading:\n%s\nwant\n%s", got, text)
		}
	}
}

// testMangled: the verifier also says something of the example, mangled.
func testMangled(t *testing.T, k ir.Kind) {
	m := parseExample(t, k)
	r := rand.New(rand.NewPCG(uint64(k), 1))
	for range 100 {
		c := m.Clone()
		dialect.Mangle(r, c)
		dialect.CheckAgain(t, m, c)
		dialect.CheckMangled(t, c)
	}
}
