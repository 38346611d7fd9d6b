package driver

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"ppc/driver/binding"
	"ppc/internal/golden"
	"ppc/internal/shared"
	"ppc/internal/tensorfile"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/mlir"
	"ppc/runtime/pjrt"
)

func init() { pjrt.Serve() } // a worker's child is this test

// engineExamples are the programs that every engine is held to: all that are small,
// with PPC_ENGINES=all, or some.
func engineExamples(t *testing.T) []string {
	if shared.Setting(t, "PPC_ENGINES") != "all" {
		return []string{"../examples/simple.pp", "../examples/llama_moe.pp"}
	}
	var out []string
	for _, pattern := range []string{"../examples/*.pp", "../examples/maxtext/*.pp"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			p, err := lang.Load(f, lang.Options{Library: true})
			if err != nil {
				t.Fatal(err)
			}
			large := strings.Contains(f, "b.pp") || strings.Contains(f, "_small") || strings.Contains(f, "_medium") // of full size, or for measuring
			if p.Module != nil && !large {
				out = append(out, f)
			}
		}
	}
	return out
}

// jobExamples are those that processes of JAX are held to, which take half a minute
// each: with PPC_JOBS=all those of every engine, with PPC_ENGINES=all one of each kind,
// otherwise none.
func jobExamples(t *testing.T) map[string]bool {
	if shared.Setting(t, "PPC_ENGINES") != "all" {
		return nil
	}
	return map[string]bool{"simple.pp": true, "llama_gpipe.pp": true, "llama_hybrid.pp": true, "llama_window.pp": true, "gpt_oss.pp": true, "deepseek_moe.pp": true}
}

// TestEngines: three steps of training, or one run, give the same losses, parameters
// and results on every engine, and the same bits in every run on one; of JAX that is held of
// one example, or of all with PPC_JOBS=all. That a plugin
// makes the same of a program when it compiles it once more is held of the examples
// of jobs, with XLA's optimisations.
func TestEngines(t *testing.T) {
	plugin := "pjrt:" + shared.CPUPlugin(t)
	sample := jobExamples(t)
	for _, file := range engineExamples(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want := runThree(t, file, Goroutines, nil)
			holds := func(t *testing.T, engine string, engines func(string) (engine, error), twice bool) {
				got := runThree(t, file, engine, engines)
				again := got
				if twice {
					again = runThree(t, file, engine, engines)
				}
				for name, w := range want {
					if got[name] == nil {
						t.Errorf("%s: %s has no %s", file, engine, name)
						continue
					}
					if worst := furthest(w, got[name]); !(worst <= 1e-4) {
						t.Errorf("%s: %s is %v off on %s", file, name, worst, engine)
					}
					if !slices.Equal(got[name].Data, again[name].Data) {
						t.Errorf("%s: %s has other bits in another run on %s", file, name, engine)
					}
				}
			}
			if sample[filepath.Base(file)] {
				t.Run("optimised", func(t *testing.T) {
					optimised(t)
					holds(t, plugin, nil, true)
				})
			} else {
				once := new(compiledOnce)
				defer once.end()
				holds(t, plugin, once.open, true)
			}
			if all := shared.Setting(t, "PPC_JOBS") == "all"; all || sample[filepath.Base(file)] {
				holds(t, JAX, nil, all || filepath.Base(file) == "llama_gpipe.pp")
			}
		})
	}
}

// compiledOnce is a plugin that several runs of one program have after each other: it
// compiles for the first, and the others get what it made, if theirs is the same text.
type compiledOnce struct {
	engine
	text string
	exe  *pjrt.Remote
}

func (c *compiledOnce) open(name string) (engine, error) {
	if c.engine != nil {
		return c, nil
	}
	var err error
	c.engine, err = openEngine(name, 0)
	return c, err
}

