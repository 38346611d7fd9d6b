package ir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Constraints and result types of collectives. The size of a group is known here
// only where the groups are a list; where they are axes of a mesh, the functions at
// the end of this file look up the mesh in the module.

// GroupSize is the size of the listed groups; 0 where they are axes, or where
// there is one group of every device.
func GroupSize(op *Op) int {
	if l := op.Literal("replica_groups"); l != nil && l.Type.NumElements() > 0 {
		return l.Type.Shape[1]
	}
	return 0
}

// A MeshAxis is one named axis of a mesh.
type MeshAxis struct {
	Name string
	Size int
}

// A Mesh is the devices seen as a grid: (i, j) of axes [a, b] is the place
// i*size(b) + j. The device there has that number, or DeviceIDs at that place
// where DeviceIDs is not nil, or, where the mesh goes over slices, the one that
// [DCN] says.
type Mesh struct {
	Name      string
	Axes      []MeshAxis
	DeviceIDs []int // nil: 0, 1, 2, ...
	Attrs     Attrs // carried through
	Origin    *Origin
}

// Size is the number of devices.
func (m *Mesh) Size() int {
	n := 1
	for _, a := range m.Axes {
		n *= a.Size
	}
	return n
}

// Axis returns the index of the axis called name, or -1.
func (m *Mesh) Axis(name string) int {
	return slices.IndexFunc(m.Axes, func(a MeshAxis) bool { return a.Name == name })
}

// AxisSize is the size of the axis called name; an axis that is not there has size 1.
func (m *Mesh) AxisSize(name string) int {
	if i := m.Axis(name); i >= 0 {
		return m.Axes[i].Size
	}
	return 1
}

// Stride is the distance in rank between neighbours along the axis r.
func (m *Mesh) Stride(r AxisRef) int {
	i := m.Axis(r.Name)
	n := 1
	for _, a := range m.Axes[i+1:] {
		n *= a.Size
	}
	if r.Size != 0 {
		n *= m.Axes[i].Size / (r.Pre * r.Size)
	}
	return n
}

// Target is the place that the device at a place sends to in the permute a; places
// are ranks in the grid of the mesh, not device numbers.
func (m *Mesh) Target(a AxisMove, place int) int {
	n := m.number(place, a.From)
	return m.placeAt(m.placeAt(place, a.From, 0), a.To, n)
}

// Shifted is the place that the device at a place sends to in the permute a; false
// where it has no target.
func (m *Mesh) Shifted(a AxisShift, place int) (int, bool) {
	n, i := m.RefsSize(a.Axes), m.number(place, a.Axes)
	if a.Reverse {
		i = n - 1 - i
	}
	i += a.Shift
	if a.Wrap {
		i = (i%n + n) % n
	}
	if i < 0 || i >= n {
		return 0, false
	}
	return m.placeAt(place, a.Axes, i), true
}

// number is the coordinates of a place along axes, major first, read as one
// number.
func (m *Mesh) number(place int, axes []AxisRef) int {
	n := 0
	for _, r := range axes {
		n = n*m.RefSize(r) + place/m.Stride(r)%m.RefSize(r)
	}
	return n
}

// placeAt is the place with the coordinates n along axes, and otherwise those
// of another place.
func (m *Mesh) placeAt(place int, axes []AxisRef, n int) int {
	for _, r := range slices.Backward(axes) {
		stride, size := m.Stride(r), m.RefSize(r)
		place += (n%size - place/stride%size) * stride
		n /= size
	}
	return place
}

// RefSize is the number of devices along the axis or sub-axis r.
func (m *Mesh) RefSize(r AxisRef) int {
	if r.Size != 0 {
		return r.Size
	}
	return m.AxisSize(r.Name)
}

// RefsSize is the product of RefSize.
func (m *Mesh) RefsSize(rs []AxisRef) int {
	n := 1
	for _, r := range rs {
		n *= m.RefSize(r)
	}
	return n
}

// An AxisRef names a mesh axis, which has Size 0 here, or the sub-axis
// "x":(Pre)Size of one, in Shardy's notation: Size devices, after a major sub-axis
// of Pre devices.
type AxisRef struct {
	Name      string
	Pre, Size int
}

// Ax refers to a full mesh axis.
func Ax(name string) AxisRef { return AxisRef{Name: name} }

// Axs refers to full mesh axes.
func Axs(names ...string) []AxisRef {
	rs := make([]AxisRef, len(names))
	for i, n := range names {
		rs[i] = Ax(n)
	}
	return rs
}

