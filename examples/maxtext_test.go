package examples_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/driver"
	"ppc/internal/golden"
	"ppc/internal/optest"
	"ppc/internal/shared"
	"ppc/internal/tensorfile"
	"ppc/ir"
	"ppc/ir/lang"
)

// A recording is one file of what MaxText computed.
type recording struct {
	t     *testing.T
	file  *tensorfile.File
	names []string                     // of the weights, without w/
	have  map[string]*tensorfile.Array // what has been read
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
	f, err := tensorfile.Open(shared.Oracle(t, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r := &recording{t: t, file: f, have: make(map[string]*tensorfile.Array)}
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
	a := r.have[name]
	if a == nil {
		var err error
		if a, err = r.file.Read(name); err != nil {
			r.t.Fatal(err)
		}
		r.have[name] = a
	}
	return a
}

// A setup is a program of the folder maxtext, its settings and its arguments.
type setup struct {
	program string
	include []string // folders of what it includes
	set     []string
	args    []tensorfile.Named
	named   map[string]string // what paths has found
}

// run executes the program at the given element type and returns all results
// by name, gradients among them if they are asked for.
func (s *setup) run(t *testing.T, dtype string, opts driver.RunOptions, set ...string) map[string]*tensorfile.Array {
	t.Helper()
	return s.runProgram(t, dtype, s.compile(t, dtype, opts, set...))
}

// compile compiles the program at the given element type.
func (s *setup) compile(t *testing.T, dtype string, opts driver.RunOptions, set ...string) *driver.Program {
	t.Helper()
	src := &driver.Source{File: s.program, IncludeDirs: s.include, Set: slices.Concat([]string{"types.act=" + dtype, "types.weight=" + dtype}, s.set, set)}
	p, err := driver.Compile(t.Context(), src, opts)
	if err != nil {
		t.Fatalf("%s %v: %v", src.File, src.Set, err)
	}
	return p
}

// runProgram executes what compile has made on the arguments that s has now.
func (s *setup) runProgram(t *testing.T, dtype string, p *driver.Program) map[string]*tensorfile.Array {
	t.Helper()
	dir := t.TempDir()
	args := slices.Clone(s.args)
	for i := range args {
		if args[i].Array.DType == "f64" && dtype == "f32" {
			args[i].Array = convert(args[i].Array, "f32")
		}
	}
	in, out := filepath.Join(dir, "in.safetensors"), filepath.Join(dir, "out.safetensors") // not compressed
	if write(t, in, args); len(args) == 0 {
		in = ""
	}
	if _, err := p.Run(t.Context(), in, out); err != nil {
		t.Fatalf("%s %v: %v", s.program, s.set, err)
	}
	return golden.Arrays(t, out)
}

// near fails unless got differs from want by at most tol of its largest magnitude.
func near(t *testing.T, what string, got, want *tensorfile.Array, tol float64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s: there is none", what)
		return
	}
	if _, rel := optest.MaxDiff(literal(convert(*got, "f64")), literal(*want)); !(rel <= tol) {
		t.Errorf("%s differs by %g", what, rel)
	}
}

// paths are the parameters of the program by the names that files have for them, whatever
// its settings.
func (s *setup) paths(t *testing.T) map[string]string {
	t.Helper()
	if s.named != nil {
		return s.named
	}
	p, err := lang.Load(s.program, lang.Options{Set: s.set, IncludeDirs: s.include})
	if err != nil {
		t.Fatal(err)
	}
	s.named = make(map[string]string)
	for _, v := range p.Module.Main().Params() {
		if file := v.Attrs.Str("pp.file"); file != "" {
			s.named[file] = v.Attrs.Str("pp.name")
		}
	}
	return s.named
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
	switch layer {
	case "gemma3_local":
		layer = "gemma3"
	case "mixtral_dense", "mixtral_aux":
		layer = "mixtral"
	case "mixtral_sparse":
		layer = "mixtral_sorted"
	}
	return filepath.Join("maxtext", layer+".pp")
}

// inputs are the recorded inputs that the layer takes.
func (r *recording) inputs(layer string) []tensorfile.Named {
	in := []tensorfile.Named{{Name: "x", Array: *r.read("x")}, {Name: "dout", Array: *r.read("dout")}}
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

// The layers, in a pipeline of four stages: the recorded layer stands at
// each stage in turn, layers that change nothing at the others.
func TestMaxTextLayers(t *testing.T) {
	for _, layer := range []string{"simple", "simple_mlp", "llama2", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_local", "gemma3_global", "olmo3", "gpt3",
		"mixtral_dense", "mixtral_sparse", "mixtral_drop", "mixtral_aux", "qwen3_moe", "llama2_fused", "gpt_oss",
		"deepseek_dense", "deepseek_yarn", "deepseek_moe", "deepseek_moe_drop", "deepseek_v3_moe"} {
		t.Run(layer, func(t *testing.T) {
			r := record(t, "layer_"+layer)
			s := &setup{program: program(layer), set: []string{fmt.Sprintf("axes.batch=%d", r.read("x").Shape[0]), "mesh.fsdp=1", "mesh.expert=1"}}
			if layer == "gpt3" {
				s.set = append(s.set, "axes.kv_heads=4")
			}
			paths := s.paths(t)
			exact, rounded := s.compile(t, "f64", driver.RunOptions{Grad: true}), s.compile(t, "f32", driver.RunOptions{})
			for at := range 4 {
				s.args = r.inputs(layer)
				for _, name := range r.names {
					w := *r.read("w/" + name)
					s.args = append(s.args, tensorfile.Named{Name: name, Array: stack(w, neutral(name, w), at)})
				}
				got := s.runProgram(t, "f64", exact)
				where := fmt.Sprintf("at stage %d: ", at)
				near(t, where+"out", got["out"], r.read("out"), 1e-12)
				near(t, where+"the loss", got["loss"], r.read("loss"), 1e-12)
				near(t, where+"the gradient of x", got["grad.x"], r.read("gx"), 1e-10)
				for _, name := range r.names {
					near(t, where+"the gradient of "+name, row(got["grad."+paths[name]], at), r.read("gw/"+name), 1e-10)
				}
				if layer == "mixtral_aux" { // the others' experts, of which all score 0, have a loss of k = 2
					loss := literal(*r.read("aux/moe_lb_loss/0")).Float(0) / 0.01
					near(t, where+"the load-balance loss", got["balance"], &tensorfile.Array{DType: "f64", Data: doubles([]float64{loss + 3*2}).Data}, 1e-12)
				}
				near(t, where+"out in f32", s.runProgram(t, "f32", rounded)["out"], r.read("out"), 5e-6)
			}
		})
	}
}

// experts are the layers with experts that are recorded without a capacity, each
// with the name of its layer, what it is stacked with, and how many experts it has
// for each that a token uses.
var experts = []struct {
	recording, layer, args string
	spare                  int
}{
	{"mixtral_dense", "mixtral", "", 2}, {"qwen3_moe", "qwen3_moe", "", 2}, {"gpt_oss", "gpt_oss", ", window: 3", 2},
	{"deepseek_moe", "deepseek_moe", "", 2}, {"deepseek_v3_moe", "deepseek_v3_moe", "", 4},
}

// withExperts is a pipeline of one of them with further arguments, with experts
// along the mesh as the layer's file has them.
func withExperts(t *testing.T, i int, args string) *setup {
	t.Helper()
	layer := experts[i].layer
	text := fmt.Sprintf(`include "%s_layer.pp"

model m(x: act[batch, seq, embed], dout: act[batch, seq, embed], positions: i32[batch, seq], segment_ids: i32[batch, seq]) {
  out, balance = pipeline(%[1]s, layers: layers%s, %s)(x, positions, segment_ids)
  return loss: sum(out * dout), out, balance: balance
}
`, layer, experts[i].args, args)
	s := &setup{program: filepath.Join(t.TempDir(), "m.pp"), include: []string{"maxtext"}}
	if err := os.WriteFile(s.program, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return s
}

// With as many places as tokens nobody is dropped, so layers with a capacity
// give what is recorded without one; so do those that sort tokens by expert, in one
// group of experts and in several, on one device and on two.
func TestMaxTextPlaces(t *testing.T) {
	for i, e := range experts {
		r := record(t, "layer_"+e.recording)
		batch := fmt.Sprintf("axes.batch=%d", r.read("x").Shape[0])
		for _, form := range []struct {
			args string
			set  []string
		}{
			{fmt.Sprintf("capacity: %d", e.spare), []string{"mesh.expert=1", "pipeline.microbatches=4"}},
			{"groups: 1", []string{"axes.expert_group=1", "mesh.expert=1", "pipeline.microbatches=4"}},
			{"groups: 2", []string{"mesh.expert=2", "pipeline.microbatches=2"}},
			{"groups: 4, room: 4", []string{"axes.expert_group=4", "mesh.expert=2", "pipeline.microbatches=2"}},
			{"groups: 1, room: 1", []string{"axes.expert_group=1", "mesh.expert=1", "pipeline.microbatches=2", "pipeline.batch_split=2"}},
			{"groups: 2, room: 2", []string{"mesh.expert=2", "pipeline.microbatches=1", "pipeline.batch_split=2"}},
		} {
			t.Run(e.layer+" "+form.args, func(t *testing.T) {
				s := withExperts(t, i, form.args)
				s.set = append(form.set, batch)
				recordedExperts(t, e.layer, r, s)
			})
		}
	}
}

// recordedExperts holds a program of a layer against what is recorded of it.
func recordedExperts(t *testing.T, layer string, r *recording, s *setup) {
	t.Helper()
	s.args = r.inputs(layer)
	const at = 2
	for _, name := range r.names {
		w := *r.read("w/" + name)
		s.args = append(s.args, tensorfile.Named{Name: name, Array: stack(w, neutral(name, w), at)})
	}
	got, paths := s.run(t, "f64", driver.RunOptions{Grad: true}), s.paths(t)
	near(t, "out", got["out"], r.read("out"), 1e-12)
	near(t, "the gradient of x", got["grad.x"], r.read("gx"), 1e-10)
	for _, name := range r.names {
		near(t, "the gradient of "+name, row(got["grad."+paths[name]], at), r.read("gw/"+name), 1e-10)
	}
}

// Where experts drop tokens, and are along the mesh, a pipeline computes what its
// layers do in sequence: outputs, gradients and the load-balance loss.
func TestMaxTextDrops(t *testing.T) {
	for i, e := range experts {
		s := withExperts(t, i, "capacity: 1")
		src := &driver.Source{File: s.program, IncludeDirs: s.include, Set: []string{"types.act=f64", "types.weight=f64"}}
		if _, err := driver.Run(t.Context(), src, driver.RunOptions{Check: true, Grad: true}); err != nil {
			t.Errorf("%s: %v", e.layer, err)
		}
	}
}

// Where a row has more choices for a group of experts than there is room for, they are
// counted and the loss is no number, which ends a training; with room enough it is what
// it is with room for all.
func TestMaxTextOverflow(t *testing.T) {
	const text = `include "mixtral_layer.pp"

layer counted(x: act[batch, seq, embed], room: number) {
  param gate:       weight[embed, routes]       = normal(0.1)
  param wi_0, wi_1: weight[experts, embed, mlp] = normal(0.1)
  param wo:         weight[experts, mlp, embed] = normal(0.1)
  weights, picked, balance = routed(dot(x, gate, over: embed), k: 2)
  y = mixture(x, picked, weights, wi_0, wi_1, wo, k: 2, groups: 2, room: room)
  return x + y, mean(cast(overflow(picked, k: 2, groups: 2, room: room), x))
}

model m(x: act[batch, seq, embed]) {
  out, over = pipeline(counted, layers: layers, room: %v)(x)
  return loss: mean(out * out), overflow: over
}

train { optimizer = sgd(lr: 0.01) }
`
	loss := func(room float64) (*tensorfile.Array, float64) {
		s := &setup{program: filepath.Join(t.TempDir(), "m.pp"), include: []string{"maxtext"}}
		if err := os.WriteFile(s.program, fmt.Appendf(nil, text, room), 0o666); err != nil {
			t.Fatal(err)
		}
		s.set = []string{"train.steps=0"}
		got := s.run(t, "f64", driver.RunOptions{})
		over := literal(*got["overflow"]).Float(0)
		s.set = []string{"train.steps=1"}
		src := &driver.Source{File: s.program, IncludeDirs: s.include, Set: s.set}
		_, err := driver.Run(t.Context(), src, driver.RunOptions{})
		var nan *driver.NaNError
		if (over > 0) != errors.As(err, &nan) {
			t.Errorf("with room for %v times as many, %v find none, and the training ends with %v", room, over, err)
		}
		return got["loss"], over
	}
	all, none := loss(0)
	near(t, "the loss with room enough", first(loss(1.75)), all, 1e-14)
	if _, over := loss(1); none != 0 || over == 0 {
		t.Errorf("%v find no room where there is for all, and %v where there is for as many as are sent evenly", none, over)
	}
}

func first[A, B any](a A, _ B) A { return a }

// row is a[at].
func row(a *tensorfile.Array, at int) *tensorfile.Array {
	if a == nil {
		return nil
	}
	size := len(a.Data) / a.Shape[0]
	return &tensorfile.Array{DType: a.DType, Shape: a.Shape[1:], Data: a.Data[at*size : (at+1)*size]}
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
// microbatches and delay, gathered in each way, and in each with one rotation or, where
// layers are small, both. Where MaxText's own pipeline is wrong, the recorded layers in
// sequence are what counts.
func TestMaxTextPipelines(t *testing.T) {
	for name, layer := range map[string]string{
		"pipe_simple_s4_r1_m4": "simple", "pipe_simple_s4_r2_m4": "simple", "pipe_simple_s4_r2_m8": "simple", "pipe_simple_s3_r3_m6": "simple",
		"pipe_simple_s4_r2_m8_delay": "simple", "pipe_wrong_simple_s4_r2_m8_per_repeat": "simple", "pipe_mlp_s2_r4_m8": "simple_mlp",
		"pipe_llama2_s4_r2_m8": "llama2", "pipe_llama2_s4_r1_l2_m4": "llama2", "pipe_llama2_s2_r4_m8_per_repeat": "llama2", "pipe_deepseek_s2_r2_m4": "deepseek_moe_drop",
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t, name)
			m := r.meta
			s := &setup{program: program(layer), set: []string{
				fmt.Sprintf("axes.batch=%d", r.read("x").Shape[0]), fmt.Sprintf("axes.embed=%d", m.Resolved.Emb_dim), fmt.Sprintf("axes.mlp=%d", m.Resolved.Mlp_dim),
				fmt.Sprintf("mesh.stage=%d", m.S), fmt.Sprintf("mesh.fsdp=%d", m.Mesh["fsdp"]),
				fmt.Sprintf("pipeline.microbatches=%d", m.M), fmt.Sprintf("pipeline.repeats=%d", m.R), fmt.Sprintf("pipeline.layers_per_stage=%d", m.L), fmt.Sprintf("pipeline.delay=%d", m.D),
				fmt.Sprintf("axes.layers=%d", m.S*m.R*m.L),
			}}
			if strings.HasPrefix(layer, "deepseek") {
				s.set = append(s.set, "mesh.expert=1", "axes.heads=2", "axes.q_lora=6", "axes.kv_lora=6", "axes.qk_nope=4", "axes.v_head=4")
			}
			s.args = append(r.inputs(layer), r.stacked("w/")...)
			gathers := []string{"per_iteration", "once"}
			if m.R > 1 {
				gathers = append(gathers, "per_repeat", "per_repeat ahead")
			}
			for _, gather := range gathers {
				policy, ahead, _ := strings.Cut(gather, " ")
				set := []string{"pipeline.gather=" + policy}
				if ahead != "" {
					set = append(set, "pipeline.prefetch="+ahead)
				}
				for _, rotate := range []string{"ppermute", "slice_pad"} {
					if large := !strings.HasPrefix(layer, "simple"); large && (rotate == "slice_pad") != (policy == "per_repeat") {
						continue
					}
					s.agrees(t, r, "", gather+", "+rotate+": ", append(set, "pipeline.rotate="+rotate)...)
				}
			}
			near(t, "out in f32", s.run(t, "f32", driver.RunOptions{})["out"], r.read("out"), 5e-6)
		})
	}
}

// agrees holds outputs and gradients against what is recorded under a prefix.
func (s *setup) agrees(t *testing.T, r *recording, prefix, where string, set ...string) {
	t.Helper()
	got := s.run(t, "f64", driver.RunOptions{Grad: true}, set...)
	near(t, where+"out", got["out"], r.read(prefix+"out"), 1e-12)
	near(t, where+"the gradient of x", got["grad.x"], r.read(prefix+"gx"), 1e-10)
	paths := s.paths(t)
	for _, g := range r.stacked(prefix + "gw/") {
		near(t, where+"the gradient of "+g.Name, got["grad."+paths[g.Name]], &g.Array, 1e-10)
	}
}

// With MaxText's index, outputs and gradients are MaxText's wrong ones, and a
// check finds the stages and repeats that have other weights.
func TestMaxTextPrefetch(t *testing.T) {
	r := record(t, "pipe_wrong_simple_s4_r2_m8_per_repeat")
	s := &setup{program: program("simple"), set: []string{"axes.layers=8", "pipeline.repeats=2", "pipeline.microbatches=8", "pipeline.gather=per_repeat", "pipeline.compat=maxtext_prefetch"}}
	s.args = append(r.inputs("simple"), r.stacked("w/")...)
	s.agrees(t, r, "wrong/", "")
	_, err := driver.Run(t.Context(), &driver.Source{File: s.program, Set: s.set}, driver.RunOptions{Check: true})
	var m *driver.Mismatch
	if !errors.As(err, &m) || len(m.Layers) != 1 {
		t.Fatalf("the check says %v", err)
	}
	for _, want := range []string{"in 16 of 64", "stage 2 in repeat 1 has the weights of stage 2 in repeat 0", "stage 3 in repeat 1 has the weights of stage 3 in repeat 0"} {
		if !strings.Contains(m.Layers[0], want) {
			t.Errorf("the check says %q, not %q", m.Layers[0], want)
		}
	}
}

// stacked are the recorded weights, or what else is under the prefix for each
// of them, stacked over layers in model order. They are recorded as [R, S, …],
// or [S, …] for each position in a stage.
func (r *recording) stacked(prefix string) []tensorfile.Named {
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
		w := *r.read(prefix + name)
		inner := w.Shape[1:]
		if m.R > 1 {
			inner = w.Shape[2:]
		}
		a := tensorfile.Array{DType: w.DType, Shape: append([]int{layers}, inner...), Data: w.Data}
		if leaf != name { // positions 0 and 1 of each stage in turn
			second := r.read(prefix + "layers_1/" + leaf)
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

// The recorded training runs, pipelined as they were: loss and norms in each
// step, weights after two steps and after all six, the gradient of the first.
func TestMaxTextTraining(t *testing.T) {
	for _, c := range []struct {
		recording, program string
	}{{"train_llama2_adamw_pipe", "train_llama2_adamw"}, {"train_llama2_sgd_subset", "train_llama2_sgd"}, {"train_mixtral_lb", "train_mixtral"}} {
		t.Run(c.recording, func(t *testing.T) {
			r := record(t, c.recording)
			s := &setup{program: filepath.Join("maxtext", c.program+".pp")}
			for _, name := range []string{"inputs", "targets", "inputs_position", "inputs_segmentation", "targets_segmentation"} {
				s.args = append(s.args, tensorfile.Named{Name: name, Array: *r.read(name)})
			}
			paths := s.paths(t)
			weight := func(file string) string { return strings.TrimPrefix(file, "layers/") }
			for _, name := range r.file.Names() {
				if file, ok := strings.CutPrefix(name, "w0/"); ok {
					s.args = append(s.args, tensorfile.Named{Name: weight(file), Array: *r.read(name)})
				}
			}
			losses, norms, params := literal(*r.read("loss")), literal(*r.read("raw_grad_norm")), literal(*r.read("param_norm"))
			step := func(step *driver.Step) {
				for _, o := range step.Outputs {
					want, ok := map[string]float64{"loss": losses.Float(step.Number - 1), "grad_norm": norms.Float(step.Number - 1), "param_norm": params.Float(step.Number - 1)}[o.Name]
					if ok && !(math.Abs(o.Mean-want) <= 1e-10*want) {
						t.Errorf("step %d: %s is %v, want %v", step.Number, o.Name, o.Mean, want)
					}
				}
			}
			two := 2
			for prefix, got := range map[string]map[string]*tensorfile.Array{
				"g0/":    s.run(t, "f64", driver.RunOptions{Grad: true}),
				"w_2/":   s.run(t, "f64", driver.RunOptions{Steps: &two}),
				"w_end/": s.run(t, "f64", driver.RunOptions{Step: step}),
			} {
				name := "param."
				if prefix == "g0/" {
					name = "grad."
					near(t, "logits", got["logits"], r.read("logits0"), 1e-12)
				}
				for _, key := range r.file.Names() {
					if file, ok := strings.CutPrefix(key, prefix); ok {
						near(t, key, got[name+paths[weight(file)]], r.read(key), 1e-10)
					}
				}
			}
		})
	}
}
