package partition_test

import (
	"testing"

	"ppc/ir/lang"
	"ppc/ir/mlir"
	"ppc/passes"
	"ppc/passes/partition"
)

// What a walk takes over from the walk before is what it would find.
func TestDecisionsAreThoseOfASearch(t *testing.T) {
	walks := 0
	for _, c := range []struct {
		file string
		opts lang.Options
	}{
		{"llama.pp", lang.Options{Train: true}},
		{"llama_moe.pp", lang.Options{Grad: true}},
		{"llama_window.pp", lang.Options{Train: true}},
		{"llama_cp.pp", lang.Options{Grad: true}},
		{"llama_sp.pp", lang.Options{Train: true, Set: []string{"mesh.data=2", "axes.batch=32", "train.gradient_accumulation=2"}}},
		{"maxtext/deepseek_moe.pp", lang.Options{Grad: true}},
	} {
		p, err := lang.Load("../../examples/"+c.file, c.opts)
		if err != nil {
			t.Fatal(err)
		}
		m := p.Module
		if err := passes.Run(m, passes.Config{After: "pad"}); err != nil {
			t.Fatal(err)
		}
		anew := m.Clone()
		if err := partition.Choose(nil, m); err != nil {
			t.Fatal(err)
		}
		n, err := partition.ChooseAnew(nil, anew)
		if err != nil {
			t.Fatal(err)
		}
		walks += n
		if mlir.Print(m) != mlir.Print(anew) {
			t.Errorf("%s: a search for every op in each of %d walks finds another program", c.file, n)
		}
	}
	if walks < 12 {
		t.Errorf("%d walks: the programs are decided in one", walks)
	}
}