func (r AxisRef) String() string {
	if r.Size == 0 {
		return strconv.Quote(r.Name)
	}
	return fmt.Sprintf("%q:(%d)%d", r.Name, r.Pre, r.Size)
}

// Overlaps reports whether r and s share coordinates of devices, or whether the
// coordinate of a device along the one constrains that along the other: no
// factorisation of an axis of size 6 has both "x":(1)2 and "x":(3)2 as sub-axes.
func (r AxisRef) Overlaps(s AxisRef) bool {
	if r.Name == s.Name && r.Size > 0 && s.Size > 0 && r.Pre != s.Pre {
		return max(r.Pre, s.Pre)%r.below(s) != 0
	}
	return r.Name == s.Name
}

// below is the product of the pre-size and the size of r or s, whichever is major.
func (r AxisRef) below(s AxisRef) int {
	if r.Pre < s.Pre {
		return r.Pre * r.Size
	}
	return s.Pre * s.Size
}

// shares is Overlaps for sub-axes of one factorisation.
func (r AxisRef) shares(s AxisRef) bool {
	return r.Overlaps(s) && (r.Size == 0 || s.Size == 0 || r.below(s) > max(r.Pre, s.Pre))
}

// A DimSharding is the mesh axes, major first, along which one dimension is
// sharded.
type DimSharding struct {
	Axes     []AxisRef
	Open     bool    // propagation may add axes
	Priority int     // 0 is the highest and the default
	Rule     *Origin // of Axes: the place in the source that states them, with the dimension's name there; nil if not known
}

// A Sharding is the sharding of a tensor on a mesh: Shardy's, with its text form.
// The tensor is replicated along axes that appear nowhere.
type Sharding struct {
	Mesh       string // symbol
	Dims       []DimSharding
	Replicated []AxisRef // explicitly: propagation must not use them
	Unreduced  []AxisRef // each device along these axes has a term of the value, which is their sum
	ReducedBy  string    // of Unreduced: max or min if the value is not the sum but the maximum or minimum
}

func (*Sharding) attr() {}

// NewSharding returns the closed sharding with dims[i] the axes of dimension i.
func NewSharding(mesh string, dims ...[]AxisRef) *Sharding {
	s := &Sharding{Mesh: mesh, Dims: make([]DimSharding, len(dims))}
	for i, axes := range dims {
		s.Dims[i].Axes = axes
	}
	return s
}

// Replicated returns the closed sharding of the given rank that uses no axis.
func Replicated(mesh string, rank int) *Sharding {
	return &Sharding{Mesh: mesh, Dims: make([]DimSharding, rank)}
}

// Clone returns a copy that shares nothing with s; nil stays nil.
func (s *Sharding) Clone() *Sharding {
	if s == nil {
		return nil
	}
	c := &Sharding{Mesh: s.Mesh, Dims: slices.Clone(s.Dims), Replicated: slices.Clone(s.Replicated), Unreduced: slices.Clone(s.Unreduced), ReducedBy: s.ReducedBy}
	for i := range c.Dims {
		c.Dims[i].Axes = slices.Clone(c.Dims[i].Axes)
	}
	return c
}

// Equal reports whether s and t are the same sharding; the rules of the source that
// state them may differ. Two nils are equal.
func (s *Sharding) Equal(t *Sharding) bool {
	if s == nil || t == nil {
		return s == t
	}
	return s.Mesh == t.Mesh && slices.EqualFunc(s.Dims, t.Dims, func(a, b DimSharding) bool {
		return a.Open == b.Open && a.Priority == b.Priority && slices.Equal(a.Axes, b.Axes)
	}) && slices.Equal(s.Replicated, t.Replicated) && slices.Equal(s.Unreduced, t.Unreduced) && s.ReducedBy == t.ReducedBy
}

// SameLayout reports whether s and t put the same elements on the same
// devices: openness and priorities aside. A nil sharding uses no axis.
func (s *Sharding) SameLayout(t *Sharding) bool {
	return s.SameDims(t) && slices.Equal(s.unreduced(), t.unreduced()) && (len(s.unreduced()) == 0 || s.ReducedBy == t.ReducedBy)
}

// SameDims reports whether s and t shard the same dimensions along the same axes.
func (s *Sharding) SameDims(t *Sharding) bool {
	for i := range max(s.rank(), t.rank()) {
		if !slices.Equal(s.Axes(i), t.Axes(i)) {
			return false
		}
	}
	return true
}

func (s *Sharding) rank() int {
	if s == nil {
		return 0
	}
	return len(s.Dims)
}

func (s *Sharding) unreduced() []AxisRef {
	if s == nil {
		return nil
	}
	return s.Unreduced
}

