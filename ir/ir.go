package ir

import (
	"cmp"
	"fmt"
	"slices"

	"ppc/internal/slab"
)

// IsZeroAt reports whether every element of v at index k along dimension dim is
// zero, as far as follows from constants and clamps to constants. A zero component
// of an index vector does not move the window.
func (v *Value) IsZeroAt(dim, k int) bool {
	low, high, ok := v.spanAt(dim, k)
	return ok && low == 0 && high == 0
}

// spanAt returns bounds of the elements of v at index k along dimension dim, of all
// elements where dim is -1; not ok where none are known.
func (v *Value) spanAt(dim, k int) (low, high int64, ok bool) {
	op := v.Def
	if op == nil || !v.Type.IsTensor() || op.Attrs.Has(KeyDontCare) {
		return 0, 0, false
	}
	switch op.Kind {
	case Constant, SdyConstant:
		return literalSpan(op.Literal("value"), dim, k)
	case BroadcastInDim:
		for i, d := range op.Ints("broadcast_dimensions") {
			if d == dim && op.Operands[0].Type.Shape[i] == v.Type.Shape[d] {
				return op.Operands[0].spanAt(i, k)
			}
		}
		return op.Operands[0].spanAt(-1, 0)
	case Concatenate:
		if op.Int("dimension") != dim {
			break
		}
		for _, x := range op.Operands {
			if k < x.Type.Shape[dim] {
				return x.spanAt(dim, k)
			}
			k -= x.Type.Shape[dim]
		}
	case Clamp: // the bounds may be scalars, whatever is between them
		of := func(x *Value) (int64, int64, bool) {
			if x.Type.Rank() == 0 {
				return x.spanAt(-1, 0)
			}
			return x.spanAt(dim, k)
		}
		least, _, known := of(op.Operands[0])
		most, greatest, ok := of(op.Operands[2])
		return min(least, most), greatest, known && ok
	}
	return 0, 0, false
}

// annotations are the targets of custom calls that give their operand back: what they
// say of it is for a compiler, its sharding, its memory or its order there.
var annotations = map[string]bool{
	"Sharding": true, "annotate_device_placement": true, "LayoutConstraint": true,
	"MoveToHost": true, "MoveToDevice": true, "PinToDevice": true, "PinToDeviceSram": true,
}

// Annotates reports whether op is a custom call whose result is its operand.
func (op *Op) Annotates() bool {
	return op.Kind == CustomCall && annotations[op.Str("call_target_name")] &&
		len(op.Operands) == 1 && len(op.Results) == 1 && op.Operands[0].Type.Equal(op.Results[0].Type)
}

// Placement is the memory to which op copies its operand, in the words of XLA's
// host offloading: pinned_host or device; "" where it is no such copy.
func (op *Op) Placement() string {
	if op.Kind != CustomCall || op.Str("call_target_name") != "annotate_device_placement" {
		return ""
	}
	d, _ := op.Attrs.Get("mhlo.frontend_attributes").(Dict)
	return Attrs(d).Str("_xla_buffer_placement")
}

// Padding is the low and high padding of each dimension of a window op; zeros
// where the attribute is absent.
func (op *Op) Padding(rank int) (low, high []int) {
	low, high = make([]int, rank), make([]int, rank)
	if l := op.Literal("padding"); l != nil && l.Type.NumElements() == 2*rank {
		for d := range rank {
			low[d], high[d] = int(l.Int(2*d)), int(l.Int(2*d+1))
		}
	}
	return low, high
}

// IntsOr is the list called name, or rank times v where it is absent.
func (op *Op) IntsOr(name string, rank, v int) []int {
	if op.Attrs.Has(name) {
		return op.Ints(name)
	}
	return Repeat(v, rank)
}

// A Pos is a place in a source file. The zero Pos is no place.
type Pos struct {
	File      string
	Line, Col int
}

