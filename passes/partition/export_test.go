package partition

import (
	"ppc/ir"
	"ppc/passes/pass"
)

// ChooseAnew is [Choose] with a search for every op in every walk. It returns how many
// walks there were.
func ChooseAnew(c *pass.Context, m *ir.Module) (walks int, err error) {
	p, err := programOf(m)
	if err != nil {
		return 0, err
	}
	p.splitMoves()
	g := newGiven(p)
	g.alike = nil
	p.f.Body = learnFrom(c, g, func() {
		walks++
		clear(g.decisions)
	})
	p.f.Renumber()
	return walks, nil
}
