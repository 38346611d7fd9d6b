package examples_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/internal/golden"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/passes"
)

// lower compiles a program whose text may include the examples.
func lower(t testing.TB, src string, set ...string) *ir.Module {
	t.Helper()
	read := func(name string) ([]byte, error) {
		if name == "in.pp" {
			return []byte(src), nil
		}
		return os.ReadFile(filepath.Base(name))
	}
	p, err := lang.Load("in.pp", lang.Options{Set: set, ReadFile: read})
	if err != nil {
		t.Fatal(err)
	}
	if err := passes.Run(p.Module, passes.Config{}); err != nil {
		t.Fatal(err)
	}
	return p.Module
}

// The collectives that a program executes, by loop: what the mathematics of an
// iteration asks for, and no more.
func TestCounts(t *testing.T) {
	stage := func(rotate string) golden.Stage {
		return func(t *testing.T, src string, _ []string) string {
			m := lower(t, src, "pipeline.rotate="+rotate)
			var b strings.Builder
			counts(&b, m.Main().Body, "main", "")
			return b.String()
		}
	}
	golden.Run(t, "../testdata/golden/counts", map[string]golden.Stage{"ppermute": stage("ppermute"), "slice_pad": stage("slice_pad")})
}

// counts writes the collectives of b itself, then those of its loops.
func counts(b *strings.Builder, block *ir.Block, name, indent string) {
	n := make(map[string]int)
	for _, op := range block.Ops {
		if op.Kind.Has(ir.Collective) {
			n[strings.TrimPrefix(op.Name(), "stablehlo.")+" over "+axes(op)]++
		}
	}
	var kinds []string
	for k := range n {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	fmt.Fprintf(b, "%s%s\n", indent, name)
	for _, k := range kinds {
		fmt.Fprintf(b, "%s  %d %s\n", indent, n[k], k)
	}
	for _, op := range block.Ops {
		for _, r := range op.Regions {
			if op.Kind == ir.While && r == op.Regions[1] {
				counts(b, r, "while", indent+"  ")
			}
		}
	}
}

// axes are the mesh axes that a collective is over.
func axes(op *ir.Op) string {
	switch g := op.Attrs.Get("replica_groups").(type) {
	case ir.MeshAxes:
		var names []string
		for _, r := range g.Axes {
			names = append(names, r.Name)
		}
		return strings.Join(names, ", ")
	}
	if s, ok := op.Attrs.Get("source_target_pairs").(ir.AxisShift); ok {
		return s.Axis.Name
	}
	return "?"
}
