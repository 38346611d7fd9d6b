package ir

import (
	"slices"
)

// DCN is the attribute of a mesh that spans slices, connected by a data-centre
// network: by axis, the size of its major sub-axis that runs over slices. Slices
// are numbered row-major over these sub-axes, and the devices of one slice
// row-major over the remaining sub-axes. So the number of a device has a digit for
// each sub-axis over slices, followed by one for each sub-axis within a slice.
const DCN = "pp.dcn"

// Slices is, by axis, the size of its major sub-axis that runs over slices; nil
// where all devices are in one slice.
func (m *Mesh) Slices() []int {
	if outer := m.Attrs.Ints(DCN); len(outer) == len(m.Axes) {
		return outer
	}
	return nil
}

// Device is the number of the device at a place in the grid.
func (m *Mesh) Device(place int) int {
	if m.DeviceIDs != nil {
		return m.DeviceIDs[place]
	}
	return renumber(place, m.digits(), m.Stride, m.DeviceStride)
}

// Place is the place of a device in the grid: the inverse of Device.
func (m *Mesh) Place(device int) int {
	if m.DeviceIDs != nil {
		return slices.Index(m.DeviceIDs, device)
	}
	return renumber(device, m.digits(), m.DeviceStride, m.Stride)
}

// renumber is n with its digits moved from the one strides to the other.
func renumber(n int, digits []AxisRef, from, to func(AxisRef) int) int {
	if digits == nil {
		return n
	}
	out := 0
	for _, d := range digits {
		out += n / from(d) % d.Size * to(d)
	}
	return out
}

// SameDevices reports whether m and o have the same axes, and the same devices
// at the same places.
func (m *Mesh) SameDevices(o *Mesh) bool {
	return slices.Equal(m.Axes, o.Axes) && slices.Equal(m.DeviceIDs, o.DeviceIDs) && slices.Equal(m.Slices(), o.Slices())
}

// digits are the sub-axes over slices and within them by which devices are
// numbered, axis by axis.
func (m *Mesh) digits() []AxisRef {
	var ds []AxisRef
	for i, n := range m.Slices() {
		a := m.Axes[i]
		ds = append(ds, AxisRef{a.Name, 1, n}, AxisRef{a.Name, n, a.Size / n})
	}
	return ds
}

// Digits are the sub-axes of r that are digits of the number of a device, major
// first: r itself, unless it runs both over slices and within them. There are none
// if r splits such a sub-axis, or if the mesh lists its devices.
func (m *Mesh) Digits(r AxisRef) []AxisRef {
	pre, size := m.Span(r)
	outer, i := m.Slices(), m.Axis(r.Name)
	switch {
	case m.DeviceIDs != nil:
		return nil
	case outer == nil || pre%outer[i] == 0 || outer[i]%(pre*size) == 0:
		return []AxisRef{r}
	case outer[i]%pre != 0 || (pre*size)%outer[i] != 0:
		return nil
	}
	over, in := m.SubAxis(r.Name, pre, outer[i]/pre), m.SubAxis(r.Name, outer[i], pre*size/outer[i])
	if m.DeviceStride(over) == m.DeviceStride(in)*m.RefSize(in) {
		return []AxisRef{r}
	}
	return []AxisRef{over, in}
}

// DeviceStride is the distance in number between neighbouring devices along a
// digit.
func (m *Mesh) DeviceStride(r AxisRef) int {
	outer := m.Slices()
	if outer == nil {
		return m.Stride(r)
	}
	pre, size := m.Span(r)
	stride := 1
	i := m.Axis(r.Name)
	if outer[i]%(pre*size) == 0 && (outer[i] > 1 || size == 1) { // over slices
		for k, a := range m.Axes {
			stride *= a.Size / outer[k]
		}
		for _, n := range outer[i+1:] {
			stride *= n
		}
		return stride * (outer[i] / (pre * size))
	}
	for k := i + 1; k < len(m.Axes); k++ {
		stride *= m.Axes[k].Size / outer[k]
	}
	return stride * (m.Axes[i].Size / (pre * size))
}

// SlicesAlong is the number of slices that devices which differ only along axes are
// in; an upper bound where a sub-axis splits the one over slices.
func (m *Mesh) SlicesAlong(axes []AxisRef) int {
	n, outer := 1, m.Slices()
	for _, r := range axes {
		if outer == nil {
			break
		}
		if pre, size := m.Span(r); pre < outer[m.Axis(r.Name)] {
			n *= min(size, (outer[m.Axis(r.Name)]+pre-1)/pre)
		}
	}
	return n
}
