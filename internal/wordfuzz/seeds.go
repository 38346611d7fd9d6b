package wordfuzz

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"ppc/internal/shared"
)

// Seeds are the texts of a language, in files of its extension, in archives of testdata/golden.
func Seeds(t testing.TB, ext string, dirs ...string) []string {
	t.Helper()
	var out []string
	for _, dir := range dirs {
		paths, err := filepath.Glob(filepath.Join(shared.Root(t), "testdata", "golden", dir, "*.txtar"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no archives in %s (%v)", dir, err)
		}
		for _, path := range paths {
			ar, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range ar.Files {
				if strings.HasSuffix(file.Name, "."+ext) && len(file.Data) < 1<<14 {
					out = append(out, string(file.Data))
				}
			}
		}
	}
	return out
}
