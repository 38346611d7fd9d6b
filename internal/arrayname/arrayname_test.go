package arrayname

import (
	"slices"
	"testing"
)

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes []int
		want  []string
	}{
		{"w", nil, []string{"w"}},
		{"a.{layer}.w", []int{2}, []string{"a.0.w", "a.1.w"}},
		{"{layer * 6 + 1}", []int{3}, []string{"1", "7", "13"}},
		{"l{layer+3}.e{experts}", []int{2, 2}, []string{"l3.e0", "l3.e1", "l4.e0", "l4.e1"}},
	} {
		n, err := Parse(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Keys(c.sizes); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestNumbered(t *testing.T) {
	n, err := Parse("l{layer * 2}.e{experts}")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"l2.e0", "l2.e1", "l10.e0", "l10.e1", "l0.e0", "l0.e1"}
	if got := n.Numbered("layer", []int{1, 5, 0}).Keys([]int{3, 2}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if n.Keys([]int{1, 1})[0] != "l0.e0" {
		t.Error("the name itself has numbers now")
	}
}

func TestErrors(t *testing.T) {
	for name, want := range map[string]string{
		"{layer": "a brace without its other one", "layer}": "a brace without its other one", "{}": "{} is no index", "{layer - 1}": "{layer - 1} is no index", "{1}": "{1} is no index", "{{layer}}": "a brace without its other one",
	} {
		if _, err := Parse(name); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
