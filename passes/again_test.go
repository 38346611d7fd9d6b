package passes

import (
	"testing"

	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/mlir"
	"ppc/passes/pass"
)

// What a pass got can be made again from what the first pass got.
func TestAgain(t *testing.T) {
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
	cfg := Config{Again: load}
	last := mlir.Print(m)
	cfg.Each = func(n int, p *pass.Pass, m *ir.Module) error {
		if before := cfg.before(n - 1); before == nil || mlir.Print(before) != last {
			t.Errorf("%s got something else than what was made again", p.Name)
		}
		last = mlir.Print(m)
		return nil
	}
	if err := Run(m, cfg); err != nil {
		t.Fatal(err)
	}
}
