package syntax

import (
	"regexp"
	"slices"
	"strings"
)

// textOrJSON is a string, or a dictionary of JSON, of which only braces and strings count.
func textOrJSON(s *Scanner) {
	if s.Peek() != '{' {
		s.text()
		return
	}
	start, depth := s.Pos, 0
	for s.Err == nil && s.Pos < s.End {
		switch s.Src[s.Pos] {
		case '"':
			s.str()
			continue
		case '{':
			depth++
		case '}':
			depth--
		}
		if s.Pos++; depth == 0 {
			return
		}
	}
	s.FailAt(start, "%q is not closed", "{")
}

// frontend is {name="text",other={"key":1}}.
func frontend(s *Scanner) {
	list("{", func(s *Scanner) {
		s.attrName()
		textOrJSON(s)
	}, "}")(s)
}

// statistics is {visualizing_index=0,name=1.5}.
func statistics(s *Scanner) {
	first := true
	list("{", func(s *Scanner) {
		if s.attrName(); first {
			s.int64()
		} else {
			s.numberText()
		}
		first = false
	}, "}")(s)
}

// profileTypes is how many kinds of profile there are.
const profileTypes = 4

var metadataFields = map[string]value{
	"deduplicated_name": (*Scanner).text, "metadata_payload": (*Scanner).text, "op_name": (*Scanner).text, "op_type": (*Scanner).text, "scheduling_name": (*Scanner).text, "source_file": (*Scanner).text,
	"source_column": (*Scanner).int32, "source_end_column": (*Scanner).int32, "source_end_line": (*Scanner).int32, "source_line": (*Scanner).int32, "stack_frame_id": (*Scanner).int32,
	"profile_type": func(s *Scanner) {
		at := s.Pos
		for _, n := range s.Ints("{", "}") {
			if n < 0 || n >= profileTypes {
				s.FailAt(at, "%d is no type of profile: want 0 to %d", n, profileTypes-1)
			}
		}
	},
}

func metadata(s *Scanner) { fields(metadataFields)(s) }

// metadataList is one metadata, or several: {{…} {…}} has a comma between them.
func metadataList(s *Scanner) {
	if rest := strings.TrimSpace(strings.TrimPrefix(s.Src[s.Pos:s.End], "{")); s.Peek() == '{' && strings.HasPrefix(rest, "{") {
		list("{", metadata, "}")(s)
		return
	}
	metadata(s)
}

// index is the place of a value in nested tuples: {1,0}.
func index(s *Scanner) { trailing("{", (*Scanner).int64, "}")(s) }

// alias is {0}: (1, {}), which part of an operand a part of a result shares memory with.
func alias(s *Scanner) {
	index(s)
	s.Expect(":")
	s.Expect("(")
	s.int64()
	s.Expect(",")
	index(s)
	s.Expect(")")
}

// moduleAlias is an alias of a module, which says of what kind it is.
func moduleAlias(s *Scanner) {
	index(s)
	s.Expect(":")
	s.Expect("(")
	s.int64()
	s.Expect(",")
	if index(s); s.Accept(",") {
		among("may-alias", "must-alias")(s)
	}
	s.Expect(")")
}

func donor(s *Scanner) {
	s.Expect("(")
	s.int64()
	s.Expect(",")
	index(s)
	s.Expect(")")
}

func shape(s *Scanner) { s.Shape() }

func entryLayout(s *Scanner) {
	s.Expect("{")
	trailing("(", shape, ")")(s)
	s.Expect("->")
	shape(s)
	s.Expect("}")
}

// literal is a shape and the numbers of a constant of that shape, or a tuple of such.
func literal(s *Scanner) {
	if s.Peek() == '(' {
		trailing("(", literal, ")")(s)
		return
	}
	h := s.Shape()
	if s.Err != nil || !h.Type.IsTensor() || !h.Type.IsStatic() {
		s.Fail("want the shape of a constant")
		return
	}
	s.literalOf(h.Type)
}

func (s *Scanner) numberOrWord() {
	if s.lookWord() != "true" && s.lookWord() != "false" {
		s.numberText()
		return
	}
	s.boolean()
}

