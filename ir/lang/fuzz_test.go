package lang

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"ppc/ir/lang/syntax"
)

// seeds are the programs of the repository and of the goldens.
func seeds(f *testing.F) {
	for _, path := range sources(f) {
		src, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	paths, err := filepath.Glob(filepath.Join(goldenDir, "*.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(ar.Files[0].Data)
	}
}

// Format never fails on what it made, and leaves it as it is.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src []byte) {
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
	seeds(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, args := range [][]string{nil, {"sequential", "f64"}, {"train", "devices=8"}} {
			if _, err := loadArgs(string(src), args); err != nil && err.Error() == "" {
				t.Error("an empty error")
			}
		}
	})
}
