package syntax

import (
	"slices"

	"ppc/ir"
)

// sharding is {replicated}, {devices=[2,1]<=[2]}, {mesh['x'=2], [{'x'}]}, or one for each part
// of a tuple: {{replicated}, {manual}}.
func sharding(s *Scanner) {
	s.Expect("{")
	if c := s.Peek(); c == '{' || c == '}' {
		if c == '{' {
			for ok := true; ok && s.Err == nil; ok = s.Accept(",") {
				s.Expect("{")
				oneSharding(s)
			}
		}
		s.Expect("}")
		return
	}
	oneSharding(s)
}

// oneSharding reads a sharding behind its brace.
func oneSharding(s *Scanner) {
	switch w := s.lookWord(); w {
	case "mesh", "single_device", "maximal_mesh":
		s.Keyword(w)
		named(s, w == "mesh")
	default:
		tiled(s)
	}
}

// A tiling says what a sharding without a mesh is made of.
type tiling struct {
	said    map[string]bool
	dims    []int // of the grid of parts; nil if there is none
	devices int   // listed
	iota    bool
}

// tiled reads a sharding without a mesh.
func tiled(s *Scanner) {
	start := s.Pos
	t := tiling{said: make(map[string]bool)}
	for s.Err == nil && !s.Accept("}") {
		t.word(s)
	}
	for _, w := range shardingWords[:5] {
		switch {
		case !t.said[w]:
			continue
		case w == "maximal" && t.devices != 1:
			s.FailAt(start, "maximal has %d devices, want 1", t.devices)
		case w != "maximal" && t.devices > 0:
			s.FailAt(start, "%s has no devices of its own, found %d", w, t.devices)
		}
		return
	}
	n := ir.ProductUpTo(t.dims, ir.MaxDevices)
	switch {
	case t.dims == nil:
		s.FailAt(start, "says nothing of a sharding: want replicated, maximal, manual, unknown, unreduced or devices=[…]")
	case t.said["last_tile_dim_replicate"] && t.said["last_tile_dims"]:
		s.FailAt(start, "last_tile_dim_replicate and last_tile_dims exclude one another")
	case t.iota && t.said["device"]:
		s.FailAt(start, "device= and devices= exclude one another")
	case t.iota:
	case t.devices <= 1:
		s.FailAt(start, "%d devices: want more than one, or maximal", t.devices)
	case n != t.devices:
		s.FailAt(start, "%d devices are listed for %d parts", t.devices, max(n, 0))
	}
}

// shardingWords are the words of a sharding without a mesh: those that are all of it, the
// others that stand alone, those before a number, and those before =.
var shardingWords = []string{"replicated", "maximal", "manual", "unknown", "unreduced", "last_tile_dim_replicate", "shard_as", "shard_like", "device", "devices", "last_tile_dims", "metadata"}

// word reads one part of a sharding without a mesh.
func (t *tiling) word(s *Scanner) {
	at := s.Pos
	w := s.Word("a part of a sharding")
	t.said[w] = true
	switch i := slices.Index(shardingWords, w); {
	case i < 0 && s.Err == nil:
		s.FailAt(at, "%s says nothing of a sharding%s", w, Hint(w, shardingWords))
	case i < 6:
		return
	case i < 8:
		s.int64()
		return
	}
	if s.Err == nil && (s.Pos >= s.End || s.Src[s.Pos] != '=') {
		s.Fail("want \"=\" right behind %s, found %s", w, s.Next())
	}
	s.Expect("=")
	switch w {
	case "device":
		s.int64()
		t.devices = 1
	case "devices":
		t.assignment(s)
	case "metadata":
		s.Space()
		metadataList(s)
	case "last_tile_dims":
		list("{", among("replicated", "maximal", "manual", "unreduced"), "}")(s)
	}
}

// assignment reads [2,1]0,1 and [2,2]<=[4], [2,2]<=[2,2]T(1,0).
func (t *tiling) assignment(s *Scanner) {
	at := s.Pos
	t.dims = s.Ints("[", "]")
	if s.Err == nil && len(t.dims) == 0 {
		s.FailAt(at, "want the numbers of parts along each dimension")
	}
	if s.Accept("<=") {
		t.iota = true
		grid, _ := s.IotaGrid()
		if n, m := ir.ProductUpTo(t.dims, ir.MaxDevices), ir.ProductUpTo(grid, ir.MaxDevices); s.Err == nil && n != m {
			s.FailAt(at, "%d devices for %d parts", m, n)
		}
		return
	}
	for t.devices = 1; ; t.devices++ {
		if s.int64(); !s.Accept(",") {
			return
		}
	}
}

// named reads a sharding over a mesh behind the word mesh, or on one device behind
// single_device, which XLA once spells maximal_mesh.
func named(s *Scanner, several bool) {
	meta := func() {
		if s.Accept(",") {
			if at := s.Pos; s.attrName() != "metadata" {
				s.FailAt(at, "want metadata=")
			}
			s.Space()
			metadataList(s)
		}
	}
	if !several {
		s.Expect("[")
		if at := s.Pos; s.attrName() != "device_id" {
			s.FailAt(at, "want device_id=")
		}
		s.int64()
		s.Expect("]")
		meta()
		s.Expect("}")
		return
	}
	mesh := s.Mesh()
	s.Accept(",")
	if slices.ContainsFunc([]string{"replicated", "unreduced", "manual"}, s.Keyword) {
		meta()
		s.Expect("}")
		return
	}
	var used []ir.AxisRef
	axis := func(s *Scanner) { used = append(used, s.AxisRef(mesh)) }
	list("[", func(s *Scanner) {
		open := false
		list("{", func(s *Scanner) {
			switch {
			case open:
				s.Fail("an axis comes after ?")
			case s.Accept("?"):
				open = true
			default:
				axis(s)
			}
		}, "}")(s)
	}, "]")(s)
	for s.Err == nil && !s.Accept("}") {
		s.Expect(",")
		at := s.Pos
		switch name := s.attrName(); name {
		case "replicated", "unreduced", "manual":
			list("{", axis, "}")(s)
		case "metadata":
			s.Space()
			metadataList(s)
		default:
			s.FailAt(at, "%s is none of replicated, unreduced, manual, metadata", name)
		}
	}
	s.disjoint(mesh, used)
}

// disjoint checks that no axis is used twice, as a whole or in part, and that parts divide
// their axes.
func (s *Scanner) disjoint(mesh *ir.Mesh, used []ir.AxisRef) {
	for i, r := range used {
		n := mesh.AxisSize(r.Name)
		if r.Size != 0 && (r.Pre < 1 || r.Size < 2 || n%(r.Pre*r.Size) != 0 || r.Size == n) {
			s.Fail("'%s':(%d)%d is no part of an axis of %d", r.Name, r.Pre, r.Size, n)
		}
		for _, o := range used[:i] {
			if o.Name != r.Name {
				continue
			}
			if r.Size == 0 || o.Size == 0 || r.Pre < o.Pre*o.Size && o.Pre < r.Pre*r.Size {
				s.Fail("the axis '%s' is used twice", r.Name)
			}
		}
	}
}
