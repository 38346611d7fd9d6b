package hlo

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ppc/internal/diag"
	"ppc/internal/spell"
	"ppc/ir"
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
// dropped. Parse resolves names; it does not verify.
func Parse(file string, src []byte) (*ir.Module, error) {
	s := &scanner{file: file, src: string(src), end: len(src)}
	text := s.module()
	p := &parser{scanner: s, m: &ir.Module{Name: text.name}, kinds: kindsByOpcode(), comps: make(map[string]*computationText), funcs: make(map[string]*ir.Func), seen: make(map[*computationText]bool)}
	if s.err == nil {
		p.places = text.places
		p.module(text)
	}
	if s.err != nil {
		return nil, diag.List{s.err}
	}
	return p.m, nil
}

type parser struct {
	*scanner
	m     *ir.Module
	kinds map[string]ir.Kind
	comps map[string]*computationText
	funcs map[string]*ir.Func // by computation
	seen  map[*computationText]bool

	places *sourcePlaces
	instrs int // in the text
	built  int // instructions made into ops; a computation may be built more than once
	nested int // regions around the one being built
}

// maxCopies bounds how often the instructions of a text are built, on average.
// A region is built for each op that has it, which in nested regions doubles
// and doubles again.
const maxCopies = 50

func (p *parser) module(text *moduleText) {
	p.m.Attrs.Set("mhlo.num_partitions", ir.Int{Value: 1, Type: ir.I32})
	for _, c := range text.computations {
		p.instrs += len(c.instrs)
		if c.name == "" {
			continue
		}
		if p.comps[c.name] != nil {
			p.failAt(c.at, "there are two computations called %s", c.name)
		}
		p.comps[c.name] = c
	}
	p.header(text)
	main := p.function(text.entry)
	main.Private = false
	p.resultSharding(text.entry, main)
	for _, c := range text.computations {
		if p.err == nil && !p.seen[c] {
			p.unreached(c)
		}
	}
	if p.err == nil {
		p.aliases(text, main)
	}
}

// resultSharding keeps the sharding of a root that is a tuple, which is no op of
// its own, on the function whose results it has.
func (p *parser) resultSharding(c *computationText, f *ir.Func) {
	if p.err != nil || c.root == nil || c.root.opcode != "tuple" {
		return
	}
	for _, a := range c.root.attrs {
		if a.name == "sharding" {
			f.Attrs.Set("hlo.sharding", ir.Str(a.text))
		}
	}
}

// unreached builds c, which nothing uses, and forgets it: for its errors.
func (p *parser) unreached(c *computationText) {
	funcs, meshes := len(p.m.Funcs), len(p.m.Meshes)
	p.function(c)
	p.m.Funcs, p.m.Meshes = p.m.Funcs[:funcs], p.m.Meshes[:meshes]
}

// headerAttrs are the attributes of a module. Those without a row here are
// kept as text.
var headerAttrs = []string{"alias_passthrough_params", "allow_spmd_sharding_propagation_to_output", "allow_spmd_sharding_propagation_to_parameters", "buffer_donor",
	"debug_attributes", "entry_computation_layout", "frontend_attributes", "input_output_alias", "is_scheduled", "num_partitions", "origin_recovery_table", "replica_count"}

// headerChecks say what the values of those kept as text are.
var headerChecks = map[string]func(text string) error{
	"is_scheduled":                                  boolean,
	"alias_passthrough_params":                      boolean,
	"allow_spmd_sharding_propagation_to_output":     booleans,
	"allow_spmd_sharding_propagation_to_parameters": booleans,
	"debug_attributes":                              debugAttributes,
}

// booleans is true, false, or a list of them.
func booleans(text string) error {
	if text == "true" || text == "false" {
		return nil
	}
	parts, err := elements(text)
	for _, s := range parts {
		if err == nil {
			err = boolean(s)
		}
	}
	return err
}

var logMode = regexp.MustCompile(`log_mode=([^,})\s]*)`)

