package driver

import (
	"context"

	"ppc/passes"
)

// A Progress is how far a command has come.
type Progress struct {
	Doing string // compiling, training, checking
	What  string // the pass, the file; "" where the step has no name
	Unit  string // what is counted: pass, step, file; "" where nothing is
	Done  int
	Total int
	Even  bool // steps take about the same time, so those so far tell how long the rest takes
}

type progressKey struct{}

// WithProgress is ctx for a command whose progress hear gets. It is called from
// several goroutines, one after the other, and from work that was left behind, so
// it must not wait.
func WithProgress(ctx context.Context, hear func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, hear)
}

// advance says how far the command has come.
func advance(ctx context.Context, p Progress) {
	if hear, ok := ctx.Value(progressKey{}).(func(Progress)); ok {
		hear(p)
	}
}

// compiled says that the first n passes have run.
func compiled(ctx context.Context, n int) {
	if n < len(passes.Table) {
		advance(ctx, Progress{Doing: "compiling", What: passes.Table[n].Name, Unit: "pass", Done: n, Total: len(passes.Table)})
	}
}

// during is ctx while p is so: what the stages of it say is not heard.
func during(ctx context.Context, p Progress) context.Context {
	if ctx.Value(progressKey{}) == nil {
		return ctx
	}
	advance(ctx, p)
	return WithProgress(ctx, func(Progress) {})
}