// sliceRanges is {[0:4], [1:5:2]}.
func sliceRanges(s *Scanner) {
	list("{", func(s *Scanner) {
		s.Expect("[")
		s.int64()
		s.Expect(":")
		if s.int64(); s.Accept(":") {
			s.int64()
		}
		s.Expect("]")
	}, "}")(s)
}

// matching skips the text that pattern finds; want says what that is.
func matching(pattern, want string) value {
	re := regexp.MustCompile("^" + pattern)
	return func(s *Scanner) {
		s.Space()
		w := re.FindString(s.Src[s.Pos:s.End])
		if w == "" {
			s.Fail("want %s, found %s", want, s.Next())
		}
		s.Pos += len(w)
	}
}

var (
	dims     = matching(`-?[0-9]+(?:x[0-9]+)*`, "numbers such as 2x3")
	pads     = matching(`-?[0-9]+_-?[0-9]+(?:x-?[0-9]+_-?[0-9]+)*`, "low_high of each dimension, such as 0_1x2_2")
	padEdges = matching(`-?[0-9]+_-?[0-9]+(?:_[0-9]+)?(?:x-?[0-9]+_-?[0-9]+(?:_[0-9]+)?)*`,
		"low_high or low_high_interior of each dimension, such as 0_1x2_2_1")
)

// window is {size=2x2 pad=0_0x1_1}: its parts have white space between them, and as many
// numbers as the size.
func window(s *Scanner) {
	counts := make(map[string]int)
	for s.Expect("{"); s.Err == nil && !s.Accept("}"); {
		at := s.Pos
		name, start := s.attrName(), s.Pos
		switch name {
		case "size", "stride", "lhs_dilate", "rhs_dilate", "rhs_reversal":
			dims(s)
		case "pad":
			pads(s)
		default:
			s.FailAt(at, "%s is no part of a window", name)
		}
		if counts[name] > 0 {
			s.FailAt(at, "%s is given twice", name)
		}
		counts[name] = strings.Count(s.Src[start:s.Pos], "x") + 1
	}
	for _, name := range []string{"stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"} {
		if n := counts[name]; n > 0 && n != counts["size"] {
			s.FailAt(0, "%s has %d dimensions, size has %d", name, n, counts["size"])
		}
	}
}

// sparsity is {lhs={sparsity=1x4 dimension=1 stride=1} rhs={…}}.
func sparsity(s *Scanner) {
	side := fields(map[string]value{"sparsity": dims, "dimension": (*Scanner).int64, "stride": (*Scanner).int64})
	fields(map[string]value{"lhs": side, "rhs": side})(s)
}

func domain(s *Scanner) {
	fields(map[string]value{"entry!": sharding, "exit!": sharding, "kind!": func(s *Scanner) {
		if at := s.Pos; s.Quoted() != "sharding" {
			s.FailAt(at, "want the kind \"sharding\"")
		}
	}})(s)
}

// precision is a word, in upper or lower case.
func precision(s *Scanner) {
	s.Space()
	at := s.Pos
	words := []string{"default", "high", "highest"}
	if w := s.Word("a precision"); s.Err == nil && !slices.Contains(words, strings.ToLower(w)) {
		s.FailAt(at, "want one of %s, found %s", strings.Join(words, ", "), w)
	}
}

// accuracy is {mode=highest} or {tolerance={rtol=0.5,ulps=2}}.
func accuracy(s *Scanner) {
	s.Expect("{")
	s.Space()
	at := s.Pos
	switch name := s.attrName(); name {
	case "mode":
		precision(s)
	case "tolerance":
		list("{", func(s *Scanner) {
			s.Space()
			if at, name := s.Pos, s.attrName(); !slices.Contains([]string{"atol", "rtol", "ulps"}, name) {
				s.FailAt(at, "%s is none of atol, rtol and ulps", name)
			}
			if at, text := s.Pos, s.numberText(); strings.HasPrefix(text, "-") && strings.Trim(text, "-0.") != "" {
				s.FailAt(at, "%s is negative", text)
			}
		}, "}")(s)
	default:
		s.FailAt(at, "%s is neither mode=default, mode=highest nor tolerance={…}", name)
	}
	s.Expect("}")
}
