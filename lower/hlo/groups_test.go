package hlo

import (
	"slices"
	"testing"

	"ppc/ir"
	"ppc/lower/hlo/syntax"
)

// The order of a mesh's devices is read behind its axes, as a list or as a grid.
func TestMeshGroups(t *testing.T) {
	for _, text := range []string{"mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'y'}", "mesh['x'=2,'y'=2], device_ids=(0,2,1,3) {'y'}"} {
		s := &syntax.Scanner{Src: text + ", dimensions={0}", End: len(text) + len(", dimensions={0}")}
		if got := s.Value(); got != text {
			t.Errorf("the value of %s is %s", text, got)
		}
		m := new(ir.Module)
		a, err := parseMeshGroups(m, text)
		if err != nil {
			t.Fatal(err)
		}
		g := a.(ir.MeshAxes)
		if mesh := m.Mesh(g.Mesh); !slices.Equal(mesh.DeviceIDs, []int{0, 2, 1, 3}) || !slices.Equal(g.Axes, ir.Axs("y")) {
			t.Errorf("%s: devices %v, axes %v", text, mesh.DeviceIDs, g.Axes)
		}
	}
}
