package hlo

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"ppc/internal/shared"
	"ppc/internal/tensorfile"
	"ppc/ir"
	"ppc/ir/eval"
)

// arguments are numbers for the parameters of m's main function on n devices:
// small and different everywhere, integers within any index's range.
func arguments(m *ir.Module, n int) [][]*ir.Literal {
	args := make([][]*ir.Literal, n)
	for d := range args {
		for p, v := range m.Main().Params() {
			l := &ir.Literal{Type: v.Type, Data: make([]byte, v.Type.Bytes())}
			for i := range v.Type.NumElements() {
				x := math.Sin(float64(1 + i*7 + p*13 + d*29))
				if !v.Type.Elem.IsFloat() {
					x = math.Floor(2 + 2*x)
				}
				v.Type.Elem.PutFloat(l.Data[i*v.Type.Elem.Size():], x)
			}
			args[d] = append(args[d], l)
		}
	}
	return args
}

func evaluate(t *testing.T, m *ir.Module) ([][]*ir.Literal, [][]*ir.Literal) {
	t.Helper()
	args := arguments(m, m.NumDevices())
	out, err := eval.RunDevices(m, m.Main(), args, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return args, out
}

// TestMeaning holds that a program computes the same, bit for bit, when it has
// been printed and read. With PPC_HLO_DIR it also writes each program with its
// arguments and results there, for tools/xlacheck.py.
func TestMeaning(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			m := module(p.name, p.mesh, p.build)
			args, want := evaluate(t, m)
			text, err := Print(m)
			if err != nil {
				t.Fatal(err)
			}
			read, err := Parse(p.name+".hlo", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			_, got := evaluate(t, read)
			for d := range want {
				for k, w := range want[d] {
					if g := got[d][k]; !g.Type.Equal(w.Type) || !bytes.Equal(g.Data, w.Data) {
						t.Errorf("device %d, result %d: got %s, want %s", d, k, g, w)
					}
				}
			}
			if dir := shared.Setting(t, "PPC_HLO_DIR"); dir != "" {
				writeRun(t, filepath.Join(dir, p.name), text, args, want)
			}
		})
	}
}

// writeRun writes text and what it took and gave, each value of several
// devices stacked on an axis of devices.
func writeRun(t *testing.T, path, text string, args, results [][]*ir.Literal) {
	t.Helper()
	if err := os.WriteFile(path+".hlo", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, set := range []struct {
		key, suffix string
		values      [][]*ir.Literal
	}{{"in", ".args.npz", args}, {"out", ".results.npz", results}} {
		var arrays []tensorfile.Named
		for k, l := range set.values[0] {
			a := tensorfile.Array{DType: l.Type.Elem.String(), Shape: l.Type.Shape}
			if n := len(set.values); n > 1 {
				a.Shape = append([]int{n}, a.Shape...)
			}
			for d := range set.values {
				a.Data = append(a.Data, set.values[d][k].Data...)
			}
			arrays = append(arrays, tensorfile.Named{Name: fmt.Sprintf("%s%d", set.key, k), Array: a})
		}
		var data bytes.Buffer
		if err := tensorfile.Write(&data, path+set.suffix, arrays); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+set.suffix, data.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
