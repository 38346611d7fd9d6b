package ir

import (
	"fmt"
	"testing"
)

// Sizes and strides of axes and their parts follow from row-major ranks.
func TestMesh(t *testing.T) {
	m := &Mesh{Axes: []MeshAxis{{"a", 2}, {"b", 8}, {"c", 3}}}
	for _, c := range []struct {
		r            AxisRef
		size, stride int
	}{
		{Ax("a"), 2, 24}, {Ax("b"), 8, 3}, {Ax("c"), 3, 1},
		{AxisRef{"b", 1, 2}, 2, 12}, {AxisRef{"b", 2, 2}, 2, 6}, {AxisRef{"b", 4, 2}, 2, 3}, {AxisRef{"b", 2, 4}, 4, 3},
	} {
		if size, stride := m.RefSize(c.r), m.Stride(c.r); size != c.size || stride != c.stride {
			t.Errorf("%s has size %d and stride %d, want %d and %d", c.r, size, stride, c.size, c.stride)
		}
	}
	if m.Size() != 48 || m.AxisSize("none") != 1 || m.Axis("none") != -1 {
		t.Error("sizes are wrong")
	}
}

func TestOverlaps(t *testing.T) {
	part := func(pre, size int) AxisRef { return AxisRef{"a", pre, size} }
	for _, c := range []struct {
		r, s AxisRef
		want bool
	}{
		{Ax("a"), Ax("a"), true}, {Ax("a"), Ax("b"), false}, {Ax("a"), part(2, 2), true},
		{part(1, 2), part(2, 2), false}, {part(1, 4), part(2, 2), true}, {part(2, 4), part(1, 4), true}, {part(4, 2), part(1, 4), false},
	} {
		if c.r.Overlaps(c.s) != c.want || c.s.Overlaps(c.r) != c.want {
			t.Errorf("%s and %s: overlap is not %t", c.r, c.s, c.want)
		}
	}
}

// A sharding answers questions, also where it is nil, and what is made of it
// shares nothing with it.
func TestSharding(t *testing.T) {
	mesh := &Mesh{Name: "mesh", Axes: []MeshAxis{{"x", 2}, {"y", 4}}}
	s := NewSharding("mesh", Axs("x", "y"), nil)
	s.Dims[1].Open = true
	if got, want := s.String(), `<@mesh, [{"x", "y"}, {?}]>`; got != want {
		t.Errorf("prints %s, want %s", got, want)
	}
	global := Tensor(F32, 16, 3)
	if local := s.Local(global, mesh); !local.Equal(Tensor(F32, 2, 3)) || !s.Global(local, mesh).Equal(global) {
		t.Errorf("%s is %s on a device", global, local)
	}
	c := s.Clone()
	if !c.Equal(s) || !c.SameLayout(s) {
		t.Error("a clone is not equal")
	}
	c.Dims[0].Axes[0] = Ax("y")
	if c.Equal(s) || s.Axes(0)[0] != Ax("x") {
		t.Error("a clone shares its axes")
	}
	if w := s.Without("x"); !w.Equal(&Sharding{Mesh: "mesh", Dims: []DimSharding{{Axes: Axs("y")}, {Open: true}}}) || len(s.Axes(0)) != 2 {
		t.Errorf("without x is %s, of %s", w, s)
	}
	if p := s.Prepend(); len(p.Dims) != 3 || len(p.Axes(1)) != 2 || len(s.Dims) != 2 {
		t.Errorf("a new dimension gives %s, of %s", p, s)
	}
	if !s.Uses(AxisRef{"y", 2, 2}) || s.Uses(Ax("z")) || s.IsReplicated() || !Replicated("mesh", 2).IsReplicated() {
		t.Error("use of axes is wrong")
	}
	var none *Sharding
	if none.Uses(Ax("x")) || !none.IsReplicated() || none.Axes(3) != nil || none.Without("x") != nil || none.Clone() != nil || none.Local(global, mesh) != global {
		t.Error("a nil sharding does not replicate")
	}
	if !none.SameLayout(Replicated("mesh", 2)) || none.SameLayout(s) || s.SameLayout(none) || !none.Equal(nil) || none.Equal(s) {
		t.Error("a nil sharding is not compared as replicated")
	}
}

// A mesh has so many axes and no more: what is done with axes may take time in
// proportion to the square of their number.
func TestSoundMeshCountsAxes(t *testing.T) {
	mesh := &Mesh{Name: "m"}
	for i := range 256 {
		mesh.Axes = append(mesh.Axes, MeshAxis{Name: fmt.Sprint(i), Size: 1})
	}
	if r := SoundMesh(mesh); r != nil {
		t.Errorf("256 axes: %s", r.Msg)
	}
	mesh.Axes = append(mesh.Axes, MeshAxis{Name: "more", Size: 1})
	if r := SoundMesh(mesh); r == nil || r.Label != "mesh-5" {
		t.Errorf("257 axes: %v, want mesh-5", r)
	}
}

// Functions are found by their names, among few and among many, whatever has become
// of the list since they were looked for.
func TestFunc(t *testing.T) {
	for _, n := range []int{3, 300} {
		m := new(Module)
		for i := range n {
			m.Funcs = append(m.Funcs, NewFunc(fmt.Sprint("f", i)))
		}
		if f := m.Func("f2"); f != m.Funcs[2] {
			t.Errorf("of %d functions f2 is %v", n, f)
		}
		m.Funcs[1].Name = "g"
		m.Funcs = m.Funcs[1:]
		for i, f := range m.Funcs {
			if got := m.Func(f.Name); got != f {
				t.Errorf("of %d functions, number %d, %s, is %v", n, i, f.Name, got)
			}
		}
		for _, gone := range []string{"f0", "f1", "h"} {
			if f := m.Func(gone); f != nil {
				t.Errorf("of %d functions %s is %s", n, gone, f.Name)
			}
		}
	}
}
