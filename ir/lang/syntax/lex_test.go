package syntax

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/alecthomas/participle/v2/lexer"
	"github.com/google/go-cmp/cmp"
)

// rules are the tokens of the language as regular expressions: the first that matches is
// the kind of the token.
var rules = lexer.MustSimple([]lexer.SimpleRule{
	{Name: "Comment", Pattern: `//[^\n]*`},
	{Name: "Keyword", Pattern: `(include|types|axes|mesh|pipeline|train|hardware|shard|fn|layer|model|param|return|if|else)\b`},
	{Name: "Ident", Pattern: `[a-zA-Z_][a-zA-Z_0-9]*`},
	{Name: "Number", Pattern: `([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?`},
	{Name: "String", Pattern: `"[^"\n]*"`},
	{Name: "Punct", Pattern: `->|==|!=|<=|>=|&&|\|\||[(){}\[\],:;=<>+\-*/%!]`},
	{Name: "Space", Pattern: `[ \t\r\n]+`},
	{Name: "Invalid", Pattern: `.`},
})

// The tokens of every text, of a program or not, are those of the rules.
func TestTokens(t *testing.T) {
	texts := []string{"", ".", "1.", ".5e", "1e+", "1.5E-3x", "fnord fn", `"a`, `"a"b"`, "\"a\nb\"", "a//b\n//", "&|&&||", "é\xff→", "\x00"}
	for _, pattern := range []string{"../std/*.pp", "../../../examples/*.pp", "../../../examples/maxtext/*.pp"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no programs match %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(text))
		}
	}
	pieces := []string{"fn", "if", "layer", "x", "_", "7", ".", "e", "E", "+", "-", ">", "=", "!", "<", "&", "|", "/", `"`, " ", "\t", "\r", "\n", "(", "]", ",", "é", "\xff", "#", "@"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		text := ""
		for range 1 + r.IntN(12) {
			text += pieces[r.IntN(len(pieces))]
		}
		texts = append(texts, text)
	}
	for _, text := range texts {
		want, got := all(t, rules, text), all(t, tokenRules{}, text)
		if !slices.Equal(want, got) {
			t.Errorf("tokens of %q (-rules +got):\n%s", text, cmp.Diff(want, got))
		}
	}
	if diff := cmp.Diff(rules.Symbols(), tokenRules{}.Symbols()); diff != "" {
		t.Errorf("kinds of tokens (-rules +got):\n%s", diff)
	}
}

// all are the tokens of text by the rules of def.
func all(t *testing.T, def lexer.StringDefinition, text string) []lexer.Token {
	t.Helper()
	l, err := def.LexString("a.pp", text)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := lexer.ConsumeAll(l)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return tokens
}
