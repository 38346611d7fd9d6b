package lower

import (
	"strings"

	"ppc/ir"
	"ppc/ir/mlir"
)

// ExpandGroups turns every [ir.MeshAxes], [ir.AxisShift] and [ir.AxisMove] of m
// into the list of devices that it stands for. Each such attribute costs as much as m has
// devices: it is for text that is read by others.
func ExpandGroups(m *ir.Module) error {
	var err error
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		f.Body.Walk(func(op *ir.Op) {
			for _, a := range op.Attrs {
				l, e := expand(m, a.Attr)
				if e != nil && err == nil {
					err = &ir.Error{Func: f, Op: op, Rule: &ir.Rule{Label: "groups", Msg: e.Error()}}
				}
				if l != nil {
					op.Attrs.Set(a.Name, l)
				}
			}
		})
	}
	return err
}

// expand returns the list that a stands for, or nil where it stands for itself.
func expand(m *ir.Module, a ir.Attr) (*ir.Literal, error) {
	switch v := a.(type) {
	case ir.MeshAxes:
		mesh, err := MeshOf(m, v.Mesh, v.Axes...)
		if err != nil {
			return nil, err
		}
		return Dense(Groups(mesh, v.Axes), mesh.RefsSize(v.Axes)), nil
	case ir.AxisShift:
		mesh, err := MeshOf(m, v.Mesh, v.Axis)
		if err != nil {
			return nil, err
		}
		return Dense(Pairs(mesh, v), 2), nil
	case ir.AxisMove:
		mesh, err := MeshOf(m, v.Mesh, v.From...)
		if err != nil {
			return nil, err
		}
		return Dense(MovePairs(mesh, v), 2), nil
	}
	return nil, nil
}

// Dense is rows of n numbers each as a literal.
func Dense(rows [][]int, n int) *ir.Literal {
	t := ir.Tensor(ir.I64, len(rows), n)
	data := make([]byte, 0, t.Bytes())
	for _, row := range rows {
		data = append(data, ir.Ints64(t, row...).Data...)
	}
	return &ir.Literal{Type: t, Data: data}
}

// StableHLO returns the text of m, a per-device or a global program, for
// readers that know StableHLO and Shardy only: devices are listed, nothing of
// the pp dialect is left, and the text says for how many partitions it is, for
// a global program is one for a partitioner. A per-device program has no
// meshes either. It does not change m.
func StableHLO(m *ir.Module) (string, error) {
	c := m.Clone()
	if err := ExpandGroups(c); err != nil {
		return "", err
	}
	c.Attrs = withoutPP(c.Attrs)
	if n := c.NumDevices(); n > 1 && !c.Attrs.Has("mhlo.num_partitions") {
		c.Attrs.Set("mhlo.num_partitions", ir.Int{Value: n, Type: ir.I32})
	}
	if c.Form.Has(ir.Local) {
		c.Meshes = nil
	}
	c.Form = 0
	for _, f := range c.Funcs {
		f.Attrs = withoutPP(f.Attrs)
		for i := range f.Results {
			f.Results[i].Attrs = withoutPP(f.Results[i].Attrs)
		}
		if f.Body == nil {
			continue
		}
		for _, v := range f.Params() {
			v.Attrs = withoutPP(v.Attrs)
		}
		f.Body.Walk(func(op *ir.Op) { op.Attrs = withoutPP(op.Attrs) })
	}
	return mlir.Print(c), nil
}

// withoutPP is as without the attributes of the pp dialect.
func withoutPP(as ir.Attrs) ir.Attrs {
	var kept ir.Attrs
	for _, a := range as {
		if !strings.HasPrefix(a.Name, "pp.") {
			kept = append(kept, a)
		}
	}
	return kept
}
