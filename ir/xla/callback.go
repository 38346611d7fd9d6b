package xla

import (
	"slices"

	"ppc/ir"
)

// hostCalls are the targets of custom calls that call a function of the host.
var hostCalls = []string{
	"xla_python_cpu_callback", "xla_python_gpu_callback",
	"xla_ffi_python_cpu_callback", "xla_ffi_python_gpu_callback",
	"xla_ffi_partitioned_python_cpu_callback", "xla_ffi_partitioned_python_gpu_callback",
	"InspectSharding",
}

// isHostCall reports whether op passes values to or from the host, and the name of
// the call.
func isHostCall(op *ir.Op) (string, bool) {
	target := op.Str("call_target_name")
	if op.Kind == ir.CustomCall {
		return "custom_call @" + target, slices.Contains(hostCalls, target)
	}
	name := op.Name()
	return name, (name == "stablehlo.send" || name == "stablehlo.recv") && op.Bool("is_host_transfer")
}

// callbacks removes the callbacks to the host whose results are unused, such as
// prints. A token that one returns is replaced by the one that it takes.
func (im *importer) callbacks() {
	main := im.m.Main()
	for _, f := range im.m.Funcs {
		if f.Body == nil {
			continue
		}
		c := &callbacks{importer: im, uses: f.Uses(), sub: f.NewSubst()}
		c.block(f.Body)
		if f == main {
			dropTokens(f)
		}
	}
}

type callbacks struct {
	*importer
	uses []int
	sub  ir.Subst
}

func (c *callbacks) block(b *ir.Block) {
	b.Ops = slices.DeleteFunc(b.Ops, func(op *ir.Op) bool {
		c.sub.Apply(op.Operands)
		for _, r := range op.Regions {
			c.block(r)
		}
		name, ok := isHostCall(op)
		return ok && c.leftOut(op, name)
	})
}

// leftOut reports whether op can be left out, and says so.
func (c *callbacks) leftOut(op *ir.Op, name string) bool {
	token := slices.IndexFunc(op.Operands, func(v *ir.Value) bool { return v.Type.Kind == ir.TokenType })
	for i, v := range op.Results {
		if c.uses[v.ID] == 0 {
			continue
		}
		switch {
		case v.Type.Kind == ir.TokenType && token >= 0:
			c.sub[v.ID] = op.Operands[token]
		case op.Str("call_target_name") == "InspectSharding" && i < len(op.Operands):
			c.sub[v.ID] = op.Operands[i]
		default:
			c.errorf(op.Origin, "%s gets %s from the host, which is not there when the program runs; compute it in the program, or take it as a parameter", name, v.Type)
			return false
		}
	}
	if c.Strict {
		c.errorf(op.Origin, "%s calls the host, which is not there when the program runs; without --strict it is left out", name)
		return false
	}
	c.warn(op.Origin, hostCallback, "%s calls the host, which is not there when the program runs: it is left out", name)
	return true
}

// aliasAttr of a parameter is the number of the result that may take its memory.
const aliasAttr = "tf.aliasing_output"

// dropTokens removes the parameters and results of f that JAX has for the order
// of effects, where no effect needs them any more.
func dropTokens(f *ir.Func) {
	ret := f.Return()
	if ret == nil || ret.Kind != ir.FuncReturn {
		return
	}
	effect := func(t *ir.Type, as ir.Attrs) bool { return t.Kind == ir.TokenType && as.Bool("jax.token") }
	var results []ir.Result
	var out []*ir.Value
	place := make(map[int]int) // of a result that stays, before and after
	for i, r := range f.Results {
		if v := ret.Operands[i]; !effect(r.Type, r.Attrs) || v.Block != f.Body {
			place[i] = len(results)
			results, out = append(results, r), append(out, v)
		}
	}
	f.Results, ret.Operands = results, out
	for _, v := range f.Body.Args {
		if i, ok := v.Attrs.Get(aliasAttr).(ir.Int); ok {
			v.Attrs.Set(aliasAttr, ir.Int{Value: place[i.Value], Type: i.Type})
		}
	}
	uses := f.Uses()
	f.Body.Args = slices.DeleteFunc(f.Body.Args, func(v *ir.Value) bool { return effect(v.Type, v.Attrs) && uses[v.ID] == 0 })
	for i, v := range f.Body.Args {
		v.Index = i
	}
}