func (c *compiledOnce) load(ctx context.Context, m *ir.Module) (executable, error) {
	text := mlir.Print(m)
	if c.exe == nil {
		exe, err := c.engine.load(ctx, m)
		if err != nil {
			return nil, err
		}
		c.text, c.exe = text, exe.(*pjrt.Remote)
	} else if text != c.text {
		return nil, fmt.Errorf("another run has another program:\n%s\nand at first\n%s", text, c.text)
	}
	of := *c.exe // what stays on devices is of a run
	return &of, nil
}

// close is the end of a run.
func (c *compiledOnce) close() {}

func (c *compiledOnce) end() {
	if c.engine != nil {
		c.engine.close()
	}
}

// TestCurve: train_bytes.pp comes to the loss that it states, by the same curve on every
// engine.
func TestCurve(t *testing.T) {
	plugin := "pjrt:" + shared.CPUPlugin(t)
	if jobExamples(t) == nil {
		t.Skip("PPC_ENGINES is not all")
	}
	optimised(t)
	var curves [][]float64
	for _, engine := range []string{Goroutines, plugin, JAX} {
		opts := RunOptions{Engine: engine}
		if engine == JAX {
			opts.Processes = 2
		}
		var losses []float64
		opts.Step = func(s *Step) { losses = append(losses, s.Loss().literal.Float(0)) }
		if _, err := Run(t.Context(), &Source{File: "../examples/train_bytes.pp"}, opts); err != nil {
			t.Fatalf("%s: %v", engine, err)
		}
		if last := losses[len(losses)-1]; len(losses) != 150 || last >= 2 {
			t.Errorf("%s: loss %v after %d steps, want less than 2 after 150", engine, last, len(losses))
		}
		curves = append(curves, losses)
	}
	const alike, few = 20, 10 // the roundings of an engine grow from step to step: single losses agree at first, means later
	for k, curve := range curves {
		for i, want := range curves[0][:alike] {
			if math.Abs(curve[i]-want) > 1e-4*want {
				t.Errorf("step %d: loss %v on engine %d, on %s %v", i+1, curve[i], k, Goroutines, want)
			}
		}
		for i := alike; i+few <= len(curve); i += few {
			if got, want := floats.Sum(curve[i:i+few])/few, floats.Sum(curves[0][i:i+few])/few; math.Abs(got-want) > 1e-2*want {
				t.Errorf("steps %d to %d: mean loss %v on engine %d, on %s %v", i+1, i+few, got, k, Goroutines, want)
			}
		}
	}
}

// runThree is what three steps of a program give on an engine, or one run; JAX has two
// processes. engines opens the engine; nil is openEngine.
func runThree(t *testing.T, file, engine string, engines func(string) (engine, error)) map[string]*tensorfile.Array {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.npz")
	opts := RunOptions{Engine: engine, Out: out}
	src := &Source{File: file}
	p, err := src.load(t.Context(), lang.Options{Train: true})
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(p.m.Main().Params(), func(v *ir.Value) bool { return slices.Equal(v.Type.Shape, []int{16, 64}) }) {
		src.Set = []string{"axes.seq=16", "axes.embed=32", "axes.mlp=64"} // smaller than llama.pp, with the same schedule, shardings and settings
	}
	if p.training != nil {
		three := 3
		opts.Steps = &three
	}
	if engine == JAX {
		opts.Processes = max(1, min(2, binding.NumDevices(p.m)))
	}
	r := &runner{src: src, opts: opts, engines: engines}
	if _, err := r.run(t.Context()); err != nil {
		t.Fatalf("%s: %v", engine, err)
	}
	return golden.Arrays(t, out)
}

// furthest is the largest difference of elements, relative to the largest element
// but at least absolute.
func furthest(a, b *tensorfile.Array) float64 {
	x, y := binding.LiteralOf(a), binding.LiteralOf(b)
	worst, scale := 0.0, 1.0
	for i := range x.Type.NumElements() {
		scale = max(scale, math.Abs(x.Float(i)))
		worst = max(worst, math.Abs(x.Float(i)-y.Float(i)))
	}
	return worst / scale
}
