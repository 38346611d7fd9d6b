package lang

import (
	"slices"
	"strings"
	"testing"
)

// The table of other systems' names has each once and none of ours, and what is
// said of it is there.
func TestVocabulary(t *testing.T) {
	ours := map[field][]string{
		settingWord: settingKeys("pipeline"), meshWord: knownMeshAxes, typeWord: elemTypes, blockWord: blockWords,
		optimizerWord: settingRowOf("train", "optimizer").words, rematWord: remats,
	}
	for _, r := range trainArgs {
		ours[argumentWord] = append(ours[argumentWord], r.name)
	}
	for f, rows := range vocabulary {
		seen := make(map[string]bool)
		for _, row := range rows {
			for _, name := range strings.Fields(row.names) {
				if seen[name] {
					t.Errorf("%s is there twice", name)
				}
				if seen[name] = true; slices.Contains(ours[f], name) && row.ours != name+" of adamw" {
					t.Errorf("%s is a name of ours", name)
				}
			}
			word := strings.FieldsFunc(row.ours, func(r rune) bool { return strings.ContainsRune(" ({,", r) })[0]
			phrase := strings.HasPrefix(row.ours, "an argument of ") || strings.HasPrefix(row.ours, "not a setting") || strings.HasPrefix(row.ours, "pipeline(") ||
				slices.Contains(blockWords, word) && strings.Contains(row.ours, "{")
			if !phrase && !slices.Contains(ours[f], word) {
				t.Errorf("%s: %s is no name of ours", row.names, word)
			}
			if strings.HasPrefix(row.ours, "train { ") || strings.HasPrefix(row.ours, "pipeline { ") {
				block, rest, _ := strings.Cut(row.ours, " { ")
				if key, _, _ := strings.Cut(rest, " "); settingRowOf(block, key) == nil {
					t.Errorf("%s: %s has no setting %s", row.names, block, key)
				}
			}
		}
	}
}
