package driver

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/ir/verify"
	"ppc/passes"
)

// held is a model whose steps are checked: eight layers with attention on four
// stages in two repeats, in element type T.
const held = `
types { t = T }

axes { batch = 16, seq = 4, kv_seq = seq, embed = 16, heads = 2, head = 8, mlp = 16, vocab = 32 }

layer decoder(x: t[batch, seq, embed]) {
  param norm1, norm2: t[embed]              = ones
  param wq, wk, wv:   t[embed, heads, head] = normal(0.2)
  param wo:           t[heads, head, embed] = normal(0.2)
  param wi:           t[embed, mlp]         = normal(0.2)
  param wout:         t[mlp, embed]         = normal(0.2)

  h = rmsnorm(x, norm1, over: embed)
  q = dot(h, wq, over: embed)
  k = dot(h, wk, over: embed)
  v = dot(h, wv, over: embed)
  x = x + dot(attention(q, k, v, causal: true, scale: 0.35), wo, over: [heads, head])
  return x + dot(silu(dot(rmsnorm(x, norm2, over: embed), wi, over: embed)), wout, over: mlp)
}

model held(tokens: i32[batch, seq], targets: i32[batch, seq]) {
  param table: t[vocab, embed] = normal(0.5)
  x = pipeline(decoder, layers: 8)(take(table, tokens, axis: vocab))
  return mean(cross_entropy(dot(x, table, over: embed), targets, axis: vocab))
}

mesh { stage = 4, fsdp = 2 }

shard weights     { embed -> fsdp }
shard activations { batch -> fsdp }

pipeline { microbatches = 8, repeats = 2 }

train { optimizer = adamw(lr: 1e-2), steps = 1 }
`

var heldTypes = []string{"f64", "f32", "f16", "bf16"}

// checkEdited runs the program with --check. Before the passes that come after
// the named one, edit changes it; the reference stays as it is, ref if it was
// evaluated before.
func checkEdited(t *testing.T, src *Source, opts RunOptions, ref *reference, after string, edit func(m *ir.Module)) (*reference, error) {
	t.Helper()
	opts.Check = true
	r := &runner{src: src, opts: opts, ref: ref}
	if err := r.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		if after != "" {
			if err := passes.Run(r.p.m, passes.Config{After: after}); err != nil {
				t.Fatal(err)
			}
		}
		edit(r.p.m)
		if err := verify.Verify(r.p.m); err != nil {
			t.Fatal(err)
		}
	}
	_, err := r.compute(t.Context())
	return r.ref, err
}

// pipelineOf is the only pipeline of m, and a builder of ops before it.
func pipelineOf(m *ir.Module) (*ir.Op, func(func(b *ir.Builder))) {
	f := m.Main()
	for i, op := range f.Body.Ops {
		if op.Kind == ir.PPPipeline {
			return op, func(build func(b *ir.Builder)) {
				rest := f.Body.Ops[i:]
				f.Body.Ops = f.Body.Ops[:i:i]
				build(&ir.Builder{Func: f, Block: f.Body, Origin: op.Origin})
				f.Body.Ops = append(f.Body.Ops, rest...)
			}
		}
	}
	return nil, nil
}

// rows returns v with rows lo to hi, of n in all, replaced by what with makes
// of v.
func rows(b *ir.Builder, v *ir.Value, n, lo, hi int, with func(part func(lo, hi int) *ir.Value) *ir.Value) *ir.Value {
	size := v.Type.Shape[0] / n
	part := func(lo, hi int) *ir.Value { return b.SliceDim(v, 0, lo*size, hi*size) }
	parts := []*ir.Value{with(part)}
	if lo > 0 {
		parts = append([]*ir.Value{part(0, lo)}, parts...)
	}
	if hi < n {
		parts = append(parts, part(hi, n))
	}
	out := b.Concat(0, parts...)
	out.Sharding = v.Sharding
	return out
}

// weights replaces those of layers lo to hi by what with makes of all.
func weights(m *ir.Module, lo, hi int, with func(b *ir.Builder, part func(lo, hi int) *ir.Value) *ir.Value) {
	op, before := pipelineOf(m)
	before(func(b *ir.Builder) {
		for i := 1; i < len(op.Operands); i++ {
			op.Operands[i] = rows(b, op.Operands[i], 8, lo, hi, func(part func(lo, hi int) *ir.Value) *ir.Value { return with(b, part) })
		}
	})
}

