package ir

import (
	"fmt"
	"strings"
)

// A Rule is a broken rule of an op, of the structure of a module, or of a [Form].
type Rule struct {
	Label string // stablehlo.dot_general-C7, structure-2, rotated
	Msg   string // what is wrong, with what numbers, and what would do
}

// NewRule is a broken rule of the given label.
func NewRule(label, format string, args ...any) *Rule {
	return &Rule{label, fmt.Sprintf(format, args...)}
}

// Broken is constraint n of the op at hand; InferOp completes the label.
func Broken(n int, format string, args ...any) *Rule {
	return NewRule(fmt.Sprintf("C%d", n), format, args...)
}

// Counted is n with noun in the singular or plural: 1 region, 2 regions, 2 batches.
// Of a phrase the first word is put in the plural: 2 lists of axes.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	head, rest, _ := strings.Cut(noun, " of ")
	ending := "s"
	if strings.HasSuffix(head, "ch") || strings.HasSuffix(head, "s") || strings.HasSuffix(head, "x") {
		ending = "es"
	}
	if rest != "" {
		ending += " of " + rest
	}
	return fmt.Sprintf("%d %s%s", n, head, ending)
}

// Renumbered is r with the number that its constraint has in another op, where that
// differs.
func (r *Rule) Renumbered(numbers map[int]int) *Rule {
	for from, to := range numbers {
		if r.Label == fmt.Sprintf("C%d", from) {
			return Broken(to, "%s", r.Msg)
		}
	}
	return r
}

// of completes the label of a constraint with the name of the op.
func (r *Rule) of(op *Op) *Rule {
	if r != nil && strings.HasPrefix(r.Label, "C") {
		return &Rule{op.Name() + "-" + r.Label, r.Msg}
	}
	return r
}
