package hlo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
)

// A computation is one HLO computation while it is printed: an instruction a line.
// The computations that it calls are printed at the call, and precede it.
type computation struct {
	*printer
	names  *namer // of instructions
	plain  bool   // ignores the names of values: equal regions have equal text
	uses   []int  // by ID: how often a value of the function is an operand
	values map[ir.ID]instruction
	params []string // as the signature has them
	lines  []string
	result instruction // the root

	layouts string // of the next instruction, see layoutText
}

// An instruction is one line of a computation.
type instruction struct {
	name    string
	typ     *ir.Type
	layouts string
	line    int
}

func (p *printer) computation(uses []int) *computation {
	return &computation{printer: p, names: newNamer(), uses: uses, values: make(map[ir.ID]instruction)}
}

// text is the computation without its name: signature and body.
func (c *computation) text() string {
	if c.err != nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, " (%s) -> %s {\n", strings.Join(c.params, ", "), BareShape(c.result.typ))
	for i, line := range c.lines {
		b.WriteString("  ")
		if i == c.result.line {
			b.WriteString("ROOT ")
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	b.WriteString("}\n")
	return b.String()
}

// emit appends an instruction: %want = shape opcode(operands)attrs.
func (c *computation) emit(want string, t *ir.Type, opcode string, operands []instruction, attrs string) instruction {
	args := make([]string, len(operands))
	for i, o := range operands {
		args[i] = "%" + o.name
	}
	return c.line(want, t, opcode+"("+strings.Join(args, ", ")+")"+attrs)
}

func (c *computation) line(want string, t *ir.Type, rest string) instruction {
	in := instruction{c.names.unique(want), t, c.layouts, len(c.lines)}
	c.lines = append(c.lines, "%"+in.name+" = "+layoutText(t, c.layouts)+" "+rest)
	c.layouts = ""
	return in
}

// want is the name that the instruction of v should have: the value's own, or
// otherwise.
func (c *computation) want(v *ir.Value, otherwise string) string {
	if v.Name == "" || c.plain {
		return otherwise
	}
	return v.Name
}

// parameter appends parameter i, which is v.
func (c *computation) parameter(v *ir.Value, i int) {
	c.layouts = v.Attrs.Str("hlo.layout")
	in := c.line(c.want(v, fmt.Sprintf("arg%d", i)), v.Type, fmt.Sprintf("parameter(%d)", i)+verbatim(v.Attrs, v.Type))
	c.params = append(c.params, in.name+": "+BareShape(v.Type))
	c.values[v.ID] = in
}

// unpack appends the only parameter, a tuple, and those of its elements that
// are used: values of the region, whose layouts are those of init, then those that it takes
// from outer, under the names that they have there.
func (c *computation) unpack(name string, args, init, captured []*ir.Value, outer *computation, used func(v *ir.Value) bool) {
	elems := slices.Concat(args, captured)
	t := ir.Tuple(ir.Types(elems)...)
	c.layouts = outer.layoutsOf(slices.Concat(init, captured))
	state := c.line(name, t, "parameter(0)")
	c.params = []string{state.name + ": " + BareShape(t)}
	for i, v := range elems {
		if !used(v) {
			continue
		}
		want := c.want(v, fmt.Sprintf("arg%d", i))
		if i >= len(args) {
			want = outer.use(v).name
		}
		c.values[v.ID] = c.element(state, i, want)
	}
}

// element appends element i of a tuple.
func (c *computation) element(tuple instruction, i int, want string) instruction {
	c.layouts = partLayouts(tuple.typ, tuple.layouts, i)
	return c.emit(want, tuple.typ.Elems[i], "get-tuple-element", []instruction{tuple}, fmt.Sprintf(", index=%d", i))
}

// tuple appends the tuple of vs, of which attrs keeps what was read of it.
func (c *computation) tuple(vs []*ir.Value, attrs ir.Attrs) instruction {
	t, operands := ir.Tuple(ir.Types(vs)...), c.operands(vs)
	c.layouts = c.layoutsOf(vs)
	return c.emit("tuple", t, "tuple", operands, verbatim(attrs, t))
}

// layoutsOf are the layouts of a tuple of vs: those of their instructions, where they have some.
func (c *computation) layoutsOf(vs []*ir.Value) string {
	ins := make([]instruction, len(vs))
	for i, v := range vs {
		if ins[i] = c.values[v.ID]; ins[i].typ == nil {
			ins[i].typ = v.Type
		}
	}
	return joinLayouts(ins)
}

// handedOn are the layouts of op where its results are parts of its operands, or made of them.
func handedOn(op *ir.Op, operands []instruction) string {
	switch op.Kind {
	case ir.GetTupleElement:
		return partLayouts(operands[0].typ, operands[0].layouts, op.Int("index"))
	case ir.OptimizationBarrier:
		return operands[0].layouts
	case ir.TupleOp:
		return joinLayouts(operands)
	}
	return ""
}

// root makes vs the result: the only one itself, or else a tuple.
func (c *computation) root(vs []*ir.Value, attrs ir.Attrs) {
	if len(vs) == 1 {
		c.result = c.use(vs[0])
		return
	}
	c.result = c.tuple(vs, attrs)
}

func (c *computation) operands(vs []*ir.Value) []instruction {
	ins := make([]instruction, len(vs))
	for i, v := range vs {
		ins[i] = c.use(v)
	}
	return ins
}

// use is the instruction that is v. A small constant from outside of the
// computation is repeated in it.
func (c *computation) use(v *ir.Value) instruction {
	in, ok := c.values[v.ID]
	if !ok && repeated(v) {
		c.constant(v.Def)
		return c.values[v.ID]
	}
	if !ok {
		c.fail(v.Def, "value %q is used in a region that takes no values from outside", v.Name)
	}
	return in
}

// repeated reports whether v is printed in every computation that uses it, rather
// than passed in.
func repeated(v *ir.Value) bool {
	return v.Def != nil && v.Def.Kind == ir.Constant && len(v.Def.Literal("value").Data) <= v.Type.Elem.Size()
}

// captures are the values that region takes from outside, those that are
// repeated in it left out.
func captures(region ...*ir.Block) []*ir.Value {
	var out []*ir.Value
	for _, v := range (&ir.Op{Regions: region}).Captures() {
		if !repeated(v) {
			out = append(out, v)
		}
	}
	return out
}

// block appends the ops of b but for the last, which returns.
func (c *computation) block(b *ir.Block) {
	for _, op := range b.Ops[:len(b.Ops)-1] {
		if c.err != nil {
			return
		}
		c.op(op)
	}
}

func (c *computation) op(op *ir.Op) {
	for _, v := range op.Results {
		if !printable(v.Type) {
			c.fail(op, "%s has no shape in HLO", v.Type)
			return
		}
	}
	row := rowOf(op.Kind)
	if row == nil {
		c.unknown(op)
		return
	}
	switch row.form {
	case plain:
		c.instruction(op, row, c.operands(op.Operands))
	case constant:
		c.constant(op)
	case stretched:
		c.broadcast(op, row)
	case leveled:
		c.level(op, row)
	case barrier:
		c.barrier(op, row)
	case exchange:
		c.allToAll(op, row)
	case loop:
		c.while(op, row)
	case branches:
		c.conditional(op, row)
	case call:
		c.call(op, row)
	}
}

// instruction appends op as one instruction with row's fields.
func (c *computation) instruction(op *ir.Op, row *row, operands []instruction) {
	attrs := c.fields(op, row)
	for i, name := range row.calls {
		attrs += ", " + name + "=%" + c.reducer(op.Regions[i], c.uses)
	}
	c.results(op, row.opcode, operands, attrs)
}

func (c *computation) fields(op *ir.Op, row *row) string {
	var b strings.Builder
	for _, f := range row.fields {
		text, err := f.print(c.m, op)
		if err != nil {
			c.fail(op, "%v", err)
		}
		if text != "" {
			b.WriteString(", " + f.name + "=" + text)
		}
	}
	return b.String()
}

// results appends the instruction whose results are op's: the value itself, or
// a tuple and those of its elements that are used.
func (c *computation) results(op *ir.Op, opcode string, operands []instruction, attrs string) {
	attrs += verbatim(op.Attrs, tupleOf(ir.Types(op.Results))) + c.metadata(op)
	c.layouts = cmp.Or(op.Str("hlo.layout"), handedOn(op, operands))
	if len(op.Results) == 1 {
		v := op.Results[0]
		c.values[v.ID] = c.emit(c.want(v, opcode), v.Type, opcode, operands, attrs)
		return
	}
	c.elements(op, c.emit(opcode, ir.Tuple(ir.Types(op.Results)...), opcode, operands, attrs), nil)
}

// Elements appends the elements of tuple that are results of op and used. A
// result without a name is called what the value of names in its place is.
func (c *computation) elements(op *ir.Op, tuple instruction, names []*ir.Value) {
	for i, v := range op.Results {
		if c.uses[v.ID] == 0 {
			continue
		}
		want := "get-tuple-element"
		if names != nil {
			want = c.want(names[i], want)
		}
		c.values[v.ID] = c.element(tuple, i, c.want(v, want))
	}
}

// metadata says where op comes from.
func (c *computation) metadata(op *ir.Op) string {
	o := op.Origin
	if o == nil || c.plain {
		return ""
	}
	var parts []string
	if name := strings.Trim(o.Layer()+"/"+o.Name(), "/"); name != "" {
		parts = append(parts, "op_name="+quote(name))
	}
	if o.Pos.Line > 0 {
		parts = append(parts, "source_file="+quote(o.Pos.File), fmt.Sprintf("source_line=%d", o.Pos.Line))
	}
	if parts == nil {
		return ""
	}
	return ", metadata={" + strings.Join(parts, " ") + "}"
}

// quote is s as HLO writes strings, with C's escapes.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteString("\\" + string(c))
		case c == '\n':
			b.WriteString(`\n`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