func nothing(b *ir.Builder, v *ir.Value) *ir.Value { return b.Splat(v.Type, 0) }

// scaleGradients multiplies every gradient that main returns.
func scaleGradients(m *ir.Module, by float64) {
	f := m.Main()
	ret := f.Return()
	f.Body.Ops = f.Body.Ops[:len(f.Body.Ops)-1]
	b := &ir.Builder{Func: f, Block: f.Body, Origin: ret.Origin}
	for i, r := range f.Results {
		if r.Attrs.Str("pp.kind") == "gradient" {
			v := ret.Operands[i]
			ret.Operands[i] = b.Mul(v, b.Splat(v.Type, by))
		}
	}
	f.Body.Ops = append(f.Body.Ops, ret)
}

// faults are programs that are not what the layers in sequence are.
var faults = []struct {
	name    string
	after   string // the pass after which the program is edited
	edit    func(m *ir.Module)
	gathers bool // has to do with weights that are stored sharded
}{
	{name: "a microbatch twice, in place of another", edit: func(m *ir.Module) {
		op, before := pipelineOf(m)
		before(func(b *ir.Builder) {
			op.Operands[0] = rows(b, op.Operands[0], 8, 3, 4, func(part func(lo, hi int) *ir.Value) *ir.Value { return part(2, 3) })
		})
	}},
	{name: "a microbatch masked", edit: func(m *ir.Module) {
		op, before := pipelineOf(m)
		before(func(b *ir.Builder) {
			op.Operands[0] = rows(b, op.Operands[0], 8, 3, 4, func(part func(lo, hi int) *ir.Value) *ir.Value { return nothing(b, part(3, 4)) })
		})
	}},
	{name: "the last iteration left out", after: "stage-sharding", edit: func(m *ir.Module) {
		for _, op := range m.Main().Body.Ops {
			if op.Kind == ir.PPScan && op.Attrs.Str(ir.KeyLoop) == ir.LoopIterations {
				op.Attrs.Set("trip_count", ir.I64Attr(op.Int("trip_count")-1))
				return
			}
		}
		panic("there is no loop over iterations")
	}},
	{name: "a layer left out", edit: func(m *ir.Module) {
		weights(m, 5, 6, func(b *ir.Builder, part func(lo, hi int) *ir.Value) *ir.Value { return nothing(b, part(5, 6)) })
	}},
	{name: "a layer twice", edit: func(m *ir.Module) {
		weights(m, 5, 6, func(_ *ir.Builder, part func(lo, hi int) *ir.Value) *ir.Value { return part(4, 5) })
	}},
	{name: "a stage left out", edit: func(m *ir.Module) {
		for _, l := range []int{2, 6} {
			weights(m, l, l+1, func(b *ir.Builder, part func(lo, hi int) *ir.Value) *ir.Value { return nothing(b, part(l, l+1)) })
		}
	}},
	{name: "a repeat left out", edit: func(m *ir.Module) {
		weights(m, 4, 8, func(b *ir.Builder, part func(lo, hi int) *ir.Value) *ir.Value { return nothing(b, part(4, 8)) })
	}},
	{name: "a repeat twice", edit: func(m *ir.Module) {
		weights(m, 4, 8, func(_ *ir.Builder, part func(lo, hi int) *ir.Value) *ir.Value { return part(0, 4) })
	}},
	{name: "gradients divided by the number of microbatches", after: "differentiate", edit: func(m *ir.Module) { scaleGradients(m, 1.0/8) }},
	{name: "gradients times the number of microbatches", after: "differentiate", edit: func(m *ir.Module) { scaleGradients(m, 8) }},
	{name: "gradients without one microbatch of eight", after: "differentiate", edit: func(m *ir.Module) { scaleGradients(m, 7.0/8) }},
	{name: "a mask flipped", edit: func(m *ir.Module) {
		for _, op := range m.Func("decoder").Body.Ops {
			if op.Kind == ir.Compare && op.Word("comparison_direction") == "GE" {
				op.Attrs.Set("comparison_direction", ir.HLOEnum("comparison_direction", "LE"))
				return
			}
		}
		panic("there is no mask")
	}},
	{name: "weights of the wrong repeat", gathers: true, edit: func(m *ir.Module) {
		op, _ := pipelineOf(m)
		config := ir.Attrs(op.Attrs.Get("config").(ir.Dict))
		config.Set("compat", ir.Str("maxtext_prefetch"))
		config.Set("gather", ir.Str("per_repeat"))
		op.Attrs.Set("config", ir.Dict(config))
	}},
}

