package examples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ppc/internal/golden"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/lower/stats"
	"ppc/passes"
)

// lower compiles a program whose text may include the examples.
func lower(t testing.TB, src string, set ...string) *ir.Module {
	t.Helper()
	return lowerAs(t, src, lang.Options{Set: set})
}

func lowerAs(t testing.TB, src string, opts lang.Options) *ir.Module {
	t.Helper()
	opts.ReadFile = func(name string) ([]byte, error) {
		if name == "in.pp" {
			return []byte(src), nil
		}
		return os.ReadFile(filepath.Base(name))
	}
	p, err := lang.Load("in.pp", opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := passes.Run(p.Module, passes.Config{}); err != nil {
		t.Fatal(err)
	}
	return p.Module
}

// The collectives that a program executes, by loop: what the mathematics of an
// iteration asks for, and no more. gradient is those of the gradients as well.
func TestCounts(t *testing.T) {
	stage := func(grad bool, set ...string) golden.Stage {
		return func(t *testing.T, src string, _ []string) string {
			s, err := stats.Of(lowerAs(t, src, lang.Options{Set: set, Grad: grad}))
			if err != nil {
				t.Fatal(err)
			}
			_, text, _ := strings.Cut(s.Text(), "\n\ncollectives")
			text, _, _ = strings.Cut(text, "\n\n")
			return "collectives" + text
		}
	}
	golden.Run(t, "../testdata/golden/counts", map[string]golden.Stage{
		"ppermute":  stage(false, "pipeline.rotate=ppermute"),
		"slice_pad": stage(false, "pipeline.rotate=slice_pad"),
		"gradient":  stage(true),
		"policies":  policyTable,
		"zero":      zeroTable,

		"accumulated": accumulatedTable,
	})
}

// Cross entropy over a sharded vocabulary, of a sequence that is sharded or not,
// moves nothing of the size of the logits, forward or backward: a maximum and two
// sums for each token. Nor does the lookup move the table.
func TestLossStaysSharded(t *testing.T) {
	for program, set := range map[string][]string{"llama_tp.pp": nil, "llama_sp.pp": nil, "llama_cp.pp": {"mesh.fsdp=1", "mesh.tensor=2"}} {
		m := lowerAs(t, `include "`+program+`"`, lang.Options{Grad: true, Set: append(set, "axes.vocab=4096")})
		s, err := stats.Of(m)
		if err != nil {
			t.Fatal(err)
		}
		const logits = 16 * 64 * 4096 * 4
		const table = 4096 * 64 * 4
		for _, c := range s.Collectives {
			if c.Loop != "" {
				continue
			}
			if c.Bytes >= logits/m.NumDevices() {
				t.Errorf("%s: %s over %s of %d bytes, of %d that logits have on a device", program, c.Kind, c.Axes, c.Bytes, logits/m.NumDevices())
			}
			if c.Kind == "all_gather" && c.Axes == "tensor" && c.Bytes >= table {
				t.Errorf("%s: the table is gathered over tensor", program)
			}
		}
	}
}
