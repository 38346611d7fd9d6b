package facts

import (
	"fmt"

	"ppc/ir"
)

// ResultName is what the user calls result i of f, or its number.
func ResultName(f *ir.Func, i int) string {
	if n := f.Results[i].Attrs.Str(ir.KeyName); n != "" {
		return n
	}
	return fmt.Sprintf("result %d", i)
}

// WordsOf are the strings of an array.
func WordsOf(a ir.Attr) []string {
	list, _ := a.(ir.Array)
	var out []string
	for _, e := range list {
		if s, ok := e.(ir.Str); ok {
			out = append(out, string(s))
		}
	}
	return out
}

// ExplicitMode reports whether the program is in explicit mode: every sharding is
// stated in the source or follows from the operands' by the op's rule.
func ExplicitMode(m *ir.Module) bool { return m.Attrs.Str(ir.KeyMode) == "explicit" }

// Describe names v in messages: by the user's name where there is one.
func Describe(v *ir.Value) string {
	what := "tensor of type " + v.Type.String()
	if v.Name != "" {
		return v.Name + ": " + what
	}
	if v.Def == nil {
		return fmt.Sprintf("argument %d: %s", v.Index, what)
	}
	return "result of " + v.Def.Name() + ": " + what
}

// StageAxis is the mesh axis along which the stages of a pipeline are sharded.
const StageAxis = "stage"

// Named is an attribute with its name.
func Named(name string, a ir.Attr) ir.NamedAttr { return ir.NamedAttr{Name: name, Attr: a} }
