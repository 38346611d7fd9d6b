// Package arrayname is the names that parameters have in files: one for each
// index of an axis where a name has the axis in braces, as
// model.layers.{layer}.experts.{experts}.w1 has.
package arrayname

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Name is a name with variables in braces.
type Name struct {
	texts []string // around the variables, one more than there are
	Vars  []Var
}

// A Var is one index: axis * By + Plus.
type Var struct {
	Axis     string
	By, Plus int

	numbers []int
}

// Numbered is n with numbers in place of the indices of an axis.
func (n Name) Numbered(axis string, numbers []int) Name {
	n.Vars = slices.Clone(n.Vars)
	for i := range n.Vars {
		if n.Vars[i].Axis == axis {
			n.Vars[i].numbers = numbers
		}
	}
	return n
}

// at is the index of element i.
func (v Var) at(i int) int {
	if i < len(v.numbers) {
		i = v.numbers[i]
	}
	return i*v.By + v.Plus
}

var braces = regexp.MustCompile(`\{([^{}]*)\}`)

// index is what may stand in braces, such as layer * 6 + 1.
var index = regexp.MustCompile(`^\s*([A-Za-z_]\w*)\s*(?:\*\s*(\d{1,9})\s*)?(?:\+\s*(\d{1,9})\s*)?$`)

// Parse reads a name. A brace that does not belong to an index is an error.
func Parse(s string) (Name, error) {
	var n Name
	end := 0
	for _, m := range braces.FindAllStringSubmatchIndex(s, -1) {
		inner := s[m[2]:m[3]]
		v := index.FindStringSubmatch(inner)
		if v == nil {
			return Name{}, fmt.Errorf("{%s} is no index", inner)
		}
		by, plus := 1, 0
		if v[2] != "" {
			by, _ = strconv.Atoi(v[2])
		}
		if v[3] != "" {
			plus, _ = strconv.Atoi(v[3])
		}
		n.texts = append(n.texts, s[end:m[0]])
		n.Vars = append(n.Vars, Var{Axis: v[1], By: by, Plus: plus})
		end = m[1]
	}
	n.texts = append(n.texts, s[end:])
	for _, t := range n.texts {
		if strings.ContainsAny(t, "{}") {
			return Name{}, fmt.Errorf("a brace without its other one")
		}
	}
	return n, nil
}

// Keys are the names for all indices of axes of the given sizes, the last axis
// changing fastest.
func (n Name) Keys(sizes []int) []string {
	keys := []string{n.texts[0]}
	for i, v := range n.Vars {
		next := make([]string, 0, len(keys)*sizes[i])
		for _, k := range keys {
			for at := range sizes[i] {
				next = append(next, k+strconv.Itoa(v.at(at))+n.texts[i+1])
			}
		}
		keys = next
	}
	return keys
}