// debugAttributes looks at the ways in which values are logged.
func debugAttributes(text string) error {
	for _, m := range logMode.FindAllStringSubmatch(text, -1) {
		if err := oneOf("default")(m[1]); err != nil {
			return fmt.Errorf("log_mode: %w", err)
		}
	}
	return nil
}

func (p *parser) header(text *moduleText) {
	seen := make(map[string]bool)
	for _, a := range text.attrs {
		var err error
		if seen[a.name] {
			err = fmt.Errorf("attribute %s is given twice", a.name)
		}
		seen[a.name] = true
		if check := headerChecks[a.name]; check != nil && err == nil {
			err = check(a.text)
		}
		if err != nil {
			p.failAt(a.at, "%v", err)
			return
		}
		switch a.name {
		case "num_partitions", "replica_count":
			var n int
			n, err = parseInt(a.text)
			name := map[string]string{"num_partitions": "mhlo.num_partitions", "replica_count": "mhlo.num_replicas"}[a.name]
			p.m.Attrs.Set(name, ir.Int{Value: n, Type: ir.I32})
			if err == nil && (n < 1 || n > maxDevices) {
				err = fmt.Errorf("%d devices: want 1 to %d", n, maxDevices)
			}
		case "input_output_alias": // read when the parameters are known
		case "entry_computation_layout":
			err = p.entryLayout(a)
		case "buffer_donor":
			_, err = parseDonors(a.text)
			p.m.Attrs.Set("hlo."+a.name, ir.Str(a.text))
		default:
			if !slices.Contains(headerAttrs, a.name) {
				err = fmt.Errorf("%s is no attribute of a module%s", a.name, hint(a.name, headerAttrs))
			}
			p.m.Attrs.Set("hlo."+a.name, ir.Str(a.text))
		}
		if err != nil {
			p.failAt(a.at, "%v", err)
		}
	}
}

