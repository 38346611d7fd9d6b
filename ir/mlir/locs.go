package mlir

import "ppc/ir"

// optionalLoc reads loc(…) if it is there.
func (s *parser) optionalLoc() (*ir.Origin, bool) {
	if !s.at("loc") {
		return nil, false
	}
	return s.location(), true
}

// location reads loc(…). Of a chain of calls or of several places, the first
// is what is kept; an unknown place is nil.
func (s *parser) location() *ir.Origin {
	s.expect("loc")
	s.expect("(")
	o := s.locBody()
	s.expect(")")
	return o
}

// locBody reads what stands inside of loc(…).
func (s *parser) locBody() *ir.Origin {
	s.enter()
	defer s.leave()
	s.node(1)
	switch {
	case s.tok.kind == stringToken:
		return s.namedPlace()
	case s.tok.kind == hashToken:
		a := s.alias(s.text())
		if a == nil {
			s.fail(s.tok.start, "there is no alias %s", s.text())
			return nil
		}
		s.next()
		s.attrOf(a)
		return a.origin
	case s.accept("unknown"):
		return nil
	case s.accept("callsite"):
		s.expect("(")
		o := s.locBody()
		s.expect("at")
		s.locBody()
		s.expect(")")
		return o
	case s.accept("fused"):
		return s.fusedPlace()
	}
	s.wanted("a location")
	return nil
}

// namedPlace reads "file":10:4, with an optional end, or "name"(place).
func (s *parser) namedPlace() *ir.Origin {
	text := unquote(s.take())
	if !s.accept(":") {
		var o ir.Origin
		if s.accept("(") {
			if inner := s.locBody(); inner != nil {
				o = *inner
			}
			s.expect(")")
		}
		said := o.Said()
		said.Name = text
		return o.Saying(said)
	}
	o := &ir.Origin{Pos: ir.Pos{File: text, Line: s.integer()}}
	s.expect(":")
	o.Pos.Col = s.integer()
	if s.accept("to") {
		if !s.at(":") {
			s.integer()
		}
		s.expect(":")
		s.integer()
	}
	if o.Pos.Line <= 0 {
		return nil
	}
	return o
}

// fusedPlace reads fused<metadata>[place, …]. The metadata may say the layer
// and the pass.
func (s *parser) fusedPlace() *ir.Origin {
	var meta ir.Dict
	if s.accept("<") {
		meta, _ = s.attr().(ir.Dict)
		s.expect(">")
	}
	var first *ir.Origin
	s.list("[", "]", func() {
		if o := s.locBody(); first == nil {
			first = o
		}
	})
	layer, pass := ir.Attrs(meta).Str("layer"), ir.Attrs(meta).Str("pass")
	if layer == "" && pass == "" {
		return first
	}
	var o ir.Origin
	if first != nil {
		o = *first
	}
	return o.Saying(ir.Said{Name: o.Name(), Layer: layer, Pass: pass})
}
