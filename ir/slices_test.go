package ir

import (
	"fmt"
	"slices"
	"testing"
)

// slicesMesh is a mesh whose axis i has size outer[i] over slices, and inner[i]
// within each.
func slicesMesh(inner, outer []int) *Mesh {
	m := &Mesh{Name: "mesh", Attrs: AttrsOf(NamedAttr{DCN, Ints(outer)})}
	for i, n := range inner {
		m.Axes = append(m.Axes, MeshAxis{fmt.Sprintf("a%d", i), n * outer[i]})
	}
	return m
}

// Devices that are numbered slice by slice are at the places that
// jax.experimental.mesh_utils.create_hybrid_device_mesh of the inner and the outer
// sizes gives them.
func TestSlices(t *testing.T) {
	for _, c := range []struct{ inner, outer, devices []int }{
		{[]int{2, 4}, []int{2, 1}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
		{[]int{2, 4}, []int{1, 2}, []int{0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15}},
		{[]int{4, 2, 1}, []int{1, 2, 2}, []int{0, 8, 1, 9, 16, 24, 17, 25, 2, 10, 3, 11, 18, 26, 19, 27, 4, 12, 5, 13, 20, 28, 21, 29, 6, 14, 7, 15, 22, 30, 23, 31}},
		{[]int{1, 2, 2}, []int{2, 1, 3}, []int{0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11, 12, 13, 16, 17, 20, 21, 14, 15, 18, 19, 22, 23}},
		{[]int{2, 3}, []int{3, 2}, []int{0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11, 12, 13, 14, 18, 19, 20, 15, 16, 17, 21, 22, 23, 24, 25, 26, 30, 31, 32, 27, 28, 29, 33, 34, 35}},
		{[]int{1, 4}, []int{2, 1}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
	} {
		m := slicesMesh(c.inner, c.outer)
		for place, want := range c.devices {
			if got := m.Device(place); got != want {
				t.Errorf("%v in slices %v: at place %d stands device %d, want %d", c.inner, c.outer, place, got, want)
			}
			if got := m.Place(want); got != place {
				t.Errorf("%v in slices %v: device %d stands at place %d, want %d", c.inner, c.outer, want, got, place)
			}
		}
	}
}

// A sub-axis that consists of digits of the device number does so at every device;
// one that splits the sub-axis over slices has no digits.
func TestDigits(t *testing.T) {
	m := slicesMesh([]int{2, 4, 1}, []int{2, 3, 2})
	for _, c := range []struct {
		r    AxisRef
		want []AxisRef
	}{
		{Ax("a0"), []AxisRef{{"a0", 1, 2}, {"a0", 2, 2}}},
		{AxisRef{"a1", 1, 3}, []AxisRef{{"a1", 1, 3}}},
		{AxisRef{"a1", 1, 6}, []AxisRef{{"a1", 1, 3}, {"a1", 3, 2}}},
		{AxisRef{"a1", 6, 2}, []AxisRef{{"a1", 6, 2}}},
		{AxisRef{"a1", 1, 2}, nil},
		{AxisRef{"a1", 2, 6}, nil},
		{Ax("a2"), []AxisRef{Ax("a2")}},
	} {
		digits := m.Digits(c.r)
		if !slices.Equal(digits, c.want) {
			t.Errorf("%s is %v, want %v", c.r, digits, c.want)
		}
		for device := range m.Size() {
			n := 0
			for _, d := range digits {
				n = n*m.RefSize(d) + device/m.DeviceStride(d)%m.RefSize(d)
			}
			if want := m.Coordinate(device, c.r); digits != nil && n != want {
				t.Errorf("%s: device %d has digits %d, stands at %d", c.r, device, n, want)
			}
		}
	}
	if one := slicesMesh([]int{4, 1}, []int{2, 1}); !slices.Equal(one.Digits(Ax("a0")), Axs("a0")) {
		t.Errorf("an axis of which both parts count one after the other is %v", one.Digits(Ax("a0")))
	}
}
