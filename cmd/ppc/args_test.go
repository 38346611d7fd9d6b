package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Arguments of a command may follow its flags; what is not known, and what follows --, stays where it is.
func TestGathered(t *testing.T) {
	parser := kong.Must(new(commands), kong.Vars{"file": fileHelp})
	for args, want := range map[string]string{
		"import maxtext a.yml -o m.pp k=v":                  "import maxtext a.yml k=v -o m.pp",
		"import maxtext a.yml k=v -o m.pp":                  "import maxtext a.yml k=v -o m.pp",
		"--timeout 3s run --quiet a.pp --set x.y=1":         "run a.pp --timeout 3s --quiet --set x.y=1",
		"check --set=x.y=1 a.pp b.pp":                       "check a.pp b.pp --set=x.y=1",
		"run a.pp --steps -1 --nowhere b.pp":                "run a.pp --steps -1 --nowhere b.pp",
		"check --strict -- -a.pp b.pp":                      "check --strict -- -a.pp b.pp",
		"run - --set axes.seq=16":                           "run - --set axes.seq=16",
		"run a.pp --steps":                                  "run a.pp --steps",
		"import maxtext a.yml --parameters huggingface k=v": "import maxtext a.yml k=v --parameters huggingface",
	} {
		if have := strings.Join(gathered(parser.Model.Node, strings.Fields(args)), " "); have != want {
			t.Errorf("%s\n%s\nwant %s", args, have, want)
		}
	}
}
