// Package syntax reads HLO text as a tree of computations and instructions, in
// which names, opcodes and attributes are text still, and the parts that have a
// grammar of their own: shapes, literals, lists, device lists, and the values of
// attributes, which [CheckValue] looks at. What they mean is said by the package
// lower/hlo.
package syntax

import (
	"fmt"
	"slices"
	"strings"
)

// The tree of HLO text, before names mean anything.
type (
	Module struct {
		Name         string
		Attrs        []Attr
		Computations []*Computation
		Entry        *Computation
		Places       *Places
	}
	Computation struct {
		Name   string
		At     int
		End    int    // behind it
		Result *Shape // of the signature; nil if there is none
		Instrs []*Instruction
		Root   *Instruction
	}
	Instruction struct {
		Name     string
		At       int    // of the name
		Shape    *Shape // nil if left out
		Opcode   string
		OpAt     int
		Operands []Operand
		Argument string // of parameter and constant
		ArgAt    int
		Attrs    []Attr
	}
	// An Operand is a name, with the elements of tuples to take, or an
	// instruction in place of the operand.
	Operand struct {
		Shape  *Shape
		Name   string
		At     int
		Path   []int
		Nested *Instruction
	}
	Attr struct {
		Name string
		At   int // of the value
		Text string
		Comp *Computation // where the value is a computation, written out
		List []Attr       // where the value is a list of computations: their names, or they themselves
	}
)

// AllParameters are the parameter instructions of c in the order of the text, those in the place
// of operands included.
func (c *Computation) AllParameters() []*Instruction {
	var out []*Instruction
	var walk func(in *Instruction)
	walk = func(in *Instruction) {
		for _, o := range in.Operands {
			if o.Nested != nil {
				walk(o.Nested)
			}
		}
		if in.Opcode == "parameter" {
			out = append(out, in)
		}
	}
	for _, in := range c.Instrs {
		walk(in)
	}
	return out
}

// Parameters are the parameter instructions of c in order of their numbers. Of two with one
// number the first counts.
func (c *Computation) Parameters() []*Instruction {
	byNumber := make(map[string]*Instruction)
	for _, in := range slices.Backward(c.AllParameters()) {
		byNumber[strings.TrimSpace(in.Argument)] = in
	}
	var out []*Instruction
	for i := range len(byNumber) {
		in := byNumber[fmt.Sprint(i)]
		if in == nil {
			break // reported where the number is read
		}
		out = append(out, in)
	}
	return out
}

// Module reads a module, or one instruction; the error is in s.Err. A module without a header
// begins with ENTRY, or with a computation that has no signature.
func (s *Scanner) Module() *Module {
	m := &Module{Name: "module"}
	switch {
	case s.Keyword("HloModule"):
		m.Name = s.name()
		m.Attrs = s.attrs()
		m.Places = s.sourcePlaces()
	case s.lookWord() != "ENTRY" && s.Peek() != 0 && !s.braceSecond():
		c := s.single()
		m.Computations, m.Entry = append(m.Computations, c), c
		return m
	}
	for s.Err == nil && (s.Peek() != 0 || m.Computations == nil) {
		at := s.Pos
		entry := s.Keyword("ENTRY")
		if s.Peek() == 0 && !entry {
			s.Fail("there is no computation")
			return m
		}
		c := s.computation()
		m.Computations = append(m.Computations, c)
		if !entry {
			continue
		}
		if m.Entry != nil {
			s.FailAt(at, "there are two ENTRY computations, %s and %s", m.Entry.Name, c.Name)
		}
		m.Entry = c
	}
	if s.Pos < s.End {
		s.Fail("found the byte 0")
	}
	if n := len(m.Computations); m.Entry == nil && n > 0 {
		m.Entry = m.Computations[n-1]
	}
	return m
}

// braceSecond reports whether a brace is the second thing that comes, behind a name.
func (s *Scanner) braceSecond() bool {
	pos := s.Pos
	defer func() { s.Pos = pos }()
	s.Accept("%")
	s.Pos += len(s.lookWord())
	return s.Peek() == '{'
}

