package hlo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ppc/internal/diag"
	"ppc/ir"
	"ppc/lower/hlo/syntax"
)

// Parse reads HLO text. file names it in errors, which are a [diag.List].
//
// The entry computation becomes the only public function. A computation that
// an op combines, repeats or chooses becomes its region; one that is called,
// or that an unknown op names, a function. The elements of the tuple that a
// while carries become its values, tuples that are only made to be taken apart
// vanish. An instruction that has no row, or that says more than its row
// knows, becomes an op called hlo.OPCODE with HLO's own attributes as text, so
// that [Print] writes it again. Layouts that are not the default and common
// attributes such as sharding are kept in attributes called hlo.NAME, which
// mean nothing here; control-predecessors, which name instructions, are
// dropped. Parse resolves names, and refuses what HLO's own parser refuses; it
// does not verify.
func Parse(file string, src []byte) (*ir.Module, error) {
	s := &syntax.Scanner{File: file, Src: string(src), End: len(src)}
	text := s.Module()
	p := &parser{Scanner: s, m: &ir.Module{Name: text.Name}, kinds: kindsByOpcode(), comps: make(map[string]*syntax.Computation), funcs: make(map[string]*ir.Func), seen: make(map[*syntax.Computation]bool)}
	if s.Err == nil {
		p.places = text.Places
		p.module(text)
	}
	if s.Err != nil {
		return nil, diag.List{s.Err}
	}
	return p.m, nil
}

type parser struct {
	*syntax.Scanner
	m     *ir.Module
	kinds map[string]ir.Kind
	comps map[string]*syntax.Computation
	funcs map[string]*ir.Func // by computation
	seen  map[*syntax.Computation]bool

	entry  *syntax.Computation
	params *ir.Type // the tuple of what the entry computation takes
	root   *ir.Type // of what the entry computation returns
	places *syntax.Places
	instrs int // in the text
	built  int // instructions made into ops; a computation may be built more than once
	nested int // regions around the one being built
}

// maxCopies bounds how often the instructions of a text are built, on average.
// A region is built for each op that has it, which in nested regions doubles
// and doubles again.
const maxCopies = 50

func (p *parser) module(text *syntax.Module) {
	p.m.Attrs.Set("mhlo.num_partitions", ir.Int{Value: 1, Type: ir.I32})
	for _, c := range text.Computations {
		p.instrs += len(c.Instrs)
		if c.Name == "" {
			continue
		}
		if p.comps[c.Name] != nil {
			p.FailAt(c.At, "there are two computations called %s", c.Name)
		}
		p.comps[c.Name] = c
	}
	p.header(text)
	p.entry = text.Entry
	main := p.function(text.Entry)
	main.Private = false
	p.resultSharding(text.Entry, main)
	for _, c := range slices.Backward(text.Computations) { // callers first: what they call has been seen then
		if p.Err == nil && !p.seen[c] {
			p.function(c) // for its errors, and those of the verifier
		}
	}
	if p.Err == nil {
		p.entryLayout(text)
		p.aliases(text, main)
	}
}

// tupleAttrs keeps what an earlier module called the tuple that in makes, which vanishes as an
// instruction: the value that is made of it has them, the function whose results it has, or what
// ends the region of values vs.
func tupleAttrs(in *syntax.Instruction, vs []*ir.Value) ir.Attrs {
	if in == nil || in.Opcode != "tuple" {
		return nil
	}
	for _, a := range in.Attrs {
		if a.Name == "origin" && (vs == nil || OriginFits(a.Text, ir.Tuple(ir.Types(vs)...))) { // none of tuples in the tuple
			return ir.AttrsOf(ir.NamedAttr{Name: "hlo.origin", Attr: ir.Str(a.Text)})
		}
	}
	return nil
}

// resultSharding keeps the sharding of a root that is a tuple on the function whose results it has.
func (p *parser) resultSharding(c *syntax.Computation, f *ir.Func) {
	if p.Err != nil || c.Root == nil || c.Root.Opcode != "tuple" {
		return
	}
	for _, a := range c.Root.Attrs {
		if a.Name == "sharding" {
			f.Attrs.Set("hlo.sharding", ir.Str(a.Text))
		}
	}
}

