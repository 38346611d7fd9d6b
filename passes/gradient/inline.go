package gradient

import (
	"ppc/ir"
	"ppc/passes/pass"
	"ppc/passes/rewrite"
)

// Inline inlines the calls of main, if its gradient is asked for:
// reverse mode works on one function.
func Inline(_ *pass.Context, m *ir.Module) error {
	if m.Attrs.Str(ir.KeyGradient) == "" {
		return nil
	}
	if err := rewrite.InlineCalls(m, m.Main()); err != nil {
		return err
	}
	rewrite.DropUnused(m)
	return nil
}
