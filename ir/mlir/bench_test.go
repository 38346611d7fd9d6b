package mlir_test

import (
	"fmt"
	"strings"
	"testing"

	"ppc/ir/mlir"
	"ppc/ir/verify"
)

// texts are large programs: of many ops, and of weights in both spellings.
var texts = []struct {
	name string
	text func() string
}{
	{"ops", func() string {
		var b strings.Builder
		for i := range 100_000 {
			fmt.Fprintf(&b, "    %%%d = stablehlo.add %%a, %%a : tensor<4xf32>\n", i)
		}
		return b.String()
	}},
	{"hex", func() string {
		return "    %w = stablehlo.constant dense<\"0x" + strings.Repeat("0000803F", 4<<20) + "\"> : tensor<4194304xf32>\n"
	}},
	{"decimal", func() string {
		return "    %w = stablehlo.constant dense<[" + strings.Repeat("1.250000e-01, ", 1<<20-1) + "0.5]> : tensor<1048576xf32>\n"
	}},
}

func BenchmarkParse(b *testing.B) {
	for _, c := range texts {
		b.Run(c.name, func(b *testing.B) {
			src := []byte("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n" + c.text() + "    return %a : tensor<4xf32>\n}\n")
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := mlir.Parse("large.mlir", src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	m, err := mlir.Parse("large.mlir", []byte("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"+texts[0].text()+"    return %a : tensor<4xf32>\n}\n"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := verify.Verify(m); err != nil {
			b.Fatal(err)
		}
	}
}
