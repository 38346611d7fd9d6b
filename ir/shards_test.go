package ir

import (
	"bytes"
	"testing"
)

// FromShards undoes ShardOf for any sharding, whether axes divide the sizes or not.
func TestShards(t *testing.T) {
	mesh := &Mesh{Name: "mesh", Axes: []MeshAxis{{"x", 2}, {"y", 4}}}
	shuffled := &Mesh{Name: "mesh", Axes: mesh.Axes, DeviceIDs: []int{3, 1, 0, 2, 7, 6, 5, 4}}
	for _, typ := range []*Type{Tensor(I32, 8, 4, 2), Tensor(I32, 7, 3, 1), Tensor(I32, 1, 5, 3), Tensor(I32, 0, 4, 2)} {
		for _, m := range []*Mesh{mesh, shuffled} {
			roundTrip(t, typ, m)
		}
	}
}

func roundTrip(t *testing.T, typ *Type, m *Mesh) {
	l := &Literal{Type: typ}
	for i := range typ.NumElements() {
		l.Data = append(l.Data, byte(i), 1, 0, 0)
	}
	for _, s := range []*Sharding{
		nil,
		Replicated("mesh", 3),
		NewSharding("mesh", Axs("x"), nil, nil),
		NewSharding("mesh", Axs("y", "x"), nil, nil),
		NewSharding("mesh", nil, Axs("y"), Axs("x")),
		NewSharding("mesh", Axs("x"), Axs("y"), nil),
		NewSharding("mesh", nil, []AxisRef{{"y", 2, 2}}, []AxisRef{{"y", 1, 2}}),
	} {
		var parts []*Literal
		for d := range m.Size() {
			parts = append(parts, ShardOf(l, s, m, d))
		}
		if got := FromShards(m, s, typ, parts); !bytes.Equal(got.Data, l.Data) {
			t.Errorf("%s, %s: put together differently", typ, s)
		}
	}
}

// Device (i, j) of a 2x4 mesh holds the shard of its coordinates.
func TestShardOf(t *testing.T) {
	m := &Mesh{Name: "mesh", Axes: []MeshAxis{{"x", 2}, {"y", 4}}}
	l := Ints64(Tensor(I32, 8), 0, 1, 2, 3, 4, 5, 6, 7)
	for _, c := range []struct {
		s            *Sharding
		device, want int
	}{
		{NewSharding("mesh", Axs("x", "y")), 5, 5},
		{NewSharding("mesh", Axs("y", "x")), 5, 3},
		{NewSharding("mesh", Axs("x")), 5, 4},
		{NewSharding("mesh", []AxisRef{{"y", 1, 2}}), 6, 4},
		{NewSharding("mesh", []AxisRef{{"y", 2, 2}}), 6, 0},
	} {
		if got := ShardOf(l, c.s, m, c.device).Int(0); int(got) != c.want {
			t.Errorf("%s: device %d starts with %d, want %d", c.s, c.device, got, c.want)
		}
	}
}

// After a permute from [x, y] to [y, x], a device has the shard of the other order.
func TestTarget(t *testing.T) {
	m := &Mesh{Name: "mesh", Axes: []MeshAxis{{"x", 2}, {"y", 4}, {"z", 3}}}
	from, to := NewSharding("mesh", Axs("x", "y")), NewSharding("mesh", Axs("y", "x"))
	move := AxisMove{"mesh", Axs("x", "y"), Axs("y", "x")}
	for place := range m.Size() {
		target := m.Target(move, place)
		if have, want := from.ShardIndex(m, place, 0), to.ShardIndex(m, target, 0); have != want || place%3 != target%3 {
			t.Errorf("block %d of device %d goes to device %d, which wants block %d", have, place, target, want)
		}
		if back := m.Target(move.Inverse(), target); back != place {
			t.Errorf("device %d sends to %d, which has it from %d", place, target, back)
		}
	}
}

// The first device along unreduced axes holds the value of a sum, and FromShards
// reduces the shards.
func TestUnreducedShards(t *testing.T) {
	mesh := &Mesh{Name: "mesh", Axes: []MeshAxis{{"x", 2}, {"y", 2}}}
	for _, c := range []struct {
		by   string
		t    *Type
		want []string
	}{
		{"", Tensor(F32, 2), []string{"dense<1.000000e+00>", "dense<0.000000e+00>", "dense<2.000000e+00>", "dense<0.000000e+00>"}},
		{"max", Tensor(I32, 2), []string{"dense<1>", "dense<1>", "dense<2>", "dense<2>"}},
		{"", Tensor(C64, 2), []string{"dense<(1.000000e+00,0.000000e+00)>", "dense<(0.000000e+00,0.000000e+00)>", "dense<(2.000000e+00,0.000000e+00)>", "dense<(0.000000e+00,0.000000e+00)>"}},
	} {
		l := &Literal{Type: c.t, Data: make([]byte, c.t.Bytes())}
		for i := range 2 {
			c.t.Elem.Part().PutFloat(l.Data[i*c.t.Elem.Size():], float64(i+1))
		}
		s := NewSharding("mesh", Axs("x"))
		s.Unreduced, s.ReducedBy = Axs("y"), c.by
		var parts []*Literal
		for d := range 4 {
			parts = append(parts, ShardOf(l, s, mesh, d))
			if got := parts[d].Dense(); got != c.want[d] {
				t.Errorf("%s: device %d has %s, want %s", c.t, d, got, c.want[d])
			}
		}
		if got := FromShards(mesh, s, c.t, parts); got.Dense() != l.Dense() {
			t.Errorf("%s: joined %s, want %s", c.t, got.Dense(), l.Dense())
		}
	}
	s := NewSharding("mesh", nil)
	s.Unreduced = Axs("x", "y")
	var parts []*Literal
	for d := range 4 {
		parts = append(parts, Ints64(Tensor(UI8, 1), 60+d))
	}
	if got := FromShards(mesh, s, Tensor(UI8, 1), parts); got.Int(0) != 246 {
		t.Errorf("the sum of 60 to 63 is %d", got.Int(0))
	}
	s.ReducedBy = "min"
	if got := FromShards(mesh, s, Tensor(UI8, 1), parts); got.Int(0) != 60 {
		t.Errorf("the least of 60 to 63 is %d", got.Int(0))
	}
}
