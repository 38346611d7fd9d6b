package hlo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ppc/internal/golden"
	"ppc/internal/shared"
	"ppc/ir"
	"ppc/ir/mlir"
	"ppc/ir/verify"
)

// again parses text and prints it.
func again(t *testing.T, text string) string {
	t.Helper()
	m, err := Parse("again.hlo", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	out, err := Print(m)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// readable holds that src is read, and prints as a text that prints the same.
func readable(src string) error {
	m, err := Parse("in.hlo", []byte(src))
	if err != nil {
		return err
	}
	text, err := Print(m)
	if err != nil {
		return err
	}
	if m, err = Parse("printed.hlo", []byte(text)); err != nil {
		return fmt.Errorf("%w in\n%s", err, text)
	}
	twice, err := Print(m)
	if err == nil && twice != text {
		err = fmt.Errorf("-printed +printed again:\n%s", cmp.Diff(text, twice))
	}
	return err
}

// TestScheduled reads what XLA's TPU compiler made of a training step of seven
// thousand million parameters: fusions, layouts, asynchronous collectives.
func TestScheduled(t *testing.T) {
	src, err := os.ReadFile(filepath.Join(shared.Dir(t, "oracle/tpu"), "llama2_7b_per_iteration.hlo"))
	if err != nil {
		t.Fatal(err)
	}
	if err := readable(string(src)); err != nil {
		t.Error(err)
	}
}

// Texts are programs as text, and after them texts that are refused.
func Texts(t testing.TB) (printed, refused []string) {
	for _, p := range programs {
		text, err := Print(module(p.name, p.mesh, p.build))
		if err != nil {
			t.Fatal(err)
		}
		printed = append(printed, text)
	}
	for _, text := range broken {
		refused = append(refused, text.src)
	}
	return printed, refused
}

// broken are texts that must be refused, each for its own reason.
var broken = []struct{ name, src, want string }{
	{"cut buffer", "ENTRY e (x: f32[]) -> (f32[], b", "1:32: want"},
	{"empty", "", "1:1: there is no computation"},
	{"opcode", "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[] ad(x)\n}", "3:18: there is no opcode ad"},
	{"operand", "ENTRY e {\n  alpha = f32[] parameter(0)\n  ROOT y = f32[] add(alpha, alpka)\n}", "3:29: there is no instruction alpka before this one; did you mean alpha?"},
	{"computation", "ENTRY e {\n  x = f32[2] parameter(0)\n  z = f32[] constant(0)\n  ROOT y = f32[] reduce(x, z), dimensions={0}, to_apply=sum\n}", "4:57: there is no computation sum"},
	{"attribute", "ENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] copy(x), shardin={replicated}\n}", "3:36: shardin is no attribute of an instruction; did you mean sharding?"},
	{"order and type", "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = pred[] compare(x, x), direction=LT, order=TOTAL, type=FLOAT\n}", "3:66: type: a comparison has a type or an order, not both"},
	{"order", "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = pred[] compare(x, x), direction=LT, order=TOTALORDER\n}", "3:54: order: want one of PARTIAL, WEAK, TOTAL, found TOTALORDER"},
	{"layout", "ENTRY e {\n  ROOT x = f32[2,3]{0,0} parameter(0)\n}", "2:20: layout {0,0} has dimension 0 twice"},
	{"literal", "ENTRY e {\n  ROOT x = s8[2] constant({1, 300})\n}", "2:27: constant of type tensor<2xi8>: 300 is no number of type s8"},
	{"twice", "ENTRY e {\n  x = f32[] parameter(0)\n  x = f32[] parameter(1)\n}", "3:3: there are two instructions called x"},
	{"parameter twice", "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[] parameter(0)\n}", "3:28: parameter number 0 of e, want 0 to 1, each once"},
	{"parameter beyond", "ENTRY e {\n  ROOT x = f32[] parameter(9999999999)\n}", "2:28: parameter number 9999999999 of e, want 0 to 0, each once"},
	{"itself", "e {\n  ROOT x = f32[] call(), to_apply=e\n}", "there is no computation e before this one"},
	{"comment", "ENTRY e { /* ", "1:11: the comment does not end"},
	{"string", "ENTRY e { x = f32[] parameter(0), metadata={op_name=\"a }", "1:53: the string does not end"},
	{"deep shape", "ENTRY e { x = " + strings.Repeat("(", 1000) + "f32[]", "tuples are nested more than 100 deep"},
	{"deep operands", "ENTRY e { x = f32[] " + strings.Repeat("sqrt(", 1000), "operands are nested more than 100 deep"},
	{"deep computations", "ENTRY e { x = f32[] " + strings.Repeat("fusion(), calls={ x = f32[] ", 1000), "computations are nested more than 100 deep"},
	{"many devices", "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[] all-to-all(x), dimensions={0}, replica_groups=[1,1073741824]<=[1073741824]\n}", "are not the devices of a grid of at most"},
	{"aliased twice", "HloModule m, input_output_alias={ {0}: (0, {}), {0}: (1, {}) }\nENTRY e {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT t = (f32[], f32[]) tuple(x, y)\n}", "1:33: input_output_alias: output {0} takes the memory of two parameters"},
	{"doubling", doubling(40), "too often"},
}

// doubling is a text of n computations, each of which chooses between two
// copies of the one before.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString("c0 {\n  ROOT x = f32[] parameter(0)\n}\n")
	for i := range n {
		fmt.Fprintf(&b, "c%d {\n  x = f32[] parameter(0)\n  p = pred[] constant(true)\n  ROOT y = f32[] conditional(p, x, x), true_computation=c%d, false_computation=c%d\n}\n", i+1, i, i)
	}
	return b.String()
}

func TestParseErrors(t *testing.T) {
	for _, b := range broken {
		t.Run(b.name, func(t *testing.T) {
			_, err := Parse("in.hlo", []byte(b.src))
			if err == nil || !strings.Contains(err.Error(), b.want) {
				t.Errorf("got %v, want %q", err, b.want)
			}
		})
	}
}

// TestGolden shows what becomes of HLO text: in MLIR, and printed again.
func TestGolden(t *testing.T) {
	read := func(t *testing.T, src string) *ir.Module {
		m, err := Parse("in.hlo", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		if err := verify.Verify(m); err != nil {
			t.Error(err)
		}
		return m
	}
	golden.Run(t, filepath.Join("..", "..", "testdata", "golden", "hlo"), map[string]golden.Stage{
		"mlir": func(t *testing.T, src string, _ []string) string { return mlir.Print(read(t, src)) },
		"unfused": func(t *testing.T, src string, _ []string) string {
			m, err := Unfuse(read(t, src))
			if err != nil {
				t.Fatal(err)
			}
			if err := verify.Verify(m); err != nil {
				t.Error(err)
			}
			m.Funcs = []*ir.Func{m.Main()}
			return mlir.Print(m)
		},
		"runnable": func(t *testing.T, src string, _ []string) string {
			m, err := Runnable(read(t, src))
			if err != nil {
				return err.Error() + "\n"
			}
			if err := verify.Verify(m); err != nil {
				t.Error(err)
			}
			m.Funcs = []*ir.Func{m.Main()}
			return mlir.Print(m)
		},
		"hlo": func(t *testing.T, src string, _ []string) string {
			text, err := Print(read(t, src))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text, again(t, text)); diff != "" {
				t.Errorf("-printed +printed again:\n%s", diff)
			}
			return text
		},
	})
}
