package verify

import (
	"strings"

	"ppc/ir"
)

// closedDialects are those whose ops are known by name.
var closedDialects = map[string]bool{"builtin": true, "func": true, "stablehlo": true, "chlo": true, "sdy": true, "pp": true, "check": true, "interpreter": true}

// unread are the ops of closed dialects that no row of the op table describes: they
// are carried through as they are.
var unread = func() map[string]bool {
	m := make(map[string]bool)
	for _, name := range strings.Fields(`
		func.call_indirect func.constant
		chlo._asin_acos_kernel chlo.conj chlo.constant chlo.constant_like
		chlo.broadcast_add chlo.broadcast_and chlo.broadcast_atan2 chlo.broadcast_compare chlo.broadcast_complex
		chlo.broadcast_divide chlo.broadcast_maximum chlo.broadcast_minimum chlo.broadcast_multiply
		chlo.broadcast_next_after chlo.broadcast_or chlo.broadcast_polygamma chlo.broadcast_power
		chlo.broadcast_remainder chlo.broadcast_select chlo.broadcast_shift_left
		chlo.broadcast_shift_right_arithmetic chlo.broadcast_shift_right_logical chlo.broadcast_subtract
		chlo.broadcast_xor chlo.broadcast_zeta
		check.expect_eq check.expect_eq_const check.expect_almost_eq check.expect_almost_eq_const check.expect_close
		check.expect_serialized_eq interpreter.probe interpreter.print`) {
		m[name] = true
	}
	return m
}()

// missing reports an op that its dialect does not have.
func missing(op *ir.Op) *ir.Rule {
	name := op.Name()
	if op.Known() || unread[name] {
		return nil
	}
	if dialect, _, _ := strings.Cut(name, "."); closedDialects[dialect] {
		return ir.NewRule("op-1", "the dialect %s has no op %s", dialect, name)
	}
	return nil
}

// dialectAttrs checks the attributes of a module, or of a parameter or a result of a
// function: each is one of a dialect, as its name says, and what its key says.
func dialectAttrs(what string, as ir.Attrs) *ir.Rule {
	for _, a := range as {
		if !strings.Contains(a.Name, ".") {
			return ir.NewRule("structure-11", "%s has the attribute %s, want those of dialects alone, such as jax.%s", what, a.Name, a.Name)
		}
		if r := ir.CheckKey(a); r != nil {
			return ir.NewRule(r.Label, "%s: %s", what, r.Msg)
		}
	}
	return nil
}
