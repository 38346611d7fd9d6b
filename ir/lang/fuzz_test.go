package lang

import (
	"os"
	"testing"

	"ppc/internal/wordfuzz"
	"ppc/ir/lang/syntax"
)

// seeds are the programs of the repository and of the goldens; their words are
// returned.
func seeds(f *testing.F) wordfuzz.Words {
	all := wordfuzz.Seeds(f, "pp", "lang")
	for _, path := range sources(f) {
		src, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, string(src))
	}
	for _, src := range all {
		f.Add([]byte(src), wordfuzz.Nothing)
	}
	return wordfuzz.Of(all...)
}

// Format never fails on what it made, and leaves it as it is.
func FuzzParse(f *testing.F) {
	words := seeds(f)
	f.Fuzz(func(t *testing.T, src, edits []byte) {
		src = []byte(words.Edit(string(src), edits))
		once, err := syntax.Format("in.pp", src)
		if err != nil {
			return
		}
		twice, err := syntax.Format("in.pp", once)
		if err != nil {
			t.Fatalf("%v\nin\n%s", err, once)
		}
		if string(once) != string(twice) {
			t.Errorf("formatted\n%s\nformatted again\n%s", once, twice)
		}
	})
}

// Load gives a verified module or an error, whatever it reads.
func FuzzLoad(f *testing.F) {
	words := seeds(f)
	f.Fuzz(func(t *testing.T, src, edits []byte) {
		src = []byte(words.Edit(string(src), edits))
		for _, args := range [][]string{nil, {"sequential", "f64"}, {"train", "devices=8"}} {
			if _, err := loadArgs(string(src), args); err != nil && err.Error() == "" {
				t.Error("an empty error")
			}
		}
	})
}