// Axes are the mesh axes of dimension i; none where s is nil or has no such
// dimension.
func (s *Sharding) Axes(i int) []AxisRef {
	if i >= s.rank() {
		return nil
	}
	return s.Dims[i].Axes
}

// Uses reports whether some dimension is sharded along r or an axis that overlaps
// it.
func (s *Sharding) Uses(r AxisRef) bool {
	if s == nil {
		return false
	}
	for _, d := range s.Dims {
		for _, a := range d.Axes {
			if a.Overlaps(r) {
				return true
			}
		}
	}
	return false
}

// Clash is two sub-axes of one axis in s that no factorisation of the axis has both
// of; false where there are none.
func (s *Sharding) Clash() (a, b AxisRef, ok bool) {
	n := len(s.Replicated) + len(s.Unreduced)
	for i := range s.Dims {
		n += len(s.Dims[i].Axes)
	}
	if n < 2 {
		return AxisRef{}, AxisRef{}, false
	}
	rs := s.Refs()
	for i, b := range rs {
		if k := slices.IndexFunc(rs[:i], b.Overlaps); k >= 0 {
			return rs[k], b, true
		}
	}
	return AxisRef{}, AxisRef{}, false
}

// IsReplicated reports whether s shards no dimension and has no unreduced axes.
func (s *Sharding) IsReplicated() bool {
	if s == nil {
		return true
	}
	for _, d := range s.Dims {
		if len(d.Axes) > 0 {
			return false
		}
	}
	return len(s.Unreduced) == 0
}

// Without returns s with the named axes dropped from every dimension; nil
// stays nil.
func (s *Sharding) Without(names ...string) *Sharding {
	c := s.Clone()
	if c == nil {
		return nil
	}
	for i := range c.Dims {
		c.Dims[i].Axes = slices.DeleteFunc(c.Dims[i].Axes, func(r AxisRef) bool { return slices.Contains(names, r.Name) })
	}
	return c
}

// Prepend returns s for a tensor with a new leading dimension that is sharded along
// axes.
func (s *Sharding) Prepend(axes ...AxisRef) *Sharding {
	c := s.Clone()
	c.Dims = slices.Insert(c.Dims, 0, DimSharding{Axes: axes})
	return c
}

// Local is the per-device type of a tensor of type t with the sharding s. Axes must
// divide the sizes; verify.Verify checks that they do.
func (s *Sharding) Local(t *Type, m *Mesh) *Type {
	if s == nil {
		return t
	}
	shape := slices.Clone(t.Shape)
	for i := range shape {
		shape[i] /= m.RefsSize(s.Axes(i))
	}
	return t.WithShape(shape...)
}

// Global is the inverse of Local: the type of the global tensor whose shards have
// type t.
func (s *Sharding) Global(t *Type, m *Mesh) *Type {
	if s == nil {
		return t
	}
	shape := slices.Clone(t.Shape)
	for i := range shape {
		shape[i] *= m.RefsSize(s.Axes(i))
	}
	return t.WithShape(shape...)
}

// String is s in Shardy's spelling inside #sdy.sharding: <@mesh, [{"x"}, {}]>.
func (s *Sharding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "<%s, [", SymbolText(s.Mesh))
	for i, d := range s.Dims {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteByte('{')
		writeRefs(&b, d.Axes)
		if d.Open {
			if len(d.Axes) > 0 {
				b.WriteString(", ")
			}
			b.WriteByte('?')
		}
		b.WriteByte('}')
		if d.Priority > 0 {
			fmt.Fprintf(&b, "p%d", d.Priority)
		}
	}
	b.WriteByte(']')
	for _, part := range []struct {
		lead string
		refs []AxisRef
	}{{"replicated=", s.Replicated}, {"unreduced=" + s.ReducedBy, s.Unreduced}} {
		if len(part.refs) > 0 {
			fmt.Fprintf(&b, ", %s{", part.lead)
			writeRefs(&b, part.refs)
			b.WriteByte('}')
		}
	}
	b.WriteByte('>')
	return b.String()
}

func writeRefs(b *strings.Builder, rs []AxisRef) {
	for i, r := range rs {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(r.String())
	}
}

// GroupSizeOf is the size of op's groups, also where they are axes of a mesh;
// 0 where there is one group of every device.
func GroupSizeOf(m *Module, op *Op) int {
	if a, ok := op.Attrs.Get("replica_groups").(MeshAxes); ok {
		return m.Mesh(a.Mesh).RefsSize(a.Axes)
	}
	return GroupSize(op)
}
