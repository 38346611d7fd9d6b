package mlir

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"ppc/internal/wordfuzz"
)

// drafted is the result of reading src as text, errors included: with drafts so many bytes
// apart, all of which have been read before the parser of the text begins, and without any
// where apart is 0. It tells how many drafts were taken over.
func drafted(src []byte, apart int) (text string, taken int) {
	s := newParser("in.mlir", src)
	s.findAliases()
	if apart > 0 {
		s.readAhead(apart, 1)
	}
	if s.ahead != nil {
		s.ahead.all.Wait()
	}
	m, err := s.module()
	if s.ahead != nil {
		for _, d := range s.ahead.drafts {
			if d.good && d.ops == nil {
				taken++
			}
		}
	}
	if err != nil {
		return err.Error(), taken
	}
	return PrintWith(m, Options{Locs: true}), taken
}

// What is read of a text, and what is wrong with it, does not depend on drafts, wherever
// they begin.
func TestDrafts(t *testing.T) {
	var ops strings.Builder
	for i := range 200 {
		fmt.Fprintf(&ops, "  %%%d = stablehlo.add %%a, %%a : tensor<4xf32>\n", i)
	}
	loop := `  %r:2 = stablehlo.while(%i = %c, %x = %0) : tensor<i32>, tensor<4xf32> cond {
    %p = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %y = stablehlo.add %x, %1 : tensor<4xf32> loc(#place)
    stablehlo.return %i, %y : tensor<i32>, tensor<4xf32>
  }
`
	for _, tt := range []struct {
		name, body string
		taken      bool // some drafts are
	}{
		{"ops", ops.String(), true},
		{"a use of what comes later", "  %x = stablehlo.add %y, %a : tensor<4xf32>\n" + ops.String() + "  %y = stablehlo.add %a, %a : tensor<4xf32>\n", true},
		{"another type in a draft", ops.String() + "  %w = stablehlo.add %3, %3 : tensor<5xf32>\n" + ops.String(), true},
		{"a name twice", ops.String() + ops.String(), true},
		{"a name twice, the second in a region", ops.String() + "  %c = stablehlo.constant dense<1> : tensor<i32>\n" + strings.Replace(loop, "%y", "%7", 2), true},
		{"regions", ops.String() + "  %c = stablehlo.constant dense<1> : tensor<i32>\n" + loop + strings.ReplaceAll(ops.String(), "  %", "  %b"), true},
		{"no op", ops.String() + "  // %5 = a comment\n  %z = stablehlo.constant dense<\"0x00\n", true},
		{"results", ops.String() + "  %c = stablehlo.constant dense<1> : tensor<i32>\n" + loop + "  %s = stablehlo.add %r#1, %r#1 : tensor<4xf32>\n  %u = stablehlo.add %r#2, %r#1 : tensor<4xf32>\n", true},
		{"other meshes", strings.Repeat("  %9 = sdy.reshard %a <mesh<[\"x\"=2]>, [{\"x\"}]> : tensor<4xf32>\n", 20), false},
		{"aliases of places", strings.ReplaceAll(ops.String(), "f32>\n", "f32> loc(#place)\n"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := []byte("#place = loc(\"file\":3:4)\nfunc.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n" + tt.body + "  return %a : tensor<4xf32>\n}\nfunc.func @g() {\n  return %a\n}\n")
			want, _ := drafted(src, 0)
			for _, apart := range []int{16, 100, 1000} {
				got, taken := drafted(src, apart)
				if got != want {
					t.Fatalf("drafts %d bytes apart: got %.400s\nwant %.400s", apart, got, want)
				}
				if (taken > 0) != tt.taken {
					t.Errorf("drafts %d bytes apart: %d are taken over", apart, taken)
				}
			}
		})
	}
}

// Parsers that read ahead at the same time read what one does.
func TestReadAhead(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	var b strings.Builder
	b.WriteString("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n")
	last := "%a"
	for i := range 5 * draftBytes / 60 {
		fmt.Fprintf(&b, "    %%%d = stablehlo.add %s, %%a : tensor<4xf32> loc(#place)\n", i, last)
		last = fmt.Sprintf("%%%d", i)
	}
	fmt.Fprintf(&b, "    return %s : tensor<4xf32>\n}\n#place = loc(\"file\":3:4)\n", last)
	for _, end := range []string{"", "func.func @g() {\n  return %a\n}\n"} {
		src := []byte(b.String() + end)
		want, _ := drafted(src, 0)
		m, err := Parse("in.mlir", src)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = PrintWith(m, Options{Locs: true})
		}
		if got != want {
			t.Fatalf("got %.400s\nwant %.400s", got, want)
		}
	}
}

// FuzzDrafts is TestDrafts for any text.
func FuzzDrafts(f *testing.F) {
	seeds := wordfuzz.Seeds(f, "mlir", "mlir", "xla")
	for _, s := range seeds {
		f.Add([]byte(s), wordfuzz.Nothing, 8)
	}
	words := wordfuzz.Of(seeds...)
	f.Fuzz(func(t *testing.T, src, edits []byte, apart int) {
		src = []byte(words.Edit(string(src), edits))
		want, _ := drafted(src, 0)
		if got, _ := drafted(src, max(1, apart)); got != want {
			t.Errorf("got %s\nwant %s\nof\n%s", got, want, src)
		}
	})
}
