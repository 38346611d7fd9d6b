package layout

import (
	"slices"

	"ppc/ir"
)

// Shared has what many ops and values of a program have, each once: it is in the program
// from then on, and nobody may change it.
type Shared struct {
	Rules Rules

	mesh      *ir.Mesh
	layouts   map[string]Layout
	key       []byte
	shardings map[shardingKey]*ir.Sharding
	locals    map[localType]*ir.Type
	attrs     map[*ir.NamedAttr]string // as text, by the first
}

// NewShared returns a Shared for values on a mesh.
func NewShared(mesh *ir.Mesh) *Shared {
	return &Shared{
		mesh: mesh, layouts: make(map[string]Layout), shardings: make(map[shardingKey]*ir.Sharding),
		locals: make(map[localType]*ir.Type), attrs: make(map[*ir.NamedAttr]string),
	}
}

// A shardingKey is a layout that is shared, and axes along which a value is unreduced, to
// be combined by an op.
type shardingKey struct {
	at   *[]ir.AxisRef
	axes string
	by   ir.Kind
}

// A localType is the type of shards of a tensor, of a layout that is shared.
type localType struct {
	t  *ir.Type
	at *[]ir.AxisRef
}

// Of is l, in the memory that all layouts which equal it have.
func (s *Shared) Of(l Layout) Layout {
	if l == nil {
		return nil
	}
	s.key = l.append(s.key[:0])
	at, ok := s.layouts[string(s.key)]
	if !ok {
		at = l.Clone()
		s.layouts[string(s.key)] = at
	}
	return at
}

// First says which layout at, of those that are shared and have the same rank, is.
func (l Layout) First() *[]ir.AxisRef {
	if len(l) == 0 {
		return nil
	}
	return &l[0]
}

// Stated is what v states of a tensor of type t: axes of one device are left out. What
// is no tensor has none.
func (s *Shared) Stated(v *ir.Sharding, t *ir.Type) Layout {
	if !t.IsTensor() {
		return nil
	}
	var few [8][]ir.AxisRef
	at := append(Layout(few[:0]), make(Layout, t.Rank())...) // on the stack where the rank is small
	unit := func(r ir.AxisRef) bool { return s.mesh.RefSize(r) == 1 }
	for d := range at {
		if at[d] = v.Axes(d); slices.ContainsFunc(at[d], unit) {
			at[d] = slices.DeleteFunc(slices.Clone(at[d]), unit)
		}
	}
	return s.Of(at)
}

// Sharding is the sharding of what has the layout l and is unreduced along axes, to be
// combined by k.
func (s *Shared) Sharding(l Layout, unreduced []ir.AxisRef, k ir.Kind) *ir.Sharding {
	l = s.Of(l)
	key := shardingKey{at: l.First()}
	if len(unreduced) > 0 {
		unreduced = s.mesh.JoinAxes(nil, SortedAxes(s.mesh, unreduced))
		key.axes, key.by = Layout{unreduced}.String(), k
	}
	v := s.shardings[key]
	if v == nil {
		v = ir.NewSharding(s.mesh.Name, l...)
		if len(unreduced) > 0 {
			v.Unreduced, v.ReducedBy = unreduced, CombinerName(k)
		}
		s.shardings[key] = v
	}
	return v
}

// Local is the type of one device's shard of a tensor of type t.
func (s *Shared) Local(t *ir.Type, l Layout) *ir.Type {
	if !t.IsTensor() || l.IsReplicated() {
		return t
	}
	l = s.Of(l)
	key := localType{t, l.First()}
	local := s.locals[key]
	if local == nil {
		shape := make([]int, t.Rank())
		for d, n := range t.Shape {
			shape[d] = n / s.mesh.RefsSize(l[d])
		}
		local = t.WithShape(shape...)
		s.locals[key] = local
	}
	return local
}

// A Class is ops that are alike: of one kind, with the same attributes, types and layouts.
type Class struct {
	kind, by ir.Kind
	attrs    string
	operands int
	values   [4]classValue // operands, then results
}

// A classValue is an operand or a result of a Class.
type classValue struct {
	t     *ir.Type
	at    *[]ir.AxisRef // of its layout
	free  bool
	first int // of the operands that are the same value
}

// MaxClasses bounds the classes of which something is known at a time.
const MaxClasses = 1 << 12

// ClassOf is the class of op, whose values have layouts that are shared, and some of
// whose operands are free; false where it has too much to compare.
func (s *Shared) ClassOf(op *ir.Op, layoutOf func(*ir.Value) Layout, free func(*ir.Value) bool) (c Class, ok bool) {
	n := len(op.Operands)
	if n+len(op.Results) > len(c.values) || len(op.Regions) > 0 && op.Kind != ir.Reduce {
		return c, false
	}
	c.kind, c.operands, c.attrs = op.Kind, n, s.text(op.Attrs)
	if op.Kind == ir.Reduce {
		c.by = ir.CombinerOf(op.Regions[0])
	}
	for i, v := range op.Operands {
		c.values[i] = classValue{v.Type, layoutOf(v).First(), free(v), slices.Index(op.Operands, v)}
	}
	for i, v := range op.Results {
		c.values[n+i] = classValue{t: v.Type, at: layoutOf(v).First()}
	}
	return c, true
}

// text is attributes as text.
func (s *Shared) text(as ir.Attrs) string {
	if len(as) == 0 {
		return ""
	}
	text, ok := s.attrs[&as[0]]
	if !ok {
		if text = as.String(); len(s.attrs) == MaxClasses {
			clear(s.attrs)
		}
		s.attrs[&as[0]] = text
	}
	return text
}
