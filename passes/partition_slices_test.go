package passes

import (
	"testing"

	"ppc/ir"
	"ppc/ir/facts"
)

// A program on a mesh over slices computes the same numbers partitioned as it
// does on one device, also where a part of an axis cuts across slices.
func TestPartitionSlices(t *testing.T) {
	mesh := func(x, y, slicesX, slicesY int) *ir.Mesh {
		return &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: x}, {Name: "y", Size: y}},
			Attrs: ir.AttrsOf(facts.Named(ir.DCN, ir.Ints([]int{slicesX, slicesY})))}
	}
	meshes := []*ir.Mesh{mesh(2, 4, 1, 2), mesh(4, 2, 2, 2), mesh(4, 4, 2, 2), mesh(2, 6, 1, 3)}
	for seed := range uint64(160) {
		m, args := randomProgram(seed, meshes[seed%4], 1+int(seed%12))
		if err := partitionedEqual(m, args); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	// The second part of x stands in three slices, of which the first part of x has one and a half.
	across := mesh(6, 2, 3, 1)
	x := &ir.Literal{Type: ir.Tensor(ir.F64, 4, 6)}
	f := ir.NewFunc("main")
	v := f.NewArg(f.Body, x.Type, "x")
	v.Sharding = ir.NewSharding("mesh", []ir.AxisRef{{Name: "x", Pre: 1, Size: 2}}, []ir.AxisRef{{Name: "x", Pre: 2, Size: 3}})
	b := ir.NewBuilder(f)
	b.Return(b.Constrain(b.Add(v, v), ir.NewSharding("mesh", []ir.AxisRef{{Name: "x", Pre: 1, Size: 2}, ir.Ax("y")}, nil)))
	var vs []float64
	for i := range 24 {
		vs = append(vs, float64(i))
	}
	x = ir.Floats64(x.Type, vs...)
	m := &ir.Module{Name: "across", Meshes: []*ir.Mesh{across}, Funcs: []*ir.Func{f}}
	if err := partitionedEqual(m, []*ir.Literal{x}); err != nil {
		t.Error(err)
	}
}
