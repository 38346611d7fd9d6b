package lang

import (
	"slices"
)

// A Setting is one key of a block that has fixed keys.
type Setting struct {
	Block, Key string
	Words      []string // that the value may be; nil where it is no word
	Doc        string   // one sentence
}

// Settings returns every setting, in the order of the reference.
func Settings() []Setting {
	out := make([]Setting, len(settingTable))
	for i, r := range settingTable {
		out[i] = Setting{r.block, r.key, slices.Clone(r.words), r.doc}
		if r.kind == flag {
			out[i].Words = []string{"true", "false"}
		}
	}
	return out
}
