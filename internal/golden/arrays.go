package golden

import (
	"testing"

	"ppc/internal/tensorfile"
)

// Arrays reads all arrays of a file.
func Arrays(t *testing.T, path string) map[string]*tensorfile.Array {
	t.Helper()
	f, err := tensorfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := make(map[string]*tensorfile.Array)
	for _, name := range f.Names() {
		if out[name], err = f.Read(name); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
