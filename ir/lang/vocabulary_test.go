package lang

import (
	"slices"
	"strings"
	"testing"

	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
)

// The table of other systems' names has each once and none of ours, and what is
// said of it is there.
func TestVocabulary(t *testing.T) {
	ours := map[syntax.Field][]string{
		syntax.SettingWord: config.SettingKeys("pipeline"), syntax.MeshWord: config.KnownMeshAxes, syntax.TypeWord: config.ElemTypes, syntax.BlockWord: syntax.BlockWords,
		syntax.OptimizerWord: config.SettingRowOf("train", "optimizer").Words, syntax.RematWord: config.Remats,
	}
	for _, r := range config.TrainArgs {
		ours[syntax.ArgumentWord] = append(ours[syntax.ArgumentWord], r.Name)
	}
	for f, rows := range syntax.Vocabulary {
		seen := make(map[string]bool)
		for _, row := range rows {
			for _, name := range strings.Fields(row.Names) {
				if seen[name] {
					t.Errorf("%s is there twice", name)
				}
				if seen[name] = true; slices.Contains(ours[f], name) && row.Ours != name+" of adamw" {
					t.Errorf("%s is a name of ours", name)
				}
			}
			word := strings.FieldsFunc(row.Ours, func(r rune) bool { return strings.ContainsRune(" ({,", r) })[0]
			phrase := strings.HasPrefix(row.Ours, "an argument of ") || strings.HasPrefix(row.Ours, "not a setting") || strings.HasPrefix(row.Ours, "pipeline(") ||
				slices.Contains(syntax.BlockWords, word) && strings.Contains(row.Ours, "{")
			if !phrase && !slices.Contains(ours[f], word) {
				t.Errorf("%s: %s is no name of ours", row.Names, word)
			}
			if strings.HasPrefix(row.Ours, "train { ") || strings.HasPrefix(row.Ours, "pipeline { ") {
				block, rest, _ := strings.Cut(row.Ours, " { ")
				if key, _, _ := strings.Cut(rest, " "); config.SettingRowOf(block, key) == nil {
					t.Errorf("%s: %s has no setting %s", row.Names, block, key)
				}
			}
		}
	}
}
