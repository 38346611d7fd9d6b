package passes

import (
	"testing"

	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/mlir"
	"ppc/passes/pass"
)

// The module that a pass got can be rebuilt from the module that the first pass
// got.
func TestRebuild(t *testing.T) {
	load := func() (*ir.Module, error) {
		p, err := lang.Load("../examples/simple.pp", lang.Options{Train: true})
		if err != nil {
			return nil, err
		}
		return p.Module, nil
	}
	m, err := load()
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Rebuild: load}
	last := mlir.Print(m)
	cfg.Each = func(n int, p *pass.Pass, m *ir.Module) error {
		if before := cfg.before(n - 1); before == nil || mlir.Print(before) != last {
			t.Errorf("%s got another module than was rebuilt", p.Name)
		}
		last = mlir.Print(m)
		return nil
	}
	if err := Run(m, cfg); err != nil {
		t.Fatal(err)
	}
}
