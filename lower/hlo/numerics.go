package hlo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/lower/hlo/syntax"
)

// How exactly an op computes is an attribute that the rest of the compiler
// carries unread, in StableHLO's spelling.

// anyEightBits is what HLO calls the operands of an algorithm for types of
// eight bits, and how StableHLO spells one of them.
const anyEightBits, eightBits = "any_f8", "f8E5M2"

// algorithm is how a contraction is computed. HLO names the types of operands
// and sums, and how many products are summed: dot_bf16_bf16_f32_x3.
func algorithm() field {
	return of("algorithm", func(op *ir.Op) string {
		v, ok := op.Attrs.Get("algorithm").(ir.Verbatim)
		if !ok {
			return ""
		}
		f := v.Fields()
		lhs, rhs := f["lhs_precision_type"], f["rhs_precision_type"]
		if ir.DTypeByName(lhs).Bits() == 8 {
			lhs, rhs = anyEightBits, anyEightBits
		}
		name := fmt.Sprintf("dot_%s_%s_%s", lhs, rhs, f["accumulation_type"])
		if n := f["num_primitive_operations"]; n != "1" {
			name += "_x" + n
		}
		if f["allow_imprecise_accumulation"] == "true" {
			name += "_fast_accum"
		}
		return name
	}, func(text string, as *ir.Attrs) error {
		name, ok := strings.CutPrefix(text, "dot_")
		if !ok {
			return syntax.ErrBeyond // unset
		}
		name, imprecise := strings.CutSuffix(name, "_fast_accum")
		name = strings.ReplaceAll(name, anyEightBits, eightBits)
		parts := append(strings.Split(name, "_"), "x1")
		if len(parts) < 4 || !strings.HasPrefix(parts[3], "x") {
			return fmt.Errorf("%s is no algorithm", text)
		}
		as.Set("algorithm", ir.Verbatim(fmt.Sprintf("#stablehlo.dot_algorithm<lhs_precision_type = %s, rhs_precision_type = %s, accumulation_type = %s, "+
			"lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = %s, allow_imprecise_accumulation = %t>", parts[0], parts[1], parts[2], parts[3][1:], imprecise)))
		return nil
	})
}

// tolerances are the bounds that an accuracy may name, in HLO's order.
var tolerances = []string{"atol", "rtol", "ulps"}

// accuracy is how exactly a function is computed: {mode=highest}, or
// {tolerance={atol=1,rtol=0.5,ulps=2}}.
func accuracy() field {
	return of("result_accuracy", func(op *ir.Op) string {
		v, ok := op.Attrs.Get("result_accuracy").(ir.Verbatim)
		if !ok {
			return ""
		}
		f := v.Fields()
		mode := strings.TrimSuffix(strings.TrimPrefix(f["mode"], "#stablehlo.result_accuracy_mode<"), ">")
		if mode != "TOLERANCE" {
			return "{mode=" + strings.ToLower(mode) + "}"
		}
		var parts []string
		for _, t := range tolerances {
			if x, err := strconv.ParseFloat(f[t], 64); err == nil && x != 0 {
				parts = append(parts, t+"="+strconv.FormatFloat(x, 'g', -1, 64))
			}
		}
		return "{tolerance={" + strings.Join(parts, ",") + "}}"
	}, func(text string, as *ir.Attrs) error {
		parts, err := syntax.Elements(text)
		if err != nil {
			return err
		}
		for _, p := range parts {
			name, value, _ := strings.Cut(p, "=")
			switch {
			case name == "mode" && slices.Contains([]string{"highest", "default"}, strings.ToLower(value)):
				as.Set("result_accuracy", ir.Verbatim("#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<"+strings.ToUpper(value)+">>"))
			case name == "tolerance":
				v, err := tolerance(value)
				if err != nil {
					return err
				}
				as.Set("result_accuracy", v)
			default:
				return fmt.Errorf("%s is neither mode=default, mode=highest nor tolerance={…}", p)
			}
		}
		return nil
	})
}

// tolerance reads {rtol=0.5,atol=1.0,ulps=2}.
func tolerance(text string) (ir.Verbatim, error) {
	parts, err := syntax.Elements(text)
	if err != nil {
		return "", err
	}
	given := make(map[string]float64)
	for _, p := range parts {
		name, value, _ := strings.Cut(p, "=")
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || !slices.Contains(tolerances, name) {
			return "", fmt.Errorf("%s is none of atol, rtol and ulps", p)
		}
		given[name] = x
	}
	var b strings.Builder
	for _, t := range tolerances[:2] {
		if x := given[t]; x != 0 {
			fmt.Fprintf(&b, "%s = %s, ", t, floatAttr(x))
		}
	}
	if x := given["ulps"]; x != 0 {
		fmt.Fprintf(&b, "ulps = %d, ", int(x))
	}
	return ir.Verbatim("#stablehlo.result_accuracy<" + b.String() + "mode = #stablehlo.result_accuracy_mode<TOLERANCE>>"), nil
}

// floatAttr is x as MLIR writes it, with a point.
func floatAttr(x float64) string {
	text, _, _ := strings.Cut(ir.Float{Value: x, Type: ir.F64}.String(), " ")
	return text
}