// Each fault is found in programs of each type, by a step of training, and by
// the gradients alone in the least precise.
func TestCheckFindsFaults(t *testing.T) {
	for _, dtype := range heldTypes {
		file := write(t, "held.pp", strings.Replace(held, "T", dtype, 1))
		for _, grad := range []bool{false, true} {
			if grad && dtype != "bf16" {
				continue
			}
			opts := RunOptions{Grad: grad}
			src := &Source{File: file, Set: []string{"mesh.fsdp=1"}} // fewer devices are faster
			ref, err := checkEdited(t, src, opts, nil, "", nil)
			if err != nil {
				t.Errorf("%s, grad %t: %v", dtype, grad, err)
			}
			for _, f := range faults {
				src := *src
				if f.gathers {
					src.Set = nil
				}
				_, err := checkEdited(t, &src, opts, ref, f.after, f.edit)
				var wrong *Mismatch
				if !errors.As(err, &wrong) {
					t.Errorf("%s, grad %t: %s: not found (%v)", dtype, grad, f.name, err)
					continue
				}
				t.Log(dtype, grad, f.name, farthest(wrong))
			}
		}
	}
}

// farthest is how far beyond its tolerance a result is.
func farthest(m *Mismatch) string {
	best, name := 0.0, ""
	for _, c := range m.Checks {
		if c.Tolerance > 0 && c.Rel/c.Tolerance > best {
			best, name = c.Rel/c.Tolerance, c.Name
		}
	}
	return fmt.Sprintf("%s: %.3g times its tolerance", name, best)
}

// What is right is not found wrong, whatever the type, the schedule, the mesh
// and the optimizer: each setting in one type, and half of them in the least precise.
func TestCheckFindsNoFault(t *testing.T) {
	for i, dtype := range heldTypes {
		file := write(t, "held.pp", strings.Replace(held, "T", dtype, 1))
		for k, set := range []string{
			"train.steps=3",
			"mesh.stage=1 mesh.fsdp=1 pipeline.microbatches=1 pipeline.repeats=8",
			"mesh.fsdp=1 pipeline.microbatches=16",
			"mesh.stage=2 pipeline.repeats=4 pipeline.gather=per_repeat pipeline.prefetch=ahead",
			"mesh.fsdp=1 pipeline.delay=2 pipeline.microbatches=8 train.steps=2",
			"pipeline.gather_dtype=bf16",
			"pipeline.gather_dtype=bf16 pipeline.gather=once",
			"pipeline.layers=4 pipeline.repeats=1 pipeline.remat=minimal",
			"train.optimizer=sgd(lr:0.1)",
			"train.optimizer=sgd(lr:0.1,momentum:0.9) train.steps=3",
			"train.optimizer=adam(lr:0.01) train.clip_by_global_norm=0.1",
			"train.gradient_accumulation=4",
			"train.gradient_accumulation=4 train.steps=2 mesh.fsdp=4 mesh.stage=2 pipeline.repeats=4 pipeline.microbatches=4",
			"train.steps=0",
		} {
			if k%3 != i && (dtype != "bf16" || k%2 == 1) {
				continue
			}
			if _, err := checkEdited(t, &Source{File: file, Set: strings.Fields(set)}, RunOptions{}, nil, "", nil); err != nil {
				t.Errorf("%s, %s: %v", dtype, set, err)
			}
		}
	}
}

// The fewer elements make up a value, the more is allowed of it.
func TestFewElements(t *testing.T) {
	y := &yardstick{scale: 1}
	for _, c := range []struct {
		want, before []float64
		times        float64
	}{
		{[]float64{1, 1, -1, 1}, nil, 5},
		{[]float64{1e200, 1e-200, 0, math.Inf(1)}, nil, 8},
		{[]float64{9, 9, 3, 3}, []float64{9, 9, 2, 4}, 6},
		{[]float64{9, 9, 9, 9}, []float64{9, 9, 9, 9}, 5},
		{[]float64{0, 0, 0, 0}, nil, 8},
	} {
		of := func(vs []float64) *ir.Literal {
			if vs == nil {
				return nil
			}
			return ir.Floats64(ir.Tensor(ir.F64, len(vs)), vs...)
		}
		if got := y.measures(of(c.want), nil, of(c.before), 1)[0].times(); math.Abs(got-c.times) > 1e-9 {
			t.Errorf("%v after %v: %v times what is measured, want %v", c.want, c.before, got, c.times)
		}
	}
}

