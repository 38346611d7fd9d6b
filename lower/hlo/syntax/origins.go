package syntax

// original is the name of an instruction of an earlier module and the part of it: {"a" {0}}.
func original(s *Scanner) {
	if s.Expect("{"); s.Peek() == '"' || s.Peek() == '\'' {
		if s.str(); s.Peek() == '{' {
			index(s)
		}
	}
	s.Expect("}")
}

// origin is what the parts of a value were earlier: {{"a"}}, {({"a" {0}}, {"b"})}.
func origin(s *Scanner) {
	s.Expect("{")
	if s.Accept("[") {
		if !s.Keyword("synthetic_call") {
			s.Fail("want synthetic_call, found %s", s.Next())
		}
		s.Expect("]")
		s.Expect("}")
		return
	}
	var tree value
	depth := 0
	tree = func(s *Scanner) {
		if s.Peek() != '(' {
			original(s)
			return
		}
		if depth++; depth > MaxDepth {
			s.Fail("tuples are nested more than %d deep", MaxDepth)
			return
		}
		list("(", tree, ")")(s)
		depth--
	}
	if s.Peek() != '}' {
		tree(s)
	}
	s.Expect("}")
}

// recoveryTable is how values of an earlier module are got from those of this one:
// {{"a"}:{"b"},"module"}.
func recoveryTable(s *Scanner) {
	for s.Expect("{"); s.Err == nil && !s.Accept("}"); {
		original(s)
		s.Expect(":")
		if original(s); s.Accept(",") {
			at := s.Pos
			in := &Scanner{Src: s.Quoted()}
			in.End = len(in.Src)
			if in.Module(); in.Err != nil {
				s.FailAt(at, "the module that recovers a value: %s", in.Err.Msg)
			}
		}
	}
}

// debugAttributes is what is logged of values: {{"a"}:({log_mode=default,callback_id=1})}.
func debugAttributes(s *Scanner) {
	list("{", func(s *Scanner) {
		original(s)
		s.Expect(":")
		list("(", func(s *Scanner) {
			s.Expect("{")
			for ok := true; ok && s.Err == nil; ok = s.Accept(",") {
				at := s.Pos
				switch name := s.attrName(); name {
				case "log_mode":
					among("default")(s)
				case "callback_id":
					s.int64()
				case "partitioned":
					s.boolean()
				default:
					s.FailAt(at, "%s is none of log_mode, callback_id, partitioned", name)
				}
			}
			s.Expect("}")
		}, ")")(s)
	}, "}")(s)
}
