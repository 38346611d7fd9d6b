package examples_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/driver"
	"ppc/internal/shared"
	"ppc/internal/tensorfile"
	"ppc/ir"
	"ppc/ir/eval"
)

// A recording is one file of what MaxText computed.
type recording struct {
	t     *testing.T
	file  *tensorfile.File
	names []string // of the weights, without w/
	meta  struct {
		S, R, L, M, D int
		Mesh          map[string]int
		Resolved      struct {
			Emb_dim, Mlp_dim, Head_dim, Num_query_heads, Num_kv_heads int
		}
	}
}

func record(t *testing.T, name string) *recording {
	t.Helper()
	f, err := tensorfile.Open(filepath.Join(shared.Dir(t), "oracle", "maxtext", name+".npz"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r := &recording{t: t, file: f}
	for _, n := range f.Names() {
		if w, ok := strings.CutPrefix(n, "w/"); ok {
			r.names = append(r.names, w)
		}
	}
	meta := r.read("meta")
	if err := json.Unmarshal(meta.Data, &r.meta); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *recording) read(name string) *tensorfile.Array {
	r.t.Helper()
	a, err := r.file.Read(name)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// run executes the program with the arguments, at the given element type, and
// returns the relative deviation of out from want.
func run(t *testing.T, program, dtype string, set []string, args []tensorfile.Named, want *tensorfile.Array) float64 {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.npz"), filepath.Join(dir, "out.npz")
	for i := range args {
		if args[i].Array.DType == "f64" && dtype == "f32" {
			args[i].Array = convert(args[i].Array, "f32")
		}
	}
	write(t, in, args)
	src := &driver.Source{File: program, Set: append([]string{"types.act=" + dtype, "types.weight=" + dtype}, set...)}
	if _, err := driver.Run(t.Context(), src, driver.RunOptions{Args: in, Out: out}); err != nil {
		t.Fatalf("%s %v: %v", program, set, err)
	}
	f, err := tensorfile.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := f.Read("out")
	if err != nil {
		t.Fatal(err)
	}
	_, rel := eval.MaxDiff(literal(convert(*got, "f64")), literal(*want))
	return rel
}

func write(t *testing.T, path string, arrays []tensorfile.Named) {
	t.Helper()
	w, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := tensorfile.Write(w, path, arrays); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func literal(a tensorfile.Array) *ir.Literal {
	return &ir.Literal{Type: ir.Tensor(ir.DTypeByName(a.DType), a.Shape...), Data: a.Data}
}

// convert rounds every element to dtype.
func convert(a tensorfile.Array, dtype string) tensorfile.Array {
	from := literal(a)
	to := ir.Tensor(ir.DTypeByName(dtype), a.Shape...)
	vs := make([]float64, to.NumElements())
	for i := range vs {
		vs[i] = from.Float(i)
	}
	return tensorfile.Array{DType: dtype, Shape: a.Shape, Data: ir.Floats64(to, vs...).Data}
}

// program is the .pp file of a recorded layer.
func program(layer string) string {
	if layer == "gemma3_local" {
		layer = "gemma3"
	}
	return filepath.Join("maxtext", layer+".pp")
}

// inputs are the recorded inputs that the layer takes.
func (r *recording) inputs(layer string) []tensorfile.Named {
	in := []tensorfile.Named{{Name: "x", Array: *r.read("x")}}
	if !strings.HasPrefix(layer, "simple") {
		in = append(in, tensorfile.Named{Name: "positions", Array: *r.read("positions")}, tensorfile.Named{Name: "segment_ids", Array: *r.read("segment_ids")})
	}
	return in
}

// neutral is a weight that makes its layer the identity: residual layers with
// nothing coming out of attention and MLP, and products with the identity.
func neutral(name string, w tensorfile.Array) tensorfile.Array {
	vs := make([]float64, literal(w).Type.NumElements())
	if name == "weights" || strings.HasPrefix(name, "ff_") {
		for i := range min(w.Shape[0], w.Shape[1]) {
			vs[i*w.Shape[1]+i] = 1
		}
	}
	return tensorfile.Array{DType: w.DType, Shape: w.Shape, Data: ir.Floats64(ir.Tensor(ir.F64, w.Shape...), vs...).Data}
}

// The eleven dense layers, in a pipeline of four stages: the recorded layer
// stands at each stage in turn, layers that change nothing at the others.
func TestMaxTextLayers(t *testing.T) {
	for _, layer := range []string{"simple", "simple_mlp", "llama2", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_local", "gemma3_global", "olmo3", "gpt3"} {
		t.Run(layer, func(t *testing.T) {
			r := record(t, "layer_"+layer)
			set := []string{fmt.Sprintf("axes.batch=%d", r.read("x").Shape[0]), "mesh.fsdp=1"}
			if layer == "gpt3" {
				set = append(set, "axes.kv_heads=4")
			}
			for at := range 4 {
				args := r.inputs(layer)
				for _, name := range r.names {
					w := *r.read("w/" + name)
					args = append(args, tensorfile.Named{Name: name, Array: stack(w, neutral(name, w), at)})
				}
				for _, c := range []struct {
					dtype string
					tol   float64
				}{{"f64", 1e-12}, {"f32", 5e-6}} {
					if rel := run(t, program(layer), c.dtype, set, slices.Clone(args), r.read("out")); !(rel <= c.tol) {
						t.Errorf("at stage %d in %s: out differs by %g", at, c.dtype, rel)
					}
				}
			}
		})
	}
}

// stack puts w at layer at of four, other everywhere else.
func stack(w, other tensorfile.Array, at int) tensorfile.Array {
	var data []byte
	for i := range 4 {
		if i == at {
			data = append(data, w.Data...)
		} else {
			data = append(data, other.Data...)
		}
	}
	return tensorfile.Array{DType: w.DType, Shape: append([]int{4}, w.Shape...), Data: data}
}

// The recorded pipelines, each with its own stages, repeats, layers per stage,
// microbatches and delay. Where MaxText's own pipeline is wrong, the recorded
// layers in sequence are what counts.
func TestMaxTextPipelines(t *testing.T) {
	for name, layer := range map[string]string{
		"pipe_simple_s4_r1_m4": "simple", "pipe_simple_s4_r2_m4": "simple", "pipe_simple_s4_r2_m8": "simple", "pipe_simple_s3_r3_m6": "simple",
		"pipe_simple_s4_r2_m8_delay": "simple", "pipe_wrong_simple_s4_r2_m8_per_repeat": "simple", "pipe_mlp_s2_r4_m8": "simple_mlp",
		"pipe_llama2_s4_r2_m8": "llama2", "pipe_llama2_s4_r1_l2_m4": "llama2", "pipe_llama2_s2_r4_m8_per_repeat": "llama2",
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t, name)
			m := r.meta
			set := []string{
				fmt.Sprintf("axes.batch=%d", r.read("x").Shape[0]), fmt.Sprintf("axes.embed=%d", m.Resolved.Emb_dim), fmt.Sprintf("axes.mlp=%d", m.Resolved.Mlp_dim),
				fmt.Sprintf("mesh.stage=%d", m.S), fmt.Sprintf("mesh.fsdp=%d", m.Mesh["fsdp"]),
				fmt.Sprintf("pipeline.microbatches=%d", m.M), fmt.Sprintf("pipeline.repeats=%d", m.R), fmt.Sprintf("pipeline.layers_per_stage=%d", m.L), fmt.Sprintf("pipeline.delay=%d", m.D),
				fmt.Sprintf("axes.layers=%d", m.S*m.R*m.L),
			}
			args := append(r.inputs(layer), r.weights()...)
			for _, gather := range []string{"per_iteration", "once"} {
				for _, rotate := range []string{"ppermute", "slice_pad"} {
					s := append(slices.Clone(set), "pipeline.gather="+gather, "pipeline.rotate="+rotate)
					if rel := run(t, program(layer), "f64", s, slices.Clone(args), r.read("out")); !(rel <= 1e-12) {
						t.Errorf("%s, %s: out differs by %g", gather, rotate, rel)
					}
				}
			}
			if rel := run(t, program(layer), "f32", set, slices.Clone(args), r.read("out")); !(rel <= 5e-6) {
				t.Errorf("in f32: out differs by %g", rel)
			}
		})
	}
}

// weights are the recorded weights stacked over layers in model order. They
// are recorded as [R, S, …], or [S, …] for each position in a stage.
func (r *recording) weights() []tensorfile.Named {
	m := r.meta
	layers := m.S * m.R * m.L
	var out []tensorfile.Named
	for _, name := range r.names {
		leaf := name
		if strings.HasPrefix(name, "layers_") {
			if strings.HasPrefix(name, "layers_1/") {
				continue
			}
			leaf = strings.TrimPrefix(name, "layers_0/")
		}
		w := *r.read("w/" + name)
		inner := w.Shape[1:]
		if m.R > 1 {
			inner = w.Shape[2:]
		}
		a := tensorfile.Array{DType: w.DType, Shape: append([]int{layers}, inner...), Data: w.Data}
		if leaf != name { // positions 0 and 1 of each stage in turn
			second := r.read("w/layers_1/" + leaf)
			row := len(w.Data) / (m.S * m.R)
			a.Data = nil
			for i := range m.S * m.R {
				a.Data = append(a.Data, w.Data[i*row:(i+1)*row]...)
				a.Data = append(a.Data, second.Data[i*row:(i+1)*row]...)
			}
		}
		out = append(out, tensorfile.Named{Name: leaf, Array: a})
	}
	return out
}