// A float64 program is measured in float32 also where that has no such numbers.
func TestCheckOfLargeNumbers(t *testing.T) {
	file := write(t, "large.pp", `
axes { batch = 8, embed = 4 }

layer scale(x: f64[batch, embed]) {
  param w: f64[embed] = normal(1e30)
  return x * w + tanh(x)
}

model large(x: f64[batch, embed]) { return out: pipeline(scale, layers: 8)(x), small: mean(x * 1e-200) }

mesh { stage = 4, data = 2 }

shard activations { batch -> data }

pipeline { microbatches = 4, repeats = 2 }
`)
	if _, err := checkEdited(t, &Source{File: file}, RunOptions{}, nil, "", nil); err != nil {
		t.Error(err)
	}
	if _, err := checkEdited(t, &Source{File: file}, RunOptions{}, nil, "", func(m *ir.Module) {
		op, before := pipelineOf(m)
		before(func(b *ir.Builder) { op.Operands[0] = b.Mul(op.Operands[0], b.Splat(op.Operands[0].Type, 1.0001)) })
	}); err == nil {
		t.Error("another input is not noticed")
	}
}

// What rounding costs is measured again, by the evaluator and by kernels, where it was little by
// chance, and only there.
func TestCheckMeasuresAgain(t *testing.T) {
	file := write(t, "held.pp", strings.Replace(held, "T", "bf16", 1))
	for _, evaluator := range []int{0, 1} {
		r := &runner{src: &Source{File: file, Set: []string{"mesh.fsdp=1"}}, opts: RunOptions{Check: true}, evaluator: evaluator}
		if err := r.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.close)
		values, err := r.values(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.check(t.Context(), values); err != nil || r.ref.again != 0 {
			t.Fatalf("measured %d times again (%v), want none", r.ref.again, err)
		}
		for _, o := range r.ref.steps {
			for _, parts := range o.parts {
				for i := range parts {
					parts[i].own /= 16
				}
			}
		}
		r.ref.learn()
		first := r.ref.own.Values()
		if _, err := r.check(t.Context(), values); err != nil || r.ref.again == 0 {
			t.Errorf("evaluator %d: after a small measurement, measured %d times again: %v", evaluator, r.ref.again, err)
		}
		same := true
		for i, v := range r.ref.own.Values() {
			same = same && string(v.Literal.Data) == string(first[i].Literal.Data)
		}
		if same {
			t.Errorf("evaluator %d: it rounds as it did", evaluator)
		}
	}
}

// Where the sign of a gradient is not known Adam's update has either, and the gradients of the steps
// that follow are others.
func TestCheckOfUnknownSigns(t *testing.T) {
	file := write(t, "signs.pp", `
axes { batch = 8, seq = 2, embed = 4, mlp = 8, vocab = 8 }

layer block(x: f16[batch, seq, embed]) {
  param scale: f16[embed]    = ones
  param w: f16[embed, mlp]   = normal(0.1)
  param v: f16[mlp, embed]   = normal(0.1)
  return x + dot(tanh(dot(rmsnorm(x, scale, over: embed), w, over: embed)), v, over: mlp)
}

model signs(tokens: i32[batch, seq]) {
  param table: f16[vocab, embed] = normal(1)
  x = pipeline(block, layers: 4)(take(table, tokens, axis: vocab))
  return mean(x * x)
}

mesh { stage = 2 }

pipeline { microbatches = 4 }

train { optimizer = adam(lr: 1e-2), steps = 2 }
`)
	for _, seed := range []uint64{77, 141, 192, 203} {
		ref, err := checkEdited(t, &Source{File: file}, RunOptions{Seed: &seed}, nil, "", nil)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		t.Logf("seed %d: measured %d times again", seed, ref.again)
	}
}
