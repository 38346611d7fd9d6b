package xla

import (
	"slices"
	"strings"

	"ppc/internal/diag"
	"ppc/ir"
)

// hostCalls are the targets of custom calls that call a function of the host.
var hostCalls = []string{
	"xla_python_cpu_callback", "xla_python_gpu_callback",
	"xla_ffi_python_cpu_callback", "xla_ffi_python_gpu_callback",
	"xla_ffi_partitioned_python_cpu_callback", "xla_ffi_partitioned_python_gpu_callback",
	"InspectSharding",
}

// isHostCall reports whether op passes values to or from the host, by a function that
// only the process has that made the program.
func isHostCall(op *ir.Op) bool {
	if target := calledTarget(op); target != "" {
		return slices.Contains(hostCalls, target)
	}
	name := op.Name()
	return (name == "stablehlo.send" || name == "stablehlo.recv") && op.Bool("is_host_transfer")
}

// isHostQueue reports whether op passes values to or from the host, by a queue that
// whoever runs the program may attend to.
func isHostQueue(op *ir.Op) bool {
	switch op.Name() {
	case "stablehlo.infeed", "stablehlo.outfeed", "hlo.infeed", "hlo.outfeed":
		return true
	case "hlo.send", "hlo.recv":
		return op.Str("is_host_transfer") == "true"
	case "hlo.send-done": // of a send that is left out, which leaves its token
		return len(op.Operands) == 1 && op.Operands[0].Type.Kind == ir.TokenType
	}
	return false
}

// callName is op in messages.
func callName(op *ir.Op) string {
	if target := calledTarget(op); target != "" {
		return "custom_call @" + target
	}
	return op.Name()
}

// calledTarget is the target of a custom call, also of one that is still an instruction of
// HLO since its operands have layouts; else "".
func calledTarget(op *ir.Op) string {
	switch {
	case op.Kind == ir.CustomCall:
		return op.Str("call_target_name")
	case op.Name() == "hlo.custom-call":
		return strings.Trim(op.Str("custom_call_target"), `"`)
	}
	return ""
}

// Unattended prepares m for a run in which nobody on the host reads what it hands
// out: that is left out with a warning, and what it takes from there is an error.
func Unattended(m *ir.Module, o Options) (warnings diag.List, err error) {
	im := &importer{m: m, Options: o, has: surveyOf(m)}
	im.leaveOut(isHostQueue, "exchanges values with the host, where nobody attends to it when the program runs here")
	im.warnings.Sort()
	im.errs.Sort()
	return im.warnings, im.errs.Err()
}

// leaveOut removes the ops that call the host, in the words of what, and whose results
// are unused, such as prints. A token that one returns is replaced by the one that it
// takes.
func (im *importer) leaveOut(calls func(op *ir.Op) bool, what string) {
	main := im.m.Main()
	for _, f := range im.m.Funcs {
		if f.Body == nil {
			continue
		}
		if im.has.host {
			c := &hostCaller{importer: im, calls: calls, what: what, uses: f.Uses(), sub: f.NewSubst()}
			c.block(f.Body)
		}
		if f == main {
			dropTokens(f)
		}
	}
}

// A hostCaller is a function from which calls are removed.
type hostCaller struct {
	*importer
	calls func(op *ir.Op) bool
	what  string
	uses  []int
	sub   ir.Subst
}

func (c *hostCaller) block(b *ir.Block) {
	b.Ops = slices.DeleteFunc(b.Ops, func(op *ir.Op) bool {
		c.sub.Apply(op.Operands)
		for _, r := range op.Regions {
			c.block(r)
		}
		return c.calls(op) && c.leftOut(op)
	})
}

// leftOut reports whether op can be left out, and says so.
func (c *hostCaller) leftOut(op *ir.Op) bool {
	name := callName(op)
	token := slices.IndexFunc(op.Operands, func(v *ir.Value) bool { return v.Type.Kind == ir.TokenType })
	for i, v := range op.Results {
		if c.uses[v.ID] == 0 {
			continue
		}
		switch {
		case (v.Type.Kind == ir.TokenType || name == "hlo.send") && token >= 0:
			c.sub[v.ID] = op.Operands[token]
		case calledTarget(op) == "InspectSharding" && i < len(op.Operands):
			c.sub[v.ID] = op.Operands[i]
		default:
			c.errorf(op.Origin, "%s gets %s from the host, which is not there when the program runs; compute it in the program, or take it as a parameter", name, v.Type)
			return false
		}
	}
	switch {
	case name == "hlo.send-done": // the send has been spoken of
	case c.Strict:
		c.errorf(op.Origin, "%s %s; without --strict it is left out", name, c.what)
		return false
	default:
		c.warn(op.Origin, hostCallback, "%s %s: it is left out", name, c.what)
	}
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
	if !slices.ContainsFunc(f.Body.Args, func(v *ir.Value) bool { return effect(v.Type, v.Attrs) }) {
		return
	}
	uses := f.Uses()
	f.Body.Args = slices.DeleteFunc(f.Body.Args, func(v *ir.Value) bool { return effect(v.Type, v.Attrs) && uses[v.ID] == 0 })
	for i, v := range f.Body.Args {
		v.Index = i
	}
}