func hint(word string, among []string) string {
	if near := spell.Nearest(word, among); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// entryLayout keeps the layouts of the entry computation if one is not the
// default.
func (p *parser) entryLayout(a attrText) error {
	s := &scanner{src: a.text, end: len(a.text)}
	s.expect("{")
	in := s.shape()
	var out shape
	if s.expect("->"); s.err == nil {
		out = s.shape()
	}
	s.expect("}")
	if s.err != nil {
		return errors.New(s.err.Msg)
	}
	if in.layout() != "" || out.layout() != "" {
		p.m.Attrs.Set("hlo.entry_computation_layout", ir.Str(a.text))
	}
	return nil
}

// aliases reads { {0}: (1, {}, may-alias) }. Pairs of a parameter, not an element
// of one, and a result become attributes of the parameters, others are kept as
// text.
func (p *parser) aliases(text *moduleText, main *ir.Func) {
	i := slices.IndexFunc(text.attrs, func(a attrText) bool { return a.name == "input_output_alias" })
	if i < 0 {
		return
	}
	a := text.attrs[i]
	pairs, err := parseAliases(a.text)
	if err != nil {
		p.failAt(a.at, "input_output_alias: %v", err)
		return
	}
	params := main.Params()
	for _, al := range pairs {
		plain := len(al.output) == 1 || len(al.output) == 0 && len(main.Results) == 1
		if !plain || len(al.paramIndex) > 0 || al.must || al.param < 0 || al.param >= len(params) {
			p.m.Attrs.Set("hlo.input_output_alias", ir.Str(a.text))
			return
		}
	}
	for _, al := range pairs {
		out := append(al.output, 0)[0]
		params[al.param].Attrs.Set("tf.aliasing_output", ir.Int{Value: out, Type: ir.I32})
	}
}

// An alias says that an output may take the memory of a parameter.
type alias struct {
	output     []int
	param      int
	paramIndex []int
	must       bool
}

func parseAliases(text string) ([]alias, error) {
	s := &scanner{src: text, end: len(text)}
	s.expect("{")
	var out []alias
	for !s.accept("}") && s.err == nil {
		if len(out) > 0 {
			s.expect(",")
		}
		a := alias{output: s.ints("{", "}")}
		s.expect(":")
		s.expect("(")
		a.param = s.integer()
		if s.accept(",") {
			a.paramIndex = s.ints("{", "}")
		}
		if s.accept(",") {
			kind := s.word("an alias kind")
			if a.must = kind == "must-alias"; !a.must && kind != "may-alias" && s.err == nil {
				s.fail("want may-alias or must-alias, found %s", kind)
			}
		}
		s.expect(")")
		out = append(out, a)
	}
	if s.err != nil {
		return nil, errors.New(s.err.Msg)
	}
	return out, nil
}

// parseDonors reads { (2, {}) }.
func parseDonors(text string) ([]alias, error) {
	s := &scanner{src: text, end: len(text)}
	s.expect("{")
	var out []alias
	for !s.accept("}") && s.err == nil {
		if len(out) > 0 {
			s.expect(",")
		}
		s.expect("(")
		a := alias{param: s.integer()}
		if s.accept(",") {
			a.paramIndex = s.ints("{", "}")
		}
		s.expect(")")
		out = append(out, a)
	}
	if s.err != nil {
		return nil, errors.New(s.err.Msg)
	}
	return out, nil
}

// A node is what an instruction computes: a value, or the elements of a tuple
// that has not been made a value.
type node struct {
	value *ir.Value
	elems []*node
	typ   *ir.Type
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
	args    func(in *instrText, i int, t *ir.Type) *node // parameter i
	env     map[string]*node
	layouts map[string]string // of the instructions whose layout is not the default
}

// function is the function of computation c, which is built unless it has been.
func (p *parser) function(c *computationText) *ir.Func {
	if f := p.funcs[c.name]; f != nil {
		if f.Return() == nil {
			p.failAt(c.at, "computation %s calls itself", c.name)
		}
		return f
	}
	f := ir.NewFunc(c.name)
	f.Private, f.Origin = true, &ir.Origin{Text: p.pos(c.at)}
	p.funcs[c.name] = f
	params := make(map[int]*ir.Value)
	for _, in := range c.parameters() {
		if in.shape == nil {
			p.failAt(in.at, "parameter %s has no shape", in.name)
			return f
		}
		v := f.NewArg(f.Body, in.shape.typ, in.name)
		params[v.Index] = v
	}
	p.numbered(c)
	b := &body{parser: p, f: f, block: f.Body, args: func(in *instrText, i int, t *ir.Type) *node {
		v := params[i]
		if v == nil {
			p.failAt(in.argAt, "parameter numbers are not 0, 1, 2 and so on, each once")
			return leaf(f.NewValue(t, ""))
		}
		if l := in.shape.layout(); l != "" {
			v.Attrs.Set("hlo.layout", ir.Str(l))
		}
		p.common(in, nil, &v.Attrs)
		if i := slices.IndexFunc(in.attrs, func(a attrText) bool { return a.name == "metadata" }); i >= 0 {
			v.Attrs.Set("hlo.metadata", ir.Str(in.attrs[i].text))
		}
		return leaf(v)
	}}
	root := b.computation(c)
	if p.err != nil {
		return f
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
	p.m.Funcs = append(p.m.Funcs, f)
	return f
}

// numbered checks the numbers of the parameters of c.
func (p *parser) numbered(c *computationText) {
	known, n := make(map[*instrText]bool), 0
	for _, in := range c.parameters() {
		known[in] = true
	}
	for _, in := range c.instrs {
		if in.opcode == "parameter" {
			n++
		}
	}
	for _, in := range c.instrs {
		if in.opcode == "parameter" && !known[in] {
			p.failAt(in.argAt, "parameter number %s of %s, want 0 to %d, each once", strings.TrimSpace(in.argument), c.name, n-1)
			return
		}
	}
}

// parameters are the parameter instructions of c in order of their numbers,
// those in the place of operands included.
func (c *computationText) parameters() []*instrText {
	byNumber := make(map[string]*instrText)
	var walk func(in *instrText)
	walk = func(in *instrText) {
		if in.opcode == "parameter" {
			byNumber[strings.TrimSpace(in.argument)] = in
		}
		for _, o := range in.operands {
			if o.nested != nil {
				walk(o.nested)
			}
		}
	}
	for _, in := range slices.Backward(c.instrs) { // of two with one number the first counts
		walk(in)
	}
	var out []*instrText
	for i := range len(byNumber) {
		in := byNumber[fmt.Sprint(i)]
		if in == nil {
			break // reported where the number is read
		}
		out = append(out, in)
	}
	return out
}

func (b *body) builder() *ir.Builder { return &ir.Builder{Func: b.f, Block: b.block} }

// computation builds the instructions of c and returns what its root is.
func (b *body) computation(c *computationText) *node {
	b.seen[c] = true
	b.env, b.layouts = make(map[string]*node, len(c.instrs)), make(map[string]string)
	none := leaf(b.f.NewValue(ir.Token(), ""))
	if b.nested++; b.nested > maxDepth {
		b.failAt(c.at, "computations are nested more than %d deep", maxDepth)
	}
	defer func() { b.nested-- }()
	var root *node
	for _, in := range c.instrs {
		n := b.instruction(in)
		if b.err != nil {
			return none
		}
		if b.env[in.name] != nil {
			b.failAt(in.at, "there are two instructions called %s", in.name)
			return none
		}
		b.env[in.name] = n
		if in.shape != nil && in.shape.layout() != "" {
			b.layouts[in.name] = in.shape.layout()
		}
		if in == c.root {
			root = n
		}
	}
	if c.result != nil && !shapesAgree(c.result.typ, root.typ) {
		b.failAt(c.at, "computation %s returns %s, its signature says %s", c.name, bareShape(root.typ), bareShape(c.result.typ))
	}
	return root
}

// shapesAgree reports whether t and u are equal where both are known.
func shapesAgree(t, u *ir.Type) bool {
	if t.Kind != u.Kind || t.Elem != u.Elem || t.Rank() != u.Rank() || len(t.Elems) != len(u.Elems) {
		return false
	}
	for i, n := range t.Shape {
		if n != u.Shape[i] && n != ir.Dynamic && u.Shape[i] != ir.Dynamic {
			return false
		}
	}
	for i, e := range t.Elems {
		if !shapesAgree(e, u.Elems[i]) {
			return false
		}
	}
	return true
}

// operand is the node that an operand names.
func (b *body) operand(o operandText) *node {
	n := b.operandNode(o)
	if o.shape != nil && b.err == nil && !shapesAgree(o.shape.typ, n.typ) {
		b.failAt(o.at, "the operand is %s, the text before it says %s", bareShape(n.typ), bareShape(o.shape.typ))
	}
	return n
}

func (b *body) operandNode(o operandText) *node {
	if o.nested != nil {
		return b.instruction(o.nested)
	}
	n := b.env[o.name]
	if n == nil {
		b.failAt(o.at, "there is no instruction %s before this one%s", o.name, hint(o.name, sortedKeys(b.env)))
		return leaf(b.f.NewValue(ir.Token(), ""))
	}
	for _, i := range o.path {
		n = b.element(n, i, o.at, "")
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
		b.failAt(at, "%s is no tuple that has elements", bareShape(n.typ))
	case i < 0 || i >= len(n.typ.Elems):
		b.failAt(at, "index %d is out of bounds for a tuple of %d", i, len(n.typ.Elems))
	case n.elems != nil:
		return n.elems[i]
	}
	if b.err != nil {
		return leaf(b.f.NewValue(ir.Token(), ""))
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
	n.value = b.builder().Emit(ir.TupleOp, elems, nil, nil, []*ir.Type{n.typ}).Result()
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
