package strips_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/internal/golden"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/mlir"
	"ppc/ir/verify"
	"ppc/lower/strips"
	"ppc/passes"
	"ppc/runtime"
)

// The archives say which loops are made.
func TestGolden(t *testing.T) {
	golden.Run(t, "../../testdata/golden/strips", map[string]golden.Stage{"strips": func(t *testing.T, src string, words []string) string {
		m, err := mlir.Parse("in.mlir", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		limits := strips.Limits{Large: 1 << 20, Strip: 1 << 18, Costs: 1 << 30}
		for _, w := range words {
			fmt.Sscanf(w, "strip=%d", &limits.Strip)
		}
		out := strips.With(m, limits)
		if err := verify.Verify(out); err != nil {
			t.Fatal(err)
		}
		sameBits(t, m, limits)
		out.Main().Renumber()
		return mlir.Print(out)
	}})
}

// compiled is the program per device of an example.
func compiled(t *testing.T, name string, words ...string) *ir.Module {
	t.Helper()
	var set []string
	for _, w := range words {
		if strings.Contains(w, "=") {
			set = append(set, w)
		}
	}
	read := func(path string) ([]byte, error) {
		return os.ReadFile(filepath.Join("../../examples", filepath.Base(path)))
	}
	p, err := lang.Load(name+".pp", lang.Options{Set: set, ReadFile: read, Train: slices.Contains(words, "train")})
	if err != nil {
		t.Fatal(err)
	}
	if err := passes.Run(p.Module, passes.Config{}); err != nil {
		t.Fatal(err)
	}
	return p.Module
}

// loops is how many loops over strips m has.
func loops(m *ir.Module) int {
	n := 0
	m.Main().Body.Walk(func(op *ir.Op) {
		if op.Attrs.Str(ir.KeyLoop) == ir.LoopStrips {
			n++
		}
	})
	return n
}

// arguments are random, of integers small ones, the same for all devices.
func arguments(m *ir.Module, devices int) [][]*ir.Literal {
	rng := rand.New(rand.NewPCG(7, 0))
	var args []*ir.Literal
	for _, p := range m.Main().Params() {
		n := p.Type.NumElements()
		l := &ir.Literal{Type: p.Type, Data: make([]byte, p.Type.Bytes())}
		for i := range n {
			at := l.Data[i*p.Type.Elem.Size():]
			if p.Type.Elem.IsFloat() {
				p.Type.Elem.PutFloat(at, rng.NormFloat64()/4)
			} else {
				p.Type.Elem.PutInt(at, int64(rng.IntN(8)))
			}
		}
		args = append(args, l)
	}
	return slices.Repeat([][]*ir.Literal{args}, devices)
}

// sameBits demands that m gives the same bits in strips and op by op, and returns
// how many loops it has in strips.
func sameBits(t *testing.T, m *ir.Module, limits strips.Limits) int {
	t.Helper()
	s := strips.With(m, limits)
	if err := verify.Verify(s); err != nil {
		t.Fatal(err)
	}
	plain, err := runtime.Load(m, runtime.Unfused())
	if err != nil {
		t.Fatal(err)
	}
	stripped, err := runtime.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	args := arguments(m, plain.Devices())
	want, err := plain.Run(t.Context(), args)
	if err != nil {
		t.Fatal(err)
	}
	got, err := stripped.Run(t.Context(), args, runtime.PoisonBuffers())
	if err != nil {
		t.Fatal(err)
	}
	for d := range want {
		for i := range want[d] {
			if !bytes.Equal(got[d][i].Data, want[d][i].Data) {
				t.Errorf("device %d: result %d has other bits in strips: %s", d, i, firstDifference(got[d][i], want[d][i]))
				return loops(s)
			}
		}
	}
	return loops(s)
}

func firstDifference(a, b *ir.Literal) string {
	for i := range a.Type.NumElements() {
		if x, y := a.Float(i), b.Float(i); x != y {
			return fmt.Sprintf("element %d of %s is %v, not %v", i, a.Type, x, y)
		}
	}
	return "NaN or the sign of zero"
}

// Losses and whole steps of training in strips give the bits that they give op by op.
func TestExamples(t *testing.T) {
	limits := strips.Limits{Large: 1 << 15, Strip: 1 << 13, Costs: 1}
	for _, c := range []struct {
		words string
		loops int
	}{
		{"llama axes.seq=512 axes.batch=4 axes.heads=2 axes.embed=16 axes.mlp=32 axes.vocab=48 mesh.fsdp=1 pipeline.microbatches=4 train", 15},
		{"llama_cp axes.seq=1536 axes.batch=1 axes.heads=1 axes.embed=16 axes.mlp=32 axes.vocab=48 mesh.stage=1 mesh.fsdp=1 pipeline.microbatches=1 pipeline.repeats=8 train", 9},
		{"llama_window axes.seq=96", 8},
		{"llama axes.seq=100 axes.embed=16 axes.vocab=320", 3},
		{"gpt axes.seq=64 train", 2},
		{"llama_moe axes.seq=64", 2},
	} {
		words := strings.Fields(c.words)
		t.Run(words[0], func(t *testing.T) {
			m := compiled(t, words[0], words[1:]...)
			if n := sameBits(t, m, limits); n != c.loops {
				t.Errorf("%d loops over strips, want %d", n, c.loops)
			}
		})
	}
}