// single reads a text of one instruction as a computation. Operands that nothing defines are
// its parameters, in order; they have a shape, and need no name.
func (s *Scanner) single() *Computation {
	c := &Computation{Name: "main", At: s.Pos}
	s.lone = true
	root := &Instruction{At: s.Pos, Name: "root"}
	if s.shapeNext() {
		s.rest(root)
	} else {
		s.Keyword("ROOT")
		root = s.instruction()
	}
	if s.Err == nil && s.Peek() != 0 {
		s.Fail("want the end behind one instruction, found %s: a module begins with HloModule", s.Next())
	}
	defined := make(map[string]bool)
	var walk func(in *Instruction)
	walk = func(in *Instruction) {
		for i := range in.Operands {
			o := &in.Operands[i]
			if o.Nested != nil {
				walk(o.Nested)
				continue
			}
			if o.Name == "" {
				o.Name = fmt.Sprintf("_%d", len(c.Instrs))
			}
			if o.Shape == nil && !defined[o.Name] {
				s.FailAt(o.At, "there is no instruction %s, and its shape is not written", o.Name)
			}
			if !defined[o.Name] {
				c.Instrs = append(c.Instrs, &Instruction{Name: o.Name, At: o.At, Shape: o.Shape, Opcode: "parameter", OpAt: o.At, Argument: fmt.Sprint(len(c.Instrs)), ArgAt: o.At})
			}
			defined[o.Name] = true
		}
	}
	walk(root)
	c.Instrs, c.Root, c.End = append(c.Instrs, root), root, s.Pos
	return c
}

// instructionNext reports whether an instruction comes next, and not a
// list of names: ROOT, or a name before =.
func (s *Scanner) instructionNext() bool {
	pos := s.Pos
	defer func() { s.Pos = pos }()
	s.Accept("%")
	w := s.lookWord()
	if w == "ROOT" {
		return true
	}
	s.Pos += len(w)
	return w != "" && s.Peek() == '='
}

func (s *Scanner) computation() *Computation {
	s.Space()
	c := &Computation{At: s.Pos}
	c.Name = s.name()
	if s.Accept("(") {
		for params := 0; !s.Accept(")") && s.Err == nil; params++ {
			if params > 0 {
				s.Expect(",")
			}
			s.name()
			s.Shape()
		}
		s.Expect("->")
		h := s.Shape()
		c.Result = &h
	}
	s.Expect("{")
	s.instructions(c)
	s.Expect("}")
	seen := make(map[string]bool)
	for _, a := range s.attrs() {
		switch {
		case a.Name != "backend_config" && a.Name != "execution_thread":
			s.FailAt(a.At, "%s is no attribute of a computation: want execution_thread or backend_config", a.Name)
		case seen[a.Name]:
			s.FailAt(a.At, "attribute %s is given twice", a.Name)
		}
		seen[a.Name] = true
		if err := CheckValue(a.Name, a.Text); err != nil {
			s.FailAt(a.At, "%s: %v", a.Name, err)
		}
	}
	c.End = s.Pos
	return c
}

// instructions reads what is in the braces of a computation.
func (s *Scanner) instructions(c *Computation) {
	for s.Err == nil && s.Peek() != '}' && s.Peek() != 0 {
		at := s.Pos
		root := s.Keyword("ROOT")
		in := s.instruction()
		c.Instrs = append(c.Instrs, in)
		if !root {
			continue
		}
		if c.Root != nil {
			s.FailAt(at, "there are two ROOT instructions, %s and %s", c.Root.Name, in.Name)
		}
		c.Root = in
	}
	if s.Err == nil && len(c.Instrs) == 0 {
		s.Fail("computation %s has no instruction", c.Name)
	}
	if c.Root == nil && len(c.Instrs) > 0 {
		c.Root = c.Instrs[len(c.Instrs)-1]
	}
}

func (s *Scanner) instruction() *Instruction {
	s.Space()
	in := &Instruction{At: s.Pos}
	in.Name = s.name()
	if isType(in.Name) || strings.HasPrefix(in.Name, "__") && !strings.HasPrefix(in.Name, "__xla_") {
		s.FailAt(in.At, "%s is no name of an instruction: types and names with two underscores in front are taken", in.Name)
	}
	s.Expect("=")
	s.rest(in)
	return in
}