// headerAttrs are the attributes of a module. Those without a row here are
// kept as text.
var headerAttrs = []string{"alias_passthrough_params", "allow_spmd_sharding_propagation_to_output", "allow_spmd_sharding_propagation_to_parameters", "backend_config", "buffer_donor",
	"debug_attributes", "entry_computation_layout", "frontend_attributes", "input_output_alias", "is_scheduled", "num_partitions", "origin_recovery_table", "replica_count"}

func (p *parser) header(text *syntax.Module) {
	seen := make(map[string]bool)
	for _, a := range text.Attrs {
		var err error
		if seen[a.Name] {
			err = fmt.Errorf("attribute %s is given twice", a.Name)
		}
		seen[a.Name] = true
		if err == nil {
			err = syntax.CheckValue(a.Name, a.Text)
		}
		if err != nil {
			p.FailAt(a.At, "%v", err)
			return
		}
		switch a.Name {
		case "num_partitions", "replica_count":
			var n int
			n, err = syntax.ParseInt(a.Text)
			name := map[string]string{"num_partitions": "mhlo.num_partitions", "replica_count": "mhlo.num_replicas"}[a.Name]
			p.m.Attrs.Set(name, ir.Int{Value: n, Type: ir.I32})
			if err == nil && (n < 1 || n > ir.MaxDevices) {
				err = fmt.Errorf("%d devices: want 1 to %d", n, ir.MaxDevices)
			}
		case "input_output_alias": // read when the parameters are known
		case "entry_computation_layout": // read when the entry computation is known
		case "buffer_donor":
			err = donorsFit(a.Text)
			p.m.Attrs.Set("hlo."+a.Name, ir.Str(a.Text))
		default:
			if !slices.Contains(headerAttrs, a.Name) {
				err = fmt.Errorf("%s is no attribute of a module%s", a.Name, syntax.Hint(a.Name, headerAttrs))
			}
			p.m.Attrs.Set("hlo."+a.Name, ir.Str(a.Text))
		}
		if err != nil {
			p.FailAt(a.At, "%v", err)
		}
	}
}

// entryLayout keeps the layouts of the entry computation if one is not the default, and
// the shapes if they are not those of its parameters and of what it returns.
func (p *parser) entryLayout(text *syntax.Module) {
	i := slices.IndexFunc(text.Attrs, func(a syntax.Attr) bool { return a.Name == "entry_computation_layout" })
	if i < 0 {
		return
	}
	a := text.Attrs[i]
	s := &syntax.Scanner{Src: a.Text, End: len(a.Text)}
	s.Expect("{")
	in := s.Shape()
	s.Expect("->")
	out := s.Shape()
	s.Expect("}")
	if s.Err != nil {
		p.FailAt(a.At, "%s", s.Err.Msg)
		return
	}
	if in.Layout() != "" || out.Layout() != "" || !ShapesAgree(in.Type, p.params) || !ShapesAgree(out.Type, p.root) {
		p.m.Attrs.Set("hlo.entry_computation_layout", ir.Str(a.Text))
	}
}

// aliases reads { {0}: (1, {}, may-alias) }. Pairs of a parameter and a result of main,
// neither an element of one, become attributes of the parameters, others are kept as text.
func (p *parser) aliases(text *syntax.Module, main *ir.Func) {
	i := slices.IndexFunc(text.Attrs, func(a syntax.Attr) bool { return a.Name == "input_output_alias" })
	if i < 0 {
		return
	}
	a := text.Attrs[i]
	pairs, err := ParseAliases(a.Text)
	if err != nil {
		p.FailAt(a.At, "input_output_alias: %v", err)
		return
	}
	given := make(map[string]bool)
	for _, al := range pairs {
		out := braced(al.Output)
		switch {
		case partOf(p.root, al.Output) == nil:
			p.FailAt(a.At, "input_output_alias: the result is %s, which has no part %s", BareShape(p.root), out)
			return
		case given[out]:
			p.FailAt(a.At, "input_output_alias: output %s takes the memory of two parameters", out)
			return
		}
		given[out] = true
	}
	params, taken := main.Params(), make(map[int]bool)
	for _, al := range pairs {
		out := append(al.Output, 0)[0]
		plain := len(al.Output) == 0 && len(main.Results) == 1 || len(al.Output) == 1 && out < len(main.Results)
		if !plain || len(al.ParamIndex) > 0 || al.Must || al.Param >= len(params) || taken[al.Param] || !isTensorOf(params[al.Param].Type, main.Results[out].Type) {
			p.m.Attrs.Set("hlo.input_output_alias", ir.Str(a.Text))
			return
		}
		taken[al.Param] = true
	}
	for _, al := range pairs {
		out := append(al.Output, 0)[0]
		params[al.Param].Attrs.Set("tf.aliasing_output", ir.Int{Value: out, Type: ir.I32})
	}
}

