package hlo

import "strings"

// The tree of HLO text, before names mean anything.
type (
	moduleText struct {
		name         string
		attrs        []attrText
		computations []*computationText
		entry        *computationText
		places       *sourcePlaces
	}
	computationText struct {
		name   string
		at     int
		params []paramText // of the signature
		result *shape      // of the signature; nil if there is none
		instrs []*instrText
		root   *instrText
	}
	paramText struct {
		name  string
		shape shape
	}
	instrText struct {
		name     string
		at       int    // of the name
		shape    *shape // nil if left out
		opcode   string
		opAt     int
		operands []operandText
		argument string // of parameter and constant
		argAt    int
		attrs    []attrText
	}
	// An operandText is a name, with the elements of tuples to take, or an
	// instruction in place of the operand.
	operandText struct {
		shape  *shape
		name   string
		at     int
		path   []int
		nested *instrText
	}
	attrText struct {
		name string
		at   int // of the value
		text string
		comp *computationText // where the value is a computation, written out
	}
)

func (s *scanner) module() *moduleText {
	m := &moduleText{name: "module"}
	if s.keyword("HloModule") {
		m.name = s.name()
		s.accept(":") // in older texts
		m.attrs = s.attrs()
		m.places = s.sourcePlaces()
	}
	for s.peek() != 0 && s.err == nil {
		if s.instructionNext() {
			c := &computationText{name: "main", at: s.pos}
			s.instructions(c)
			m.computations = append(m.computations, c)
			continue
		}
		at := s.pos
		entry := s.keyword("ENTRY")
		c := s.computation()
		m.computations = append(m.computations, c)
		if !entry {
			continue
		}
		if m.entry != nil {
			s.failAt(at, "there are two ENTRY computations, %s and %s", m.entry.name, c.name)
		}
		m.entry = c
	}
	if n := len(m.computations); m.entry == nil && n > 0 {
		m.entry = m.computations[n-1]
	}
	if m.entry == nil {
		s.fail("there is no computation")
	}
	return m
}

// instructionNext reports whether an instruction comes next, and not a
// computation: ROOT, or a name before =.
func (s *scanner) instructionNext() bool {
	pos := s.pos
	defer func() { s.pos = pos }()
	s.accept("%")
	w := s.lookWord()
	if w == "ROOT" {
		return true
	}
	s.pos += len(w)
	return w != "" && s.peek() == '='
}

func (s *scanner) computation() *computationText {
	s.space()
	c := &computationText{at: s.pos}
	if s.peek() != '{' {
		c.name = s.name()
	}
	if s.accept("(") {
		for !s.accept(")") && s.err == nil {
			if len(c.params) > 0 {
				s.expect(",")
			}
			name := s.name()
			s.expect(":")
			c.params = append(c.params, paramText{name, s.shape()})
		}
	}
	if s.accept("->") {
		h := s.shape()
		c.result = &h
	}
	s.expect("{")
	s.instructions(c)
	s.expect("}")
	if s.accept(",") { // execution_thread="..."
		s.word("an attribute")
		s.expect("=")
		s.value()
	}
	return c
}

// instructions reads what is in the braces of a computation.
func (s *scanner) instructions(c *computationText) {
	for s.err == nil && s.peek() != '}' && s.peek() != 0 {
		at := s.pos
		root := s.keyword("ROOT")
		in := s.instruction()
		c.instrs = append(c.instrs, in)
		if !root {
			continue
		}
		if c.root != nil {
			s.failAt(at, "there are two ROOT instructions, %s and %s", c.root.name, in.name)
		}
		c.root = in
	}
	if s.err == nil && len(c.instrs) == 0 {
		s.fail("computation %s has no instruction", c.name)
	}
	if c.root == nil && len(c.instrs) > 0 {
		c.root = c.instrs[len(c.instrs)-1]
	}
}

func (s *scanner) instruction() *instrText {
	s.space()
	in := &instrText{at: s.pos}
	in.name = s.name()
	s.expect("=")
	if s.shapeNext() {
		h := s.shape()
		in.shape = &h
	}
	s.opcode(in, 0)
	in.attrs = s.attrs()
	return in
}

// opcode reads the opcode and the operands of in.
func (s *scanner) opcode(in *instrText, depth int) {
	s.space()
	in.opAt = s.pos
	in.opcode = s.word("an opcode")
	s.space()
	if in.opcode == "constant" || in.opcode == "parameter" {
		in.argAt = s.pos + 1
		if s.peek() != '(' {
			s.expect("(")
		}
		text := s.group()
		in.argument = strings.TrimSuffix(strings.TrimPrefix(text, "("), ")")
		return
	}
	s.expect("(")
	for !s.accept(")") && s.err == nil {
		if len(in.operands) > 0 {
			s.expect(",")
		}
		in.operands = append(in.operands, s.operand(depth))
	}
}

func (s *scanner) operand(depth int) operandText {
	if depth > maxDepth {
		s.fail("operands are nested more than %d deep", maxDepth)
	}
	var o operandText
	if s.shapeNext() {
		h := s.shape()
		o.shape = &h
	}
	s.space()
	o.at = s.pos
	o.name = s.name()
	if s.peek() == '(' && s.err == nil {
		s.pos = o.at
		o.nested = &instrText{at: o.at, shape: o.shape}
		s.opcode(o.nested, depth+1)
		o.nested.name = o.nested.opcode + ".anon"
		return o
	}
	for s.accept("#") {
		o.path = append(o.path, s.integer())
	}
	return o
}

// attrs reads the attributes that follow, each after a comma.
func (s *scanner) attrs() []attrText {
	var as []attrText
	for s.err == nil && s.accept(",") {
		a := attrText{name: s.word("an attribute")}
		s.expect("=")
		s.space()
		a.at = s.pos
		switch {
		case computationAttrs[a.name] && s.inlineComputation():
			a.comp = s.inline(a.name)
		case a.name == "literal" && s.peek() != '(': // a shape and numbers
			s.shape()
			s.value()
			a.text = s.src[a.at:s.pos]
		default:
			a.text = s.value()
		}
		if a.text == "" && a.comp == nil {
			s.fail("attribute %s has no value", a.name)
		}
		as = append(as, a)
	}
	return as
}

// inline reads a computation without a name.
func (s *scanner) inline(name string) *computationText {
	if s.depth++; s.depth > maxDepth {
		s.fail("computations are nested more than %d deep", maxDepth)
	}
	c := &computationText{name: name, at: s.pos}
	s.expect("{")
	s.instructions(c)
	s.expect("}")
	s.depth--
	return c
}

// inlineComputation reports whether the brace that comes next opens a
// computation and not a list of names.
func (s *scanner) inlineComputation() bool {
	if s.peek() != '{' {
		return false
	}
	s.pos++
	defer func() { s.pos-- }()
	return s.instructionNext()
}

// computationAttrs are the attributes whose values are computations.
var computationAttrs = map[string]bool{"to_apply": true, "calls": true, "condition": true, "body": true, "true_computation": true, "false_computation": true,
	"branch_computations": true, "called_computations": true, "select": true, "scatter": true}
