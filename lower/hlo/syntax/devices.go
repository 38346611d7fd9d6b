package syntax

import (
	"ppc/ir"
)

// MaxDevices bounds the devices that groups may name, so that a short text cannot
// denote a long list.
const MaxDevices = 1 << 20

// IotaLists counts through the devices of a grid with its dimensions permuted.
func IotaLists(shape, dims, perm []int) [][]int {
	strides := make([]int, len(dims))
	for d, stride := len(dims)-1, 1; d >= 0; d-- {
		strides[d] = stride
		stride *= dims[d]
	}
	lists := make([][]int, shape[0])
	for i := range shape[0] * shape[1] {
		rank, rest := 0, i
		for k := len(perm) - 1; k >= 0; k-- {
			rank += rest % dims[perm[k]] * strides[perm[k]]
			rest /= dims[perm[k]]
		}
		lists[i/shape[1]] = append(lists[i/shape[1]], rank)
	}
	return lists
}

// AxisRef reads 'x', 'x':(1)2 or the index of an axis.
func (s *Scanner) AxisRef(mesh *ir.Mesh) ir.AxisRef {
	var r ir.AxisRef
	if c := s.Peek(); c == '\'' || c == '"' {
		r.Name = s.Quoted()
		if mesh.Axis(r.Name) < 0 {
			s.Fail("%q is no axis of the mesh", r.Name)
		}
	} else if i := s.Integer(); i >= 0 && i < len(mesh.Axes) {
		r.Name = mesh.Axes[i].Name
	} else {
		s.Fail("axis %d is out of bounds for a mesh of %d axes", i, len(mesh.Axes))
	}
	if s.Accept(":") {
		s.Expect("(")
		r.Pre = s.Integer()
		s.Expect(")")
		r.Size = s.Integer()
	}
	return r
}

// DeviceIDs reads (3,1,2,0), or ([4,2]T(1,0)): a grid, permuted.
func (s *Scanner) DeviceIDs() []int {
	s.Expect("(")
	if s.Peek() != '[' {
		s.Pos--
		return s.Ints("(", ")")
	}
	dims := s.Ints("[", "]")
	s.Accept("T")
	perm := s.Ints("(", ")")
	s.Expect(")")
	n := ir.ProductUpTo(dims, MaxDevices)
	if s.Err != nil || n < 1 || n > MaxDevices || !IsPermutation(perm, len(dims)) {
		s.Fail("want device_ids=([dims]T(perm))")
		return nil
	}
	return IotaLists([]int{1, n}, dims, perm)[0]
}
