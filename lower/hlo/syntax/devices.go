package syntax

import (
	"ppc/ir"
)

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

// AxisRef reads 'x', or a part of an axis, 'x':(1)2.
func (s *Scanner) AxisRef(mesh *ir.Mesh) ir.AxisRef {
	r := ir.AxisRef{Name: s.Quoted()}
	if s.Err == nil && mesh.Axis(r.Name) < 0 {
		s.Fail("%q is no axis of the mesh", r.Name)
	}
	if s.Accept(":") {
		s.Expect("(")
		r.Pre = s.Integer()
		s.Expect(")")
		r.Size = s.Integer()
	}
	return r
}

// Mesh reads the axes of a mesh, and the order of its devices behind them: ['x'=2,'y'=4],
// device_ids=(…). A comma that something else follows is left.
func (s *Scanner) Mesh() *ir.Mesh {
	mesh := new(ir.Mesh)
	list("[", func(s *Scanner) {
		at := s.Pos
		name := s.Quoted()
		s.Expect("=")
		size := s.Integer()
		if mesh.Axis(name) >= 0 {
			s.FailAt(at, "there are two axes %s", name)
		}
		mesh.Axes = append(mesh.Axes, ir.MeshAxis{Name: name, Size: size})
		if s.Err == nil && (size < 1 || mesh.Size() > ir.MaxDevices) {
			s.FailAt(at, "a mesh of more than %d devices, or an empty one", ir.MaxDevices)
		}
	}, "]")(s)
	at := s.Pos
	if !s.Accept(",") {
		return mesh
	}
	if !s.Keyword("device_ids") {
		s.Pos = at
		return mesh
	}
	s.Expect("=")
	if mesh.DeviceIDs = s.deviceIDs(); s.Err == nil && !IsPermutation(mesh.DeviceIDs, mesh.Size()) {
		s.FailAt(at, "device_ids are not the %d devices of the mesh", mesh.Size())
	}
	return mesh
}

// deviceIDs reads (3,1,2,0), or ([4,2]T(1,0)): a grid, permuted.
func (s *Scanner) deviceIDs() []int {
	s.Expect("(")
	if s.Peek() != '[' {
		s.Pos--
		return s.Ints("(", ")")
	}
	dims, perm := s.IotaGrid()
	s.Expect(")")
	if n := ir.ProductUpTo(dims, ir.MaxDevices); s.Err == nil && n >= 1 && n <= ir.MaxDevices {
		return IotaLists([]int{1, n}, dims, perm)[0]
	}
	s.Fail("want device_ids=([dims]T(perm)) of at most %d devices", ir.MaxDevices)
	return nil
}

// IotaGrid reads [4] or [2,2]T(1,0): the sizes of a grid of devices, and the order of its
// dimensions, which a grid of one does not say.
func (s *Scanner) IotaGrid() (dims, perm []int) {
	at := s.Pos
	dims = s.Ints("[", "]")
	if len(dims) < 2 {
		if s.Err == nil && len(dims) == 0 {
			s.FailAt(at, "want the sizes of a grid of devices")
		}
		return dims, []int{0}
	}
	s.Expect("T")
	if perm = s.Ints("(", ")"); s.Err == nil && !IsPermutation(perm, len(dims)) {
		s.FailAt(at, "T(…) is no order of the %d dimensions of the grid", len(dims))
	}
	return dims, perm
}