// isTensorOf reports whether both are tensors of one shape.
func isTensorOf(t, u *ir.Type) bool { return t.IsTensor() && u.IsTensor() && ShapesAgree(t, u) }

// partOf is the part of a tuple at the end of path; nil where there is none.
func partOf(t *ir.Type, path []int) *ir.Type {
	for _, i := range path {
		if t.Kind != ir.TupleType || i < 0 || i >= len(t.Elems) {
			return nil
		}
		t = t.Elems[i]
	}
	return t
}

// An Alias says that an output may take the memory of a parameter, or of a part of one.
type Alias struct {
	Output     []int
	Param      int
	ParamIndex []int
	Must       bool
}

// ParseAliases reads { {0}: (1, {}, may-alias) }, whose grammar has been checked.
func ParseAliases(text string) ([]Alias, error) {
	s := &syntax.Scanner{Src: text, End: len(text)}
	s.Expect("{")
	var out []Alias
	for !s.Accept("}") && s.Err == nil {
		a := Alias{Output: s.Index()}
		s.Expect(":")
		s.Expect("(")
		a.Param = s.Integer()
		s.Expect(",")
		if a.ParamIndex = s.Index(); s.Accept(",") {
			a.Must = s.Word("an alias kind") == "must-alias"
		}
		s.Expect(")")
		s.Accept(",")
		if s.Err == nil && a.Param < 0 {
			s.Fail("%d is no number of a parameter", a.Param)
		}
		out = append(out, a)
	}
	if s.Err != nil {
		return nil, errors.New(s.Err.Msg)
	}
	return out, nil
}

// donorsFit checks the numbers of the parameters of { (2, {}) }.
func donorsFit(text string) error {
	s := &syntax.Scanner{Src: text, End: len(text)}
	s.Expect("{")
	for s.Accept("(") {
		if n := s.Integer(); n < 0 && s.Err == nil {
			return fmt.Errorf("%d is no number of a parameter", n)
		}
		s.Expect(",")
		s.Index()
		s.Expect(")")
		s.Accept(",")
	}
	return nil
}

// A node is what an instruction computes: a value, or the elements of a tuple
// that has not been made a value.
type node struct {
	value *ir.Value
	elems []*node
	typ   *ir.Type
	attrs ir.Attrs // of the tuple as a value
}

func leaf(v *ir.Value) *node { return &node{value: v, typ: v.Type} }

func tupleNode(elems []*node) *node {
	ts := make([]*ir.Type, len(elems))
	for i, e := range elems {
		ts[i] = e.typ
	}
	return &node{elems: elems, typ: ir.Tuple(ts...)}
}

func leaves(vs []*ir.Value) []*node {
	ns := make([]*node, len(vs))
	for i, v := range vs {
		ns[i] = leaf(v)
	}
	return ns
}

// A body is a computation that is being built into a block.
type body struct {
	*parser
	f       *ir.Func
	block   *ir.Block
	args    func(in *syntax.Instruction, i int, t *ir.Type) *node // parameter i
	env     map[string]*node
	layouts map[string]string // of the instructions whose layout is not the default
}

