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

// What systems put around the name of an axis does not hide it, and the checkpoint names of
// policies are no settings.
func TestVocabularyAround(t *testing.T) {
	for _, c := range []struct {
		field      syntax.Field
		word, want string
	}{
		{syntax.SettingWord, "pp_degree", "mesh { stage = … }"},
		{syntax.SettingWord, "tensor_parallel_size", "mesh { tensor = … }"},
		{syntax.SettingWord, "use_fsdp", "mesh { fsdp = … }"},
		{syntax.SettingWord, "stage", "mesh { stage = … }"},
		{syntax.MeshWord, "dp-degree", "data"},
		{syntax.MeshWord, "stage", ""},
		{syntax.SettingWord, "batch_size", "axes { batch = … }"},
		{syntax.SettingWord, "parallel_size", ""},
		{syntax.TypeWord, "tp_size", ""},
	} {
		got := ""
		if row := syntax.Theirs(c.field, c.word); row != nil {
			got = row.Ours
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.word, got, c.want)
		}
	}
}
