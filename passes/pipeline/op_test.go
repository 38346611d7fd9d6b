package pipeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ppc/internal/optest"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/verify"
)

// notMapped says of every op that is not elementwise and has no rule for the
// stage dimension why it has none.
var notMapped = map[ir.Kind]string{
	ir.Constant: "has no operand that could be mapped", ir.Iota: "likewise", ir.PartitionID: "likewise", ir.ReplicaID: "likewise", ir.SdyConstant: "likewise",
	ir.RngBitGenerator: "instances with states of their own are different calls",
	ir.Call:            "is inlined before", ir.CompositeCall: "likewise", ir.NamedComputation: "likewise",
	ir.Return: "ends a region, whose op has the rule", ir.FuncReturn: "likewise", ir.SdyReturn: "likewise", ir.PPYield: "likewise",
	ir.CustomCall: "its target alone knows",
	ir.TupleOp:    "a layer has no tuples", ir.GetTupleElement: "likewise",
	ir.AllGather: "is of a program per device, which has no layers any more", ir.AllReduce: "likewise", ir.AllToAll: "likewise", ir.CollectiveBroadcast: "likewise",
	ir.CollectivePermute: "likewise", ir.ReduceScatter: "likewise", ir.ManualComputation: "likewise",
	ir.ShardingGroup: "has no result",
	ir.PPPipeline:    "pipelines do not nest", ir.PPStack: "is a loop before", ir.PPRotate: "is made by the pass that maps",
}

// Every op is elementwise, has a rule for the stage dimension, or a reason to
// have none; a function of it, mapped over instances, computes for each what it
// computes of the instance's arguments, whichever parameters are mapped.
func TestOp(t *testing.T) {
	rules := vmapRules()
	optest.Each(t, func(t *testing.T, k ir.Kind) {
		has, reason, cases := rules[k] != nil || k.Has(ir.Elementwise), notMapped[k], optest.Of(k)
		switch {
		case rules[k] != nil && k.Has(ir.Elementwise):
			t.Errorf("%s has a rule in vmapRules, passes/pipeline/vmap.go, and is elementwise", k)
		case has && reason != "":
			t.Errorf("%s can be mapped, and has in notMapped, passes/pipeline/op_test.go, a reason why not", k)
		case !has && reason == "":
			t.Fatalf("%s has no rule in vmapRules, passes/pipeline/vmap.go, and in notMapped, passes/pipeline/op_test.go, no reason to have none", k)
		case rules[k] != nil && len(cases) == 0:
			t.Errorf("the rule of %s is not tested: it has no case in internal/optest", k)
		}
		if !has {
			return
		}
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) { testMapped(t, c) })
		}
	})
}

// testMapped maps the programs of c, and runs them.
func testMapped(t *testing.T, c optest.Case) {
	const n = 3
	mapped := 0
	for seed := range uint64(8) {
		p := optest.New(seed)
		p.B.Return(c.Build(p)...)
		f := p.B.Func
		if err := verify.Verify(p.M); err != nil {
			t.Fatal(err)
		}
		batched := make([]bool, len(f.Params()))
		for i, v := range f.Params() {
			batched[i] = v.Type.Rank() > 0 && rand.New(rand.NewPCG(seed, uint64(i))).IntN(3) > 0
		}
		g, err := Vmap(f, "mapped", batched, n, nil)
		if err != nil && strings.HasSuffix(err.Error(), "with an initial value that differs between stages") {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := vmapped(p, g, batched, n); err != nil {
			t.Fatalf("seed %d, mapped %v: %v", seed, batched, err)
		}
		mapped++
	}
	if mapped == 0 {
		t.Error("no program could be mapped")
	}
}

// vmapped runs g, which is p's function mapped over n instances, and that
// function on the arguments of each.
func vmapped(p *optest.Program, g *ir.Func, batched []bool, n int) error {
	one := p.M.Main()
	m := &ir.Module{Meshes: p.M.Meshes, Funcs: []*ir.Func{g}}
	if err := verify.Verify(m); err != nil {
		return err
	}
	args, each := make([]*ir.Literal, len(batched)), make([][]*ir.Literal, n)
	for i, v := range one.Params() {
		args[i] = p.Args[i]
		var all []float64
		for k := range n {
			l := p.Args[i]
			if batched[i] {
				l = p.Numbers(-2, 2, v.Type)
			}
			all = append(all, optest.Floats(l)...)
			each[k] = append(each[k], l)
		}
		if batched[i] {
			args[i] = ir.Floats64(g.Params()[i].Type, all...)
		}
	}
	got, err := eval.Run(m, g, args, eval.Options{Float64: true})
	if err != nil {
		return err
	}
	for k := range n {
		want, err := eval.Run(p.M, one, each[k], eval.Options{Float64: true})
		if err != nil {
			return err
		}
		for i, w := range want {
			have, size := optest.Floats(got[i]), w.Type.NumElements()
			if !slices.EqualFunc(have[k*size:(k+1)*size], optest.Floats(w), nearlyEqual) {
				return fmt.Errorf("instance %d, result %d: got %v, want %v", k, i, have[k*size:(k+1)*size], optest.Floats(w))
			}
		}
	}
	return nil
}

// nearlyEqual allows for sums in another order.
func nearlyEqual(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b), 1)
}
