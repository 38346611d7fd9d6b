package passes

import (
	"strings"
	"testing"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/ir/mlir"
	"ppc/passes/bubbles"
	"ppc/runtime"
)

// Where bubbles are skipped, the layers' matrix products are in branches, forward
// and backward.
func TestSkipBubbles(t *testing.T) {
	for i, c := range rematModels {
		if c.S == 1 {
			continue
		}
		c.rest = 0
		for k, boundary := range rematBoundaries {
			if boundary == [2]string{"repeat", "inside"} && c.R == 1 {
				continue
			}
			policy := keysOf(rematPolicies)[(i+k)%len(rematPolicies)]
			c.gather = []string{"per_iteration", "once"}[k%2]
			c.rotate = []string{"ppermute", "slice_pad"}[k%2]
			c.remat = append(rematAt(boundary, policy), facts.Named("skip_bubbles", ir.Bool(true)))
			m := withLoss(c.module())
			if err := Run(m, Config{}); err != nil {
				t.Fatalf("%s: %v", c, err)
			}
			in, out := products(m.Main().Body, false)
			rerun := boundary[1] == "outside" || boundary[0] == "repeat" // a loop that runs again for its residuals selects nothing
			if in == 0 || out > 0 && !rerun {
				t.Errorf("%s %s %v: %d products in branches, %d outside", c, policy, boundary, in, out)
			}
		}
	}
}

// Where the iterations are unrolled, forward and reverse of one have the same
// truth value, and the one depends on the other: both are branches.
func TestSkipBubblesUnrolled(t *testing.T) {
	c := make(lawCase, len(lawFactors))
	c[factorAt("stages")], c[factorAt("repeats")], c[factorAt("skip_bubbles")], c[factorAt("scan_iterations")] = 1, 1, 1, 1
	m, err := c.lowered()
	if err != nil {
		t.Fatal(err)
	}
	// Two products forward, two rematerialised, and four backward.
	if in, out := products(m.Main().Body, false); in != 8*c.iterations() || out != 0 {
		t.Errorf("%d products in branches, %d outside, want all of %d iterations", in, out, c.iterations())
	}
}

// A stage that is skipped executes nothing: it gathers its weights once for each
// microbatch and repeat, not in every iteration.
func TestSkippedWork(t *testing.T) {
	gathers := make(map[bool]int)
	for _, skip := range []bool{false, true} {
		c := model{S: 4, M: 8, R: 2, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 2, tensor: 1, gather: "per_iteration", rotate: "ppermute", remat: []ir.NamedAttr{facts.Named("skip_bubbles", ir.Bool(skip))}}
		typed := c.module()
		m := typed.Clone()
		if err := Run(m, Config{}); err != nil {
			t.Fatal(err)
		}
		trace := new(runtime.Trace)
		execute(t, m, typed, c.args(typed), runtime.WithTrace(trace))
		gathers[skip] = trace.Count(ir.AllGather)
	}
	const weights, devices, bubbles = 2, 8, 3
	if less := gathers[false] - gathers[true]; less != weights*devices*bubbles {
		t.Errorf("%d all-gathers less, of %d, want %d less", less, gathers[false], weights*devices*bubbles)
	}
}

// Where all stages are on one device, there is always work.
func TestSkipBubblesOnOneDevice(t *testing.T) {
	c := model{S: 4, M: 4, R: 1, L: 1, D: 1, b: 2, e: 4, h: 4, data: 1, fsdp: 1, tensor: 1, gather: "per_iteration", rotate: "ppermute", remat: []ir.NamedAttr{facts.Named("skip_bubbles", ir.Bool(true))}}
	m := c.module()
	m.Meshes[0].Axes[0].Size = 1
	err := Run(m, Config{})
	if want := "pipeline: skip_bubbles = true with all 4 stages on one device, which has work in every iteration; leave it out"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// products counts the matrix products in branches and outside of them.
func products(b *ir.Block, branch bool) (in, out int) {
	for _, op := range b.Ops {
		if op.Kind == ir.DotGeneral {
			if branch {
				in++
			} else {
				out++
			}
		}
		for _, r := range op.Regions {
			i, o := products(r, branch || op.Kind == ir.If)
			in, out = in+i, out+o
		}
	}
	return in, out
}

// A layer in which the stages exchange something cannot be left out by some of
// them; one in which only the devices of a stage do can.
func TestSkipBubblesAcrossStages(t *testing.T) {
	const src = `module attributes {pp.skip_bubbles} {
  sdy.mesh @mesh = <["stage"=2, "fsdp"=2]>
  func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %id = stablehlo.partition_id : tensor<ui32>
    %two = stablehlo.constant dense<2> : tensor<ui32>
    %stage = stablehlo.divide %id, %two : tensor<ui32>
    %valid = stablehlo.compare GE, %stage, %two, UNSIGNED : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %p = stablehlo.broadcast_in_dim %valid, dims = [] : (tensor<i1>) -> tensor<4x4xi1>
    %y = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %sum = "stablehlo.all_reduce"(%y) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %z = stablehlo.dot_general %sum, %x, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %out = stablehlo.select %p, %z, %x : tensor<4x4xi1>, tensor<4x4xf32>
    return %out : tensor<4x4xf32>
  }
}`
	for axis, want := range map[string]string{
		"fsdp":  "",
		"stage": "pipeline: skip_bubbles = true: layer block has a stablehlo.all_reduce over the mesh axis stage, in which all stages take part, those in a bubble, too; leave skip_bubbles out",
	} {
		m, err := mlir.Parse("in.mlir", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range m.Main().Body.Ops {
			op.Origin = ir.Origin{}.Saying(ir.Said{Layer: "block"})
			if op.Kind == ir.AllReduce {
				op.Attrs.Set("replica_groups", ir.MeshAxes{Mesh: "mesh", Axes: ir.Axs(axis)})
			}
		}
		got := ""
		if err := bubbles.SkipBubbles(nil, m); err != nil {
			got = err.Error()
		}
		if !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("over %s: got %q, want %q", axis, got, want)
		}
		if in, out := products(m.Main().Body, false); axis == "fsdp" && (in != 2 || out != 0) {
			t.Errorf("over %s: %d products in branches, %d outside", axis, in, out)
		}
	}
}
