package passes

import (
	"fmt"

	"ppc/ir"
)

// A Bug is an error of ppc itself: a pass that panicked or broke the rules of
// the IR. Before is the module as the pass got it, nil where that is not known.
type Bug struct {
	Pass   string
	Cause  error
	Stack  []byte // of a panic
	Before *ir.Module
}

func (b *Bug) Error() string { return fmt.Sprintf("pass %s: %v", b.Pass, b.Cause) }

func (b *Bug) Unwrap() error { return b.Cause }
