package config

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
	out := make([]Setting, len(SettingTable))
	for i, r := range SettingTable {
		out[i] = Setting{r.Block, r.Key, slices.Clone(r.Words), r.Doc}
		if r.Kind == Flag {
			out[i].Words = []string{"true", "false"}
		}
	}
	return out
}
