package facts

import (
	"fmt"

	"ppc/ir"
)

// ReduceAttr, on a pp.gather or a conversion that rounds a weight, is the element
// type in which the weight's gradient is summed and scattered. Without it that
// is the weight's own.
const ReduceAttr = "pp.reduce_dtype"

func ResultName(f *ir.Func, i int) string {
	if n := f.Results[i].Attrs.Str("pp.name"); n != "" {
		return n
	}
	return fmt.Sprintf("result %d", i)
}

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

// ExplicitMode reports whether the program wants every sharding to be in its
// source or to follow from there.
func ExplicitMode(m *ir.Module) bool { return m.Attrs.Str("pp.mode") == "explicit" }

// AxesAttr is the attribute by which an op says what the language calls the
// axes of its result, and a parameter its own. Leading dimensions that a pass
// has added have no names.
const AxesAttr = "pp.axes"

// Describe names v for people: by the user's name where there is one.
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

const StageAxis = "stage"

func Named(name string, a ir.Attr) ir.NamedAttr { return ir.NamedAttr{Name: name, Attr: a} }