// String is file:line:column, as diagnostics begin; "-" if the place is not known.
func (p Pos) String() string {
	if p.Line == 0 {
		return "-"
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Place is the position of o in the text that was read; the zero Pos where that is
// not known. o may be nil.
func (o *Origin) Place() Pos {
	switch {
	case o == nil:
		return Pos{}
	case o.Text != nil:
		return *o.Text
	}
	return o.Pos
}

// Compare orders places of one file: negative if p is before q.
func (p Pos) Compare(q Pos) int {
	return cmp.Or(cmp.Compare(p.Line, q.Line), cmp.Compare(p.Col, q.Col))
}

// An Origin says where an op comes from. Passes hand it on to the ops that they
// replace the op by. Origins are immutable and shared; nil is "nowhere".
type Origin struct {
	Pos  Pos
	Text *Pos // in the text that was read, where that was made from a source at Pos; else nil
	said *Said
}

// Said is what is said of an op besides its place: nothing in most texts.
type Said struct {
	Name  string // what the user called it: q, decoder.wq
	Layer string // the layer function it stands in, "" outside of layers
	Pass  string // the pass that made it, "" when the source did
}

// Saying returns o with other words.
func (o Origin) Saying(s Said) *Origin {
	o.said = nil
	if s != (Said{}) {
		o.said = &s
	}
	return &o
}

// Said is what is said besides the place; nothing where o is nil.
func (o *Origin) Said() Said {
	if o == nil || o.said == nil {
		return Said{}
	}
	return *o.said
}

// Name is what the user called it, Layer the layer function it stands in, and Pass the
// pass that made it; "" where that is not said. o may be nil.
func (o *Origin) Name() string { return o.Said().Name }

// Layer is described at Name.
func (o *Origin) Layer() string { return o.Said().Layer }

// Pass is described at Name.
func (o *Origin) Pass() string { return o.Said().Pass }

// A Module is one program: meshes, functions and the form that it claims.
type Module struct {
	Name   string
	Attrs  Attrs // mhlo.num_partitions and the like
	Meshes []*Mesh
	Funcs  []*Func
	Form   Form // the properties it has beyond being well formed

	funcs, meshes index
}

// Func returns the function called name, or nil.
func (m *Module) Func(name string) *Func {
	return find(&m.funcs, m.Funcs, name, func(f *Func) string { return f.Name })
}

// Main returns the function called main, the only public one, or the only one.
func (m *Module) Main() *Func {
	if f := m.Func("main"); f != nil {
		return f
	}
	var public []*Func
	for _, f := range m.Funcs {
		if !f.Private {
			public = append(public, f)
		}
	}
	if len(public) == 1 {
		return public[0]
	}
	return nil
}

// Mesh returns the mesh called name, or nil.
func (m *Module) Mesh(name string) *Mesh {
	return find(&m.meshes, m.Meshes, name, func(mesh *Mesh) string { return mesh.Name })
}

// Unused is name, or name with a number behind it, whichever no mesh and no function has.
func (m *Module) Unused(name string) string {
	for i, base := 0, name; m.Mesh(name) != nil || m.Func(name) != nil; i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	return name
}

// NumDevices is the size of the largest mesh, or mhlo.num_partitions where the
// module says it; at least 1.
func (m *Module) NumDevices() int {
	if n := m.Attrs.Int("mhlo.num_partitions"); n > 1 {
		return n
	}
	n := 1
	for _, mesh := range m.Meshes {
		n = max(n, mesh.Size())
	}
	return n
}

// A Func is a function. Its parameters are the arguments of its Body, whose
// last op returns as many values as there are Results.
type Func struct {
	Name    string
	Private bool
	Attrs   Attrs
	Body    *Block // nil for a declaration
	Results []Result
	Origin  *Origin

	lastID ID
	values *slab.Of[Value] // where new ones come from
}

// A Result is the type, sharding and attributes of one result of a function.
type Result struct {
	Type     *Type
	Sharding *Sharding
	Attrs    Attrs
}

// Params are the parameters of f; none are known of a declaration.
func (f *Func) Params() []*Value {
	if f.Body == nil {
		return nil
	}
	return f.Body.Args
}

// Return is the last op of f, or nil if there is none.
func (f *Func) Return() *Op {
	if f.Body == nil {
		return nil
	}
	return f.Body.Terminator()
}

// NumIDs is one more than the largest ID in f: the length of a slice indexed by ID.
func (f *Func) NumIDs() int { return int(f.lastID) + 1 }

// NewFunc returns a function with an empty body.
func NewFunc(name string) *Func { return &Func{Name: name, Body: new(Block)} }

// NewBody returns an empty block that is to take the place of the body of f. Values
// made from now on share no memory with those of the old body, each of which keeps all
// that it was computed from: these go when the old body does.
func (f *Func) NewBody() *Block {
	f.values = nil
	return new(Block)
}

// NewValue returns a value of f that nothing defines yet.
func (f *Func) NewValue(t *Type, name string) *Value {
	if f.values == nil {
		f.values = new(slab.Of[Value])
	}
	f.lastID++
	v := f.values.New()
	v.ID, v.Type, v.Name = f.lastID, t, name
	return v
}

// NewArg appends an argument to b, a block of f.
func (f *Func) NewArg(b *Block, t *Type, name string) *Value {
	v := f.NewValue(t, name)
	v.Block, v.Index = b, len(b.Args)
	b.Args = append(b.Args, v)
	return v
}

// A Block is a list of ops in execution order: definitions precede uses, and the
// last op is a terminator.
type Block struct {
	Args []*Value
	Ops  []*Op
}

// Terminator returns the last op, or nil if there is none.
func (b *Block) Terminator() *Op {
	if len(b.Ops) == 0 {
		return nil
	}
	return b.Ops[len(b.Ops)-1]
}

// An ID names a Value within its Func. IDs start at 1 and are dense, so a
// pass keeps its facts in a slice indexed by ID rather than in a map.
type ID int32

// A Value is a result of an op, or an argument of a block. Exactly one of Def and
// Block is set.
type Value struct {
	ID       ID
	Type     *Type
	Def      *Op    // the op whose result it is
	Block    *Block // the block whose argument it is
	Index    int    // among Def.Results or Block.Args
	Name     string // for people; not unique, never meaningful
	Sharding *Sharding
	Attrs    Attrs // of a function's parameter
}

// An Op computes its Results from its Operands.
type Op struct {
	Kind     Kind
	Spelling string // of an op that the table does not know (Kind Unknown)
	Operands []*Value
	Results  []*Value
	Attrs    Attrs
	Regions  []*Block
	Origin   *Origin
}

// Name is the op's full name: stablehlo.add.
func (op *Op) Name() string {
	if op.Kind == Unknown {
		return op.Spelling
	}
	return op.Kind.String()
}

// Result returns the only result.
func (op *Op) Result() *Value { return op.Results[0] }

// Operand types, result types.
func TypesOf(vs []*Value) []*Type {
	ts := make([]*Type, len(vs))
	for i, v := range vs {
		ts[i] = v.Type
	}
	return ts
}

// Types returns the types of vs.
func Types(vs []*Value) []*Type { return TypesOf(vs) }

// The getters of Attrs, for short. They never read the op table, so that the
// functions in its rows may use them.

// Int is the integer attribute called name, 0 if there is none.
func (op *Op) Int(name string) int { return op.Attrs.Int(name) }

// Activations is how many of the first operands and results of a pp.stack or a
// pp.pipeline are what a layer hands to the next one.
func (op *Op) Activations() int { return max(1, op.Int("activations")) }

// Bool is whether the boolean attribute called name is true.
func (op *Op) Bool(name string) bool { return op.Attrs.Bool(name) }

// Str is the string attribute called name, "" if there is none.
func (op *Op) Str(name string) string { return op.Attrs.Str(name) }

// Sym is the symbol attribute called name, without its @.
func (op *Op) Sym(name string) string { return op.Attrs.Sym(name) }

// Ints is the list of integers called name, nil if there is none.
func (op *Op) Ints(name string) []int { return op.Attrs.Ints(name) }

// Word is the word of the enum attribute called name, "" if there is none.
func (op *Op) Word(name string) string { return op.Attrs.Word(name) }

// Literal is the constant attribute called name, nil if there is none.
func (op *Op) Literal(name string) *Literal { return op.Attrs.Literal(name) }

// Walk calls visit for every op of b and of the regions inside it, each before
// its regions.
func (b *Block) Walk(visit func(*Op)) {
	for _, op := range b.Ops {
		visit(op)
		for _, r := range op.Regions {
			r.Walk(visit)
		}
	}
}

// Uses counts, by ID, how often each value of f is an operand.
func (f *Func) Uses() []int {
	n := make([]int, f.NumIDs())
	f.Body.Walk(func(op *Op) {
		for _, v := range op.Operands {
			n[v.ID]++
		}
	})
	return n
}

// Captures returns the values that op's regions use and that are defined
// outside of them, each once, in order of first use.
func (op *Op) Captures() []*Value {
	inside := make(map[*Value]bool)
	var out []*Value
	var walk func(b *Block)
	walk = func(b *Block) {
		for _, a := range b.Args {
			inside[a] = true
		}
		for _, o := range b.Ops {
			for _, v := range o.Operands {
				if !inside[v] {
					inside[v] = true
					out = append(out, v)
				}
			}
			for _, r := range o.Regions {
				walk(r)
			}
			for _, v := range o.Results {
				inside[v] = true
			}
		}
	}
	for _, r := range op.Regions {
		walk(r)
	}
	return out
}

// A Subst says, by ID, which value to use in place of another. A pass that
// walks in execution order fills it and applies it as it goes, so replacing
// any number of values takes one walk.
type Subst []*Value

// NewSubst returns a Subst for the values that f has now; newer ones are not
// replaced.
func (f *Func) NewSubst() Subst { return make(Subst, f.NumIDs()) }

// Of returns the value that replaces v, v itself if none does.
func (s Subst) Of(v *Value) *Value {
	if int(v.ID) < len(s) && s[v.ID] != nil {
		return s[v.ID]
	}
	return v
}

// Apply replaces the values of vs, such as the operands of one op.
func (s Subst) Apply(vs []*Value) {
	for i, v := range vs {
		vs[i] = s.Of(v)
	}
}

// ApplyBlock replaces the operands of every op in b and in its regions.
func (s Subst) ApplyBlock(b *Block) {
	b.Walk(func(op *Op) { s.Apply(op.Operands) })
}

// Clone returns a copy of m that shares no op, value or block with it.
func (m *Module) Clone() *Module {
	c := &Module{Name: m.Name, Attrs: m.Attrs, Meshes: slices.Clone(m.Meshes), Form: m.Form}
	for _, f := range m.Funcs {
		c.Funcs = append(c.Funcs, f.Clone())
	}
	return c
}

// Clone returns a copy of f that shares no op, value or block with it.
func (f *Func) Clone() *Func {
	c := &Func{Name: f.Name, Private: f.Private, Attrs: f.Attrs, Results: slices.Clone(f.Results), Origin: f.Origin}
	if f.Body != nil {
		c.Body = c.CopyBlock(f.Body, make(map[*Value]*Value))
	}
	return c
}

// CopyBlock returns a copy of b whose values belong to f. Values that sub
// names are replaced; sub learns the copies of all values defined in b.
func (f *Func) CopyBlock(b *Block, sub map[*Value]*Value) *Block {
	c := new(Block)
	for _, a := range b.Args {
		v := f.NewArg(c, a.Type, a.Name)
		v.Sharding, v.Attrs = a.Sharding, a.Attrs
		sub[a] = v
	}
	for _, op := range b.Ops {
		c.Ops = append(c.Ops, f.CopyOp(op, sub))
	}
	return c
}

// CopyOp returns a copy of op, regions included, whose values belong to f.
func (f *Func) CopyOp(op *Op, sub map[*Value]*Value) *Op {
	c := &Op{Kind: op.Kind, Spelling: op.Spelling, Attrs: op.Attrs, Origin: op.Origin, Operands: make([]*Value, len(op.Operands))}
	for i, v := range op.Operands {
		c.Operands[i] = v
		if w := sub[v]; w != nil {
			c.Operands[i] = w
		}
	}
	for _, r := range op.Regions {
		c.Regions = append(c.Regions, f.CopyBlock(r, sub))
	}
	for i, v := range op.Results {
		w := f.NewValue(v.Type, v.Name)
		w.Def, w.Index, w.Sharding = c, i, v.Sharding
		c.Results = append(c.Results, w)
		sub[v] = w
	}
	return c
}

// Renumber gives the values of f the IDs 1, 2, 3… in order of definition.
// Slices indexed by the old IDs are void afterwards.
func (f *Func) Renumber() {
	f.lastID = 0
	var block func(b *Block)
	number := func(vs []*Value) {
		for _, v := range vs {
			f.lastID++
			v.ID = f.lastID
		}
	}
	block = func(b *Block) {
		number(b.Args)
		for _, op := range b.Ops {
			number(op.Results)
			for _, r := range op.Regions {
				block(r)
			}
		}
	}
	if f.Body != nil {
		block(f.Body)
	}
}

// Grow returns s with room for a value of the given ID.
func (s Subst) Grow(id ID) Subst {
	if int(id) < len(s) {
		return s
	}
	return append(s, make(Subst, int(id)+1-len(s))...)
}

// UsesOf counts the uses of v in b, which need not be sound, without those in
// blocks that have been seen.
func (b *Block) UsesOf(v *Value, seen map[*Block]bool) int {
	if b == nil || seen[b] {
		return 0
	}
	seen[b] = true
	n := 0
	for _, op := range b.Ops {
		if op == nil {
			continue
		}
		for _, x := range op.Operands {
			if x == v {
				n++
			}
		}
		for _, r := range op.Regions {
			n += r.UsesOf(v, seen)
		}
	}
	return n
}
