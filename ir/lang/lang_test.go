package lang

import (
	"testing"

	"ppc/ir/mlir"
)

func TestLlama(t *testing.T) {
	p, err := Load("../../examples/llama.pp", Options{})
	if err != nil {
		t.Fatal("\n" + err.Error())
	}
	t.Log(mlir.Print(p.Module))
}