// function is the function of computation c, which is built unless it has been.
func (p *parser) function(c *syntax.Computation) *ir.Func {
	if f := p.funcs[c.Name]; f != nil {
		return f
	}
	f := ir.NewFunc(p.funcName(c))
	f.Private, f.Origin = true, &ir.Origin{Text: p.pos(c.At)}
	p.funcs[c.Name] = f
	params := make(map[int]*ir.Value)
	for _, in := range c.Parameters() {
		if in.Shape == nil {
			p.FailAt(in.At, "parameter %s has no shape", in.Name)
			return f
		}
		v := f.NewArg(f.Body, in.Shape.Type, in.Name)
		params[v.Index] = v
	}
	p.numbered(c)
	b := &body{parser: p, f: f, block: f.Body, args: func(in *syntax.Instruction, i int, t *ir.Type) *node {
		v := params[i]
		if v == nil {
			p.FailAt(in.ArgAt, "parameter numbers are not 0, 1, 2 and so on, each once")
			return leaf(f.NewValue(t, ""))
		}
		if l := in.Shape.Layout(); l != "" {
			v.Attrs.Set("hlo.layout", ir.Str(l))
		}
		p.common(in, nil, &v.Attrs)
		if i := slices.IndexFunc(in.Attrs, func(a syntax.Attr) bool { return a.Name == "metadata" }); i >= 0 {
			v.Attrs.Set("hlo.metadata", ir.Str(in.Attrs[i].Text))
		}
		return leaf(v)
	}}
	root := b.computation(c)
	if p.Err != nil {
		return f
	}
	if c == p.entry {
		p.params, p.root = ir.Tuple(ir.Types(f.Params())...), root.typ
	}
	var results []*ir.Value
	if root.elems != nil && len(root.elems) != 1 || root.value == nil && len(root.typ.Elems) == 0 {
		for _, e := range root.elems {
			results = append(results, b.value(e))
		}
	} else {
		results = []*ir.Value{b.value(root)}
	}
	b.builder().Return(results...)
	if root.elems != nil && len(results) != 1 {
		f.Attrs = append(f.Attrs, tupleAttrs(c.Root, nil)...)
	}
	p.m.Funcs = append(p.m.Funcs, f)
	return f
}

// funcName is the name of c's function: its own, but for a computation called main that is not
// the entry, since a module's function of that name is where it begins.
func (p *parser) funcName(c *syntax.Computation) string {
	name := c.Name
	if name == "main" && c != p.entry {
		for i := 1; p.comps[name] != nil; i++ {
			name = fmt.Sprintf("main.%d", i)
		}
	}
	return name
}

// numbered checks the numbers of the parameters of c.
func (p *parser) numbered(c *syntax.Computation) {
	known := make(map[*syntax.Instruction]bool)
	for _, in := range c.Parameters() {
		known[in] = true
	}
	all := c.AllParameters()
	for _, in := range all {
		if !known[in] {
			p.FailAt(in.ArgAt, "parameter number %s of %s, want 0 to %d, each once", strings.TrimSpace(in.Argument), c.Name, len(all)-1)
			return
		}
	}
}

func (b *body) builder() *ir.Builder { return &ir.Builder{Func: b.f, Block: b.block} }

// computation builds the instructions of c and returns what its root is.
func (b *body) computation(c *syntax.Computation) *node {
	b.seen[c] = true
	b.env, b.layouts = make(map[string]*node, len(c.Instrs)), make(map[string]string)
	if b.nested++; b.nested > syntax.MaxDepth {
		b.FailAt(c.At, "computations are nested more than %d deep", syntax.MaxDepth)
	}
	defer func() { b.nested-- }()
	var root *node
	for _, in := range c.Instrs {
		n := b.instruction(in)
		if b.Err != nil {
			return b.none()
		}
		b.replication(in, n.typ)
		if b.env[in.Name] != nil {
			b.FailAt(in.At, "there are two instructions called %s", in.Name)
			return b.none()
		}
		b.env[in.Name] = n
		if in.Shape != nil && in.Shape.Layout() != "" {
			b.layouts[in.Name] = in.Shape.Layout()
		}
		if in == c.Root {
			root = n
		}
	}
	if c.Result != nil && !ShapesAgree(c.Result.Type, root.typ) {
		b.FailAt(c.At, "computation %s returns %s, its signature says %s", c.Name, BareShape(root.typ), BareShape(c.Result.Type))
	}
	return root
}

