package mlir

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// Large and hostile texts end in one clear error, soon and without much memory.
func TestHostile(t *testing.T) {
	const n = 10 << 20
	var aliases strings.Builder
	for i := range 60 {
		fmt.Fprintf(&aliases, "#a%d = [#a%d, #a%d]\n", i, i+1, i+1)
	}
	for _, tt := range []struct{ name, src, want string }{
		{"parentheses", strings.Repeat("(", n), "want func.func or sdy.mesh"},
		{"lists", "module attributes {a = " + strings.Repeat("[", n), "nested more than 256 levels deep"},
		{"types", "func.func @f(%a: " + strings.Repeat("tuple<", n/6), "nested more than 256 levels deep"},
		{"regions", "func.func @f() {" + strings.Repeat(`"a.b"() ({`, n/10), "nested more than 256 levels deep"},
		{"verbatim", "module attributes {a = #b.c" + strings.Repeat("<", n), "nested more than 256 levels deep"},
		{"locations", "module {} loc(" + strings.Repeat(`"a"(`, n/4), "nested more than 256 levels deep"},
		{"aliases", aliases.String() + "#a60 = 1\nmodule attributes {a = #a0} {}", "the aliases stand for too much"},
		{"an alias of itself", "#a = [#a]\nmodule attributes {a = #a} {}", "an alias stands for itself"},
		{"elements", "func.func @f() { stablehlo.constant dense<" + strings.Repeat("[", n) + "> : tensor<i32> }", "lists nested deeper than the shape"},
		{"few elements", "func.func @f() { stablehlo.constant dense<[1]> : tensor<1000000000xi32> }", "found 1 of the 1000000000 elements"},
		{"a large list from one element", `func.func @f(%x: tensor<f32>) { %0 = "stablehlo.reverse"(%x) {dimensions = dense<0> : tensor<1000000000xi64>} : (tensor<f32>) -> tensor<f32> }`, "has 1000000000 elements"},
		{"a large tensor", "func.func @f(%x: tensor<4294967296x4294967296xf32>) {}", "more than 288230376151711744 elements"},
		{"many errors", "func.func @f() {" + strings.Repeat(" a.b %x\n", n/8), "%x is not defined"},
		{"no end", "func.func @f() {", "found the end of the text"},
		{"no UTF-8", "module {\xff}", "1:9: the text is not UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse("in.mlir", []byte(tt.src))
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %.300v, want %q", err, tt.want)
			}
			if len(err.Error()) > 1000*maxErrors {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20+8*uint64(len(tt.src)) {
				t.Errorf("%d MB for %d bytes", used>>20, len(tt.src))
			}
		})
	}
}
