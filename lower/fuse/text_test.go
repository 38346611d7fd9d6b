package fuse

import (
	"fmt"
	"strings"

	"ppc/ir"
)

// Text writes the groups of a plan, a line for each member: what it reads of the
// group by number, of its inputs by name and strides.
func Text(plan []Node, name func(*ir.Value) string) string {
	var b strings.Builder
	for _, n := range plan {
		if n.Group == nil {
			fmt.Fprintf(&b, "%s\n", n.Op.Name())
			continue
		}
		g := n.Group
		fmt.Fprintf(&b, "group of %d elements", g.Elements)
		if g.Cols > 0 {
			fmt.Fprintf(&b, " in rows of %d", g.Cols)
		}
		fmt.Fprintf(&b, ", results %v\n", g.Outputs)
		for i, m := range g.Members {
			fmt.Fprintf(&b, "  %d: %s%s", i, m.Op.Name(), levels[m.Level])
			for _, a := range m.Args {
				fmt.Fprintf(&b, " %s", a.text(name))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

var levels = map[Level]string{Full: "", Row: " for each row", Cols: " for each column", Whole: " for all"}

func (a *Arg) text(name func(*ir.Value) string) string {
	switch {
	case a.Splat != nil:
		return a.Splat.String()
	case a.Member >= 0 && a.Spread:
		return fmt.Sprintf("%d spread", a.Member)
	case a.Member >= 0:
		return fmt.Sprint(a.Member)
	case a.View.Dense():
		return name(a.View.Value)
	}
	v := a.View.Merged()
	text := fmt.Sprintf("%s%v by %v", name(v.Value), v.Shape, v.Strides)
	if v.Offset != 0 {
		text += fmt.Sprintf(" from %d", v.Offset)
	}
	return text
}
