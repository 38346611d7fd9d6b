package mlir

import (
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/ir/mlir/names"
)

// A scope is the values that a region defines, by name. A name may stand for
// several results of one op.
type scope struct {
	values   map[string][]*ir.Value
	isolated bool // it does not see the scopes around it

	// Most names are numbers in ascending order: numbered[i] is the value, the only
	// one of its name, that is called first+i; nil if there is none.
	numbered []*ir.Value
	first    int
	strays   int // numbers among values, out of sequence or of several values
}

// maxGap bounds how many numbers may be left out of the sequence.
const maxGap = 64

// numeral is the number that name is, -1 where it is none or has leading zeros.
func numeral(name string) int {
	if len(name) > 9 || name == "" || name[0] == '0' && len(name) > 1 {
		return -1
	}
	n := 0
	for i := range len(name) {
		c := name[i]
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// number returns the values that are called n.
func (c *scope) number(n int) []*ir.Value {
	if i := n - c.first; i >= 0 && i < len(c.numbered) && c.numbered[i] != nil {
		return c.numbered[i : i+1 : i+1]
	}
	if c.strays == 0 {
		return nil
	}
	return c.values[strconv.Itoa(n)]
}

// set makes name, which is the number n, or n is negative, stand for vs.
func (c *scope) set(name string, n int, vs []*ir.Value) {
	if n >= 0 && len(vs) == 1 && c.setNumber(n, vs[0]) {
		return
	}
	if n >= 0 {
		c.strays++
	}
	if c.values == nil {
		c.values = make(map[string][]*ir.Value)
	}
	c.values[strings.Clone(name)] = vs
}

// setNumber makes n stand for v, if it follows the sequence.
func (c *scope) setNumber(n int, v *ir.Value) bool {
	if len(c.numbered) == 0 {
		c.first = n
	}
	i := n - c.first
	if i < 0 || i >= len(c.numbered)+maxGap {
		return false
	}
	for i >= len(c.numbered) {
		c.numbered = append(doubled(c.numbered), nil)
	}
	c.numbered[i] = v
	return true
}

// lookup returns the values called name, or nil.
func (s *parser) lookup(name string) []*ir.Value {
	n := numeral(name)
	if n >= 0 {
		return s.lookupNumber(n)
	}
	for i := len(s.scopes) - 1; i >= 0; i-- {
		if vs := s.scopes[i].values[name]; vs != nil {
			return vs
		}
		if s.scopes[i].isolated {
			return nil
		}
	}
	return nil
}

// lookupNumber returns the values that are called n, or nil.
func (s *parser) lookupNumber(n int) []*ir.Value {
	for i := len(s.scopes) - 1; i >= 0; i-- {
		if vs := s.scopes[i].number(n); vs != nil {
			return vs
		}
		if s.scopes[i].isolated {
			return nil
		}
	}
	return nil
}

// define makes name, at offset at, stand for vs.
func (s *parser) define(at int, name string, vs ...*ir.Value) {
	if s.lookup(name) != nil {
		s.report(at, "%%%s is defined twice", name)
		return
	}
	if s.draft != nil && len(s.scopes) > 1 && !s.isolated() {
		s.draft.inner = append(s.draft.inner, name)
	}
	s.scopes[len(s.scopes)-1].set(name, numeral(name), vs)
}

// operand reads a use of a value: %a or %a#1.
func (s *parser) operand() *ir.Value {
	if s.tok.kind != valueToken {
		s.wanted("a value")
		return new(ir.Value)
	}
	at := s.tok.start
	name := s.take()[1:]
	i := 0
	if s.tok.kind == hashToken && names.IsNumber(s.text()[1:]) && s.tok.start == at+1+len(name) {
		i = s.smallInt(s.take()[1:])
	}
	vs := s.lookup(name)
	if vs == nil && s.draft != nil && !s.isolated() {
		return s.outside(name, i)
	}
	if vs == nil {
		s.report(at, "%%%s is not defined", name)
		return new(ir.Value)
	}
	if i >= len(vs) {
		s.report(at, "%%%s#%d does not exist: %%%s stands for %s", name, i, name, counted(len(vs), "result"))
		return new(ir.Value)
	}
	return vs[i]
}

// operands reads uses of values, separated by commas, and appends them to vs.
func (s *parser) operands(vs []*ir.Value) []*ir.Value {
	for s.tok.kind == valueToken {
		vs = append(vs, s.operand())
		if !s.accept(",") {
			break
		}
	}
	return vs
}