// rest reads in behind its name.
func (s *Scanner) rest(in *Instruction) {
	if s.shapeNext() {
		h := s.Shape()
		in.Shape = &h
	}
	s.opcode(in, 0)
	in.Attrs = s.attrs()
}

// opcode reads the opcode and the operands of in.
func (s *Scanner) opcode(in *Instruction, depth int) {
	s.Space()
	in.OpAt = s.Pos
	in.Opcode = s.Word("an opcode")
	s.Space()
	if in.Opcode == "constant" || in.Opcode == "parameter" {
		in.ArgAt = s.Pos + 1
		if s.Peek() != '(' {
			s.Expect("(")
		}
		text := s.group()
		in.Argument = strings.TrimSuffix(strings.TrimPrefix(text, "("), ")")
		if in.Opcode == "parameter" {
			in.Argument = strings.TrimSpace(comments.ReplaceAllString(in.Argument, ""))
		}
		return
	}
	s.Expect("(")
	for !s.Accept(")") && s.Err == nil {
		if len(in.Operands) > 0 {
			s.Expect(",")
		}
		in.Operands = append(in.Operands, s.operand(depth))
	}
}

func (s *Scanner) operand(depth int) Operand {
	if depth > MaxDepth {
		s.Fail("operands are nested more than %d deep", MaxDepth)
	}
	var o Operand
	if s.shapeNext() {
		h := s.Shape()
		o.Shape = &h
	}
	s.Space()
	o.At = s.Pos
	if c := s.Peek(); s.lone && o.Shape != nil && (c == ',' || c == ')') {
		return o
	}
	o.Name = s.name()
	if s.Peek() == '(' && s.Err == nil {
		s.Pos = o.At
		o.Nested = &Instruction{At: o.At, Shape: o.Shape}
		s.opcode(o.Nested, depth+1)
		o.Nested.Name = o.Nested.Opcode + ".anon"
		return o
	}
	for s.Accept("#") {
		o.Path = append(o.Path, s.Integer())
	}
	return o
}

// attrs reads the attributes that follow, each after a comma.
func (s *Scanner) attrs() []Attr {
	var as []Attr
	for s.Err == nil && s.Accept(",") {
		a := Attr{Name: s.attrName()}
		s.Space()
		a.At = s.Pos
		switch {
		case strings.HasSuffix(a.Name, "_computations") && s.Peek() == '{':
			a.List = s.computations(a.Name)
			a.Text = s.Src[a.At:s.Pos]
		case ComputationAttrs[a.Name] && s.inlineComputation():
			a.Comp = s.inline(a.Name)
		case a.Name == "literal" && s.Peek() != '(': // a shape and numbers
			s.Shape()
			s.Value()
			a.Text = s.Src[a.At:s.Pos]
		default:
			a.Text = s.Value()
		}
		if a.Text == "" && a.Comp == nil {
			s.Fail("attribute %s has no value", a.Name)
		}
		as = append(as, a)
	}
	return as
}

// computations reads a list of computations, by name or written out.
func (s *Scanner) computations(name string) []Attr {
	var as []Attr
	list("{", func(s *Scanner) {
		a := Attr{Name: name, At: s.Pos}
		if s.inlineComputation() {
			a.Comp = s.inline(name)
		} else {
			a.Text = s.name()
		}
		as = append(as, a)
	}, "}")(s)
	return as
}

// inline reads a computation without a name.
func (s *Scanner) inline(name string) *Computation {
	if s.depth++; s.depth > MaxDepth {
		s.Fail("computations are nested more than %d deep", MaxDepth)
	}
	c := &Computation{Name: name, At: s.Pos}
	s.Expect("{")
	s.instructions(c)
	s.Expect("}")
	s.depth--
	return c
}

// inlineComputation reports whether the brace that comes next opens a
// computation and not a list of names.
func (s *Scanner) inlineComputation() bool {
	if s.Peek() != '{' {
		return false
	}
	s.Pos++
	defer func() { s.Pos-- }()
	return s.instructionNext()
}

// ComputationAttrs are the attributes whose values are computations.
var ComputationAttrs = map[string]bool{"to_apply": true, "calls": true, "condition": true, "body": true, "true_computation": true, "false_computation": true,
	"branch_computations": true, "called_computations": true, "select": true, "scatter": true}
