package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const archive = `Letters become large.
upper: !
-- in.mlir --
abc
-- upper --
`

var stages = map[string]Stage{
	"upper": func(_ *testing.T, src string, args []string) string {
		return strings.ToUpper(strings.TrimSpace(src)) + strings.Join(args, "")
	},
}

// An update writes what the stage makes; the archive then passes, and stays
// the same in another update.
func TestUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.txtar")
	if err := os.WriteFile(path, []byte(archive), 0o666); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		t.Setenv("PPC_UPDATE", "1")
		Run(t, filepath.Dir(path), stages)
		t.Setenv("PPC_UPDATE", "")
		Run(t, filepath.Dir(path), stages)
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := archive + "ABC!\n"; string(got) != want {
			t.Errorf("archive is\n%s\nwant\n%s", got, want)
		}
	}
}
