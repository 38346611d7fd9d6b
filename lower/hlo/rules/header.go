package rules

import (
	"fmt"
	"strings"

	"ppc/ir"
	"ppc/lower/hlo"
	"ppc/lower/hlo/syntax"
)

// header checks what the header of the text says of the entry computation.
func (c *checker) header() {
	if c.main == nil {
		return
	}
	c.f = c.main
	if text := c.m.Attrs.Str("hlo.entry_computation_layout"); text != "" {
		c.entryLayout(text)
	}
	if text := c.m.Attrs.Str("hlo.input_output_alias"); text != "" {
		c.aliases(text)
	}
	if text := c.m.Attrs.Str("hlo.buffer_donor"); text != "" {
		c.donors(text)
	}
}

// entryLayout compares the shapes of parameters and result in the header with those of the
// entry computation.
func (c *checker) entryLayout(text string) {
	const rule = "entry_computation_layout"
	s := &syntax.Scanner{Src: text, End: len(text)}
	s.Expect("{")
	in := s.Shape()
	s.Expect("->")
	out := s.Shape()
	if s.Err != nil {
		return // the parser has read it
	}
	params := c.main.Params()
	if n := len(in.Type.Elems); n != len(params) {
		c.fail(nil, rule, "the entry computation has %s, entry_computation_layout has %d", ir.Counted(len(params), "parameter"), n)
		return
	}
	for i, v := range params {
		if !hlo.ShapesAgree(v.Type, in.Type.Elems[i]) {
			c.fail(nil, rule, "parameter %d of the entry computation is %s, entry_computation_layout says %s", i, hlo.BareShape(v.Type), hlo.BareShape(in.Type.Elems[i]))
		}
	}
	if t := hlo.Returns(c.main); !hlo.ShapesAgree(t, out.Type) {
		c.fail(nil, rule, "the entry computation returns %s, entry_computation_layout says %s", hlo.BareShape(t), hlo.BareShape(out.Type))
	}
}

// aliases checks the pairs of { {0}: (1, {}, may-alias) }: each part of a parameter is one, of
// the size of the result, and has one result.
func (c *checker) aliases(text string) {
	const rule = "input_output_alias"
	pairs, err := hlo.ParseAliases(text)
	if err != nil {
		return
	}
	result, seen := hlo.Returns(c.main), make(map[string]bool)
	for _, al := range pairs {
		t := c.donated(rule, al.Param, al.ParamIndex, seen)
		out := part(result, al.Output...)
		if t == nil || out == nil {
			continue
		}
		if !out.IsTensor() || !hlo.ShapesAgree(t, out) && (al.Must || !t.IsTensor() || !out.IsTensor() || t.Bytes() != out.Bytes()) {
			c.fail(nil, rule, "output %s is %s, the parameter that it takes the memory of %s", pathText(al.Output), hlo.BareShape(out), hlo.BareShape(t))
		}
	}
}

// donors checks the parts of parameters in { (2, {}) }.
func (c *checker) donors(text string) {
	s, seen := &syntax.Scanner{Src: text, End: len(text)}, make(map[string]bool)
	s.Expect("{")
	for s.Accept("(") {
		n := s.Integer()
		s.Expect(",")
		index := s.Index()
		s.Expect(")")
		if s.Accept(","); s.Err != nil {
			return
		}
		c.donated("buffer_donor", n, index, seen)
	}
}

// donated is the part of a parameter whose memory is given away; nil where there is none, which
// it reports, as it does where it has been seen before.
func (c *checker) donated(rule string, n int, index []int, seen map[string]bool) *ir.Type {
	params := c.main.Params()
	if n >= len(params) {
		c.fail(nil, rule, "%s names parameter %d of %d", rule, n, len(params))
		return nil
	}
	t := part(params[n].Type, index...)
	key := pathText(append([]int{n}, index...))
	switch {
	case t == nil || t.Kind == ir.TupleType:
		c.fail(nil, rule, "%s: parameter %d is %s, %s is no tensor of it", rule, n, hlo.BareShape(params[n].Type), pathText(index))
		return nil
	case seen[key]:
		c.fail(nil, rule, "%s names part %s of parameter %d twice", rule, pathText(index), n)
	}
	seen[key] = true
	return t
}

// pathText is where a part of a tuple is: {0,1}.
func pathText(path []int) string {
	return "{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(path), " ", ","), "[]") + "}"
}

// origin checks that the text of what an earlier module called a value is of one of type t.
func (c *checker) origin(op *ir.Op, text string, t *ir.Type) {
	if text != "" && !hlo.OriginFits(text, t) {
		c.fail(op, "origin", "its origin %s is of no value of type %s", text, hlo.BareShape(t))
	}
}
