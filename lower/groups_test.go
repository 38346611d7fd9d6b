package lower

import (
	"fmt"
	"slices"
	"testing"

	"ppc/ir"
)

// groupsByCoordinates is Groups by its definition: devices are together where
// all coordinates outside of axes are equal, in the order of those inside.
func groupsByCoordinates(mesh *ir.Mesh, axes []ir.AxisRef) [][]int {
	index := make(map[string]int)
	var groups [][]int
	for rank := range mesh.Size() {
		inside, n := 0, 1
		rest := rank
		for i := len(axes) - 1; i >= 0; i-- {
			c := rank / mesh.Stride(axes[i]) % mesh.RefSize(axes[i])
			inside += c * n
			n *= mesh.RefSize(axes[i])
			rest -= c * mesh.Stride(axes[i])
		}
		key := fmt.Sprint(rest)
		if _, ok := index[key]; !ok {
			index[key] = len(groups)
			groups = append(groups, make([]int, n))
		}
		groups[index[key]][inside] = mesh.Device(rank)
	}
	return groups
}

func TestGroups(t *testing.T) {
	grid := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "a", Size: 4}, {Name: "b", Size: 1}, {Name: "c", Size: 12}, {Name: "d", Size: 2}}}
	named := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "a", Size: 2}, {Name: "c", Size: 2}}, DeviceIDs: []int{3, 1, 0, 2}}
	slices3 := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "a", Size: 4}, {Name: "b", Size: 3}, {Name: "c", Size: 12}}, Attrs: ir.AttrsOf(ir.NamedAttr{Name: ir.DCN, Attr: ir.Ints([]int{2, 1, 3})})}
	for _, test := range []struct {
		mesh *ir.Mesh
		axes []ir.AxisRef
	}{
		{slices3, ir.Axs("a")},
		{slices3, ir.Axs("b", "c")},
		{slices3, ir.Axs("c", "a")},
		{slices3, []ir.AxisRef{{Name: "c", Pre: 3, Size: 2}, {Name: "a", Pre: 1, Size: 2}}},
		{slices3, []ir.AxisRef{{Name: "c", Pre: 1, Size: 2}}}, // cuts across
		{grid, nil},
		{grid, ir.Axs("a")},
		{grid, ir.Axs("b")},
		{grid, ir.Axs("d", "a")},
		{grid, ir.Axs("c", "b", "d")},
		{grid, []ir.AxisRef{{Name: "c", Pre: 2, Size: 3}}},
		{grid, []ir.AxisRef{{Name: "c", Pre: 6, Size: 2}, {Name: "a", Pre: 2, Size: 2}, {Name: "c", Pre: 1, Size: 2}}},
		{named, ir.Axs("a")},
		{named, ir.Axs("c", "a")},
	} {
		got, want := Groups(test.mesh, test.axes), groupsByCoordinates(test.mesh, test.axes)
		if test.mesh == slices3 {
			slices.SortFunc(want, func(a, b []int) int { return a[0] - b[0] })
			slices.SortFunc(got, func(a, b []int) int { return a[0] - b[0] })
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%v: got %v, want %v", test.axes, got, want)
		}
	}
}

func TestPairs(t *testing.T) {
	mesh := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "a", Size: 3}, {Name: "b", Size: 2}}}
	for _, test := range []struct {
		shift ir.AxisShift
		want  [][]int
	}{
		{ir.AxisShift{Axes: ir.Axs("a"), Shift: 1, Wrap: true}, [][]int{{0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 0}, {5, 1}}},
		{ir.AxisShift{Axes: ir.Axs("a"), Shift: -1, Wrap: true}, [][]int{{0, 4}, {1, 5}, {2, 0}, {3, 1}, {4, 2}, {5, 3}}},
		{ir.AxisShift{Axes: ir.Axs("a"), Shift: 1}, [][]int{{0, 2}, {1, 3}, {2, 4}, {3, 5}}},
		{ir.AxisShift{Axes: ir.Axs("b"), Shift: -1}, [][]int{{1, 0}, {3, 2}, {5, 4}}},
		{ir.AxisShift{Axes: ir.Axs("a", "b"), Shift: 1, Wrap: true}, [][]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}}},
		{ir.AxisShift{Axes: ir.Axs("b", "a"), Shift: 1}, [][]int{{0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 1}}},
		{ir.AxisShift{Axes: ir.Axs("a"), Reverse: true}, [][]int{{0, 4}, {1, 5}, {2, 2}, {3, 3}, {4, 0}, {5, 1}}},
		{ir.AxisShift{Axes: ir.Axs("a", "b"), Reverse: true}, [][]int{{0, 5}, {1, 4}, {2, 3}, {3, 2}, {4, 1}, {5, 0}}},
		{ir.AxisShift{Axes: ir.Axs("a"), Shift: 1, Reverse: true}, [][]int{{2, 4}, {3, 5}, {4, 2}, {5, 3}}},
	} {
		if got := Pairs(mesh, test.shift); !slices.EqualFunc(got, test.want, slices.Equal) {
			t.Errorf("%v: got %v, want %v", test.shift, got, test.want)
		}
		back := test.shift.Inverse()
		for _, pair := range test.want {
			if to, ok := mesh.Shifted(back, pair[1]); !ok || to != pair[0] {
				t.Errorf("%v: device %d gets from %d, its inverse %v brings that to %d", test.shift, pair[1], pair[0], back, to)
			}
		}
	}
}

func TestCheckAxes(t *testing.T) {
	mesh := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "a", Size: 12}}}
	for _, axes := range [][]ir.AxisRef{
		ir.Axs("b"), ir.Axs("a", "a"), {{Name: "a", Pre: 5, Size: 2}}, {{Name: "a", Pre: 0, Size: 2}}, {{Name: "a", Pre: 1, Size: 4}, {Name: "a", Pre: 6, Size: 2}},
	} {
		if CheckAxes(mesh, axes...) == nil {
			t.Errorf("%v: want an error", axes)
		}
	}
}
