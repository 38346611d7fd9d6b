package lang

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"ppc/internal/shared"
	"ppc/ir/lang/syntax"
)

// Programs with a few words changed for words of other programs are nearly
// right: they get far, and must not make Load panic. PPC_MUTATIONS says how
// many are tried.
func TestMutations(t *testing.T) {
	n, err := strconv.Atoi(shared.Setting(t, "PPC_MUTATIONS"))
	if err != nil {
		n = 300
	}
	programs, words := mutable(t)
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range n {
		src := mutate(rng, programs[rng.IntN(len(programs))], words)
		if msg := panics(src); msg != "" {
			t.Fatalf("mutation %d: %s\nin\n%s", i, msg, src)
		}
	}
}

func panics(src string) (msg string) {
	defer func() {
		if r := recover(); r != nil {
			msg = fmt.Sprint(r)
		}
	}()
	if _, err := loadArgs(src, nil); err != nil && err.Error() == "" {
		return "an empty error"
	}
	return ""
}

// mutable are programs as lists of words with the blanks before each, and all
// their words.
func mutable(t *testing.T) (programs [][]string, words []string) {
	var texts []string
	for _, path := range sources(t) {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(src))
	}
	paths, _ := filepath.Glob(filepath.Join(goldenDir, "*.txtar"))
	for _, path := range paths {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(ar.Files[0].Data))
	}
	for _, src := range texts {
		lines, err := syntax.TokenLines(&syntax.Source{Name: "in.pp", Text: src})
		if err != nil {
			continue
		}
		var p []string
		for _, l := range lines {
			for _, tok := range l {
				if tok.Kind != "Comment" {
					p = append(p, tok.Text)
					words = append(words, tok.Text)
				}
			}
			p = append(p, "\n")
		}
		programs = append(programs, p)
	}
	return programs, words
}

func mutate(rng *rand.Rand, p, words []string) string {
	out := append([]string{}, p...)
	for range 1 + rng.IntN(3) {
		i := rng.IntN(len(out))
		switch rng.IntN(4) {
		case 0:
			out[i] = ""
		case 1:
			out[i] += " " + out[rng.IntN(len(out))]
		case 2:
			out[i] = out[rng.IntN(len(out))]
		default:
			out[i] = words[rng.IntN(len(words))]
		}
	}
	return strings.Join(out, " ")
}