// ShapesAgree reports whether t and u are equal where both are known: a size that is bounded
// counts as its bound.
func ShapesAgree(t, u *ir.Type) bool {
	if t.Kind != u.Kind || t.Elem != u.Elem || t.Rank() != u.Rank() || len(t.Elems) != len(u.Elems) {
		return false
	}
	ts, us := Largest(t), Largest(u)
	for i, n := range ts {
		if n != us[i] && n != ir.Dynamic && us[i] != ir.Dynamic {
			return false
		}
	}
	for i, e := range t.Elems {
		if !ShapesAgree(e, u.Elems[i]) {
			return false
		}
	}
	return true
}

// Largest are the sizes of t, bounds where they are bounded.
func Largest(t *ir.Type) []int {
	bounds, ok := t.Bounds()
	if !ok || len(bounds) != t.Rank() {
		return t.Shape
	}
	sizes := slices.Clone(t.Shape)
	for i, n := range sizes {
		if n == ir.Dynamic {
			sizes[i] = bounds[i]
		}
	}
	return sizes
}

// operand is the node that an operand names.
func (b *body) operand(o syntax.Operand) *node {
	n := b.operandNode(o)
	if o.Shape != nil && b.Err == nil && !ShapesAgree(o.Shape.Type, n.typ) {
		b.FailAt(o.At, "the operand is %s, the text before it says %s", BareShape(n.typ), BareShape(o.Shape.Type))
	}
	return n
}

func (b *body) operandNode(o syntax.Operand) *node {
	if o.Nested != nil {
		return b.instruction(o.Nested)
	}
	n := b.env[o.Name]
	if n == nil {
		b.FailAt(o.At, "there is no instruction %s before this one%s", o.Name, syntax.Hint(o.Name, sortedKeys(b.env)))
		return b.none()
	}
	for _, i := range o.Path {
		n = b.element(n, i, o.At, "")
	}
	return n
}

// sortedKeys are the names of env, for spelling hints; none where there are
// very many.
func sortedKeys(env map[string]*node) []string {
	if len(env) > 1000 {
		return nil
	}
	names := make([]string, 0, len(env))
	for k := range env {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

// element is element i of a tuple.
func (b *body) element(n *node, i, at int, name string) *node {
	switch {
	case n.typ.Kind != ir.TupleType:
		b.FailAt(at, "%s is no tuple that has elements", BareShape(n.typ))
	case i < 0 || i >= len(n.typ.Elems):
		b.FailAt(at, "index %d is out of bounds for a tuple of %d", i, len(n.typ.Elems))
	case n.elems != nil:
		return n.elems[i]
	}
	if b.Err != nil {
		return b.none()
	}
	op := b.builder().Emit(ir.GetTupleElement, []*ir.Value{n.value}, ir.AttrsOf(ir.NamedAttr{Name: "index", Attr: ir.Int{Value: i, Type: ir.I32}}), nil, []*ir.Type{n.typ.Elems[i]})
	return leaf(op.Result().Named(name))
}

// value is n as one value; a tuple is made where it is not one yet.
func (b *body) value(n *node) *ir.Value {
	if n.value != nil {
		return n.value
	}
	elems := make([]*ir.Value, len(n.elems))
	for i, e := range n.elems {
		elems[i] = b.value(e)
	}
	n.value = b.builder().Emit(ir.TupleOp, elems, n.attrs, nil, []*ir.Type{n.typ}).Result()
	return n.value
}

// flat are the values in n, tuples taken apart.
func (b *body) flat(n *node, out []*ir.Value) []*ir.Value {
	if n.typ.Kind != ir.TupleType {
		return append(out, n.value)
	}
	for i := range n.typ.Elems {
		out = b.flat(b.element(n, i, 0, ""), out)
	}
	return out
}

// unflat is the node of type t whose values, tuples taken apart, come from next.
func unflat(t *ir.Type, next func(t *ir.Type) *ir.Value) *node {
	if t.Kind != ir.TupleType {
		return leaf(next(t))
	}
	n := &node{typ: t, elems: []*node{}}
	for _, e := range t.Elems {
		n.elems = append(n.elems, unflat(e, next))
	}
	return n
}
