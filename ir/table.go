package ir

// With returns the row with one more attribute.
func (o OpInfo) With(a AttrSpec) OpInfo {
	o.Attrs = append(o.Attrs, a)
	return o
}

// On returns the row with the example that prints operands and their type.
func (o OpInfo) On(operands, t string) OpInfo {
	o.Example = "%r = " + o.Name + " " + operands + " : " + t
	return o
}

// Like returns the row with more traits.
func (o OpInfo) Like(t Trait) OpInfo {
	o.Traits |= t
	return o
}

// Moving returns the row of an op whose results are elements of its operands.
func (o OpInfo) Moving(operands func(op *Op) []int) OpInfo {
	o.Moves = operands
	return o
}

// LinearIn returns the row of an op that is linear in operands.
func (o OpInfo) LinearIn(operands func(op *Op) []int) OpInfo {
	o.Linear = operands
	return o
}

// NeutralAt returns the row of an op that combines, with what changes nothing.
func (o OpInfo) NeutralAt(number func(t DType) *Literal) OpInfo {
	o.Neutral = number
	return o
}

// A Trait is a fact about an op that passes may rely on.
type Trait uint32

// The traits.
const (
	Pure          Trait = 1 << iota // no effect beyond its results; unused means dead
	Commutative                     // f(a, b) = f(b, a), bit for bit
	Elementwise                     // element i of the result depends on element i of the operands only, scalars aside
	Associative                     // may combine the elements of a reduction
	Terminator                      // ends a block
	Collective                      // every device of a group must execute it
	Isolated                        // its regions see no value from outside
	Pipeline                        // lowered by a pass before the program is done: a pp op, a call that has a decomposition
	AllowsUnit                      // may have any number of results
	Composite                       // a chlo op, which the pass expand decomposes into StableHLO ops
	InHLO                           // a composite op that HLO has an opcode for
	TensorRegions                   // its regions compute with tensors of the program; those of other ops combine single elements
	Costly                          // takes more than a walk over its operands: a contraction, a window, a sort
	View                            // its results are the bytes of its operands
	InPlace                         // result i may be written over operand i
	Relayout                        // an op of Shardy whose result is its operand, on other devices
	Unreduced                       // of these, the ones whose operand or result is what devices have that remains to be combined
	Idempotent                      // f(a, a) = a
	Source                          // a constant: its result follows from its attributes, on every device alike
	Loop                            // its last region is a body that runs again and again, over values of which the last ones are the first results
	Branches                        // one of its regions runs, and returns the results
	LooksBack                       // its rules are about more of its operands than their types: what defines them, or their shardings
)

// An Arity bounds a number of operands, results or regions.
type Arity struct{ Min, Max int }

// Any is no bound.
const many = 1 << 30

// Exactly allows n alone.
func Exactly(n int) Arity { return Arity{n, n} }

// AtLeast allows n and more.
func AtLeast(n int) Arity { return Arity{n, many} }

// Allows reports whether n is within a.
func (a Arity) Allows(n int) bool { return a.Min <= n && n <= a.Max }

// An AttrKind is the Go type that an attribute has.
type AttrKind uint8

// The kinds of attributes that ops of the table take.
const (
	AnyAttr AttrKind = iota
	IntAttr
	FloatAttr
	BoolAttr
	UnitAttr // that it is there says all
	IntsAttr
	BoolsAttr
	StrAttr
	SymAttr
	EnumAttr
	DenseAttr
	DotAttr
	RaggedAttr
	GatherAttr
	ScatterAttr
	ConvAttr
	ChannelAttr
	GroupsAttr // dense<…> : tensor<GxNxi64> or MeshAxes
	PairsAttr  // dense<…> : tensor<Nx2xi64>, AxisShift or AxisMove
	ShardingAttr
	ShardingsAttr // PerValue
	ArrayAttr
	DictAttr
	AccuracyAttr // #stablehlo.result_accuracy<…>, unread
)

// An AttrSpec is one inherent attribute of an op.
type AttrSpec struct {
	Name     string
	Kind     AttrKind
	Optional bool
	Set      string // of an EnumAttr: the name of the set
	Words    []string
}

// OpInfo is what the table says of one op.
type OpInfo struct {
	Name     string // spelling in text
	Doc      string // one sentence; StableHLO's specification says the rest
	Traits   Trait
	Operands Arity
	Results  Arity
	Regions  Arity
	Attrs    []AttrSpec

	// Infer checks the constraints that are numbered in the op's section of
	// the StableHLO specification (or, for pp ops, above the function) and
	// returns the result types. Operands, regions and attributes have the
	// number and kind that the row says. Ops whose result types do not follow
	// from the rest (reshape) check the types they were given and return
	// them. It must not read the table.
	Infer func(op *Op) ([]*Type, *Rule)

	// InModule checks the op's references to the rest of the module, functions and
	// meshes; nil for ops without any. It is called when Infer found nothing wrong,
	// and must not read the table.
	InModule func(m *Module, op *Op) *Rule

	// Factors is the op's sharding rule; nil for ops with regions or effects, for
	// which propagate and partition have rules of their own.
	Factors func(op *Op) *Factors

	// Moves are the operands whose elements the results are: chosen, in another
	// order, or in another type; nil for ops that compute.
	Moves func(op *Op) []int

	// Linear are the operands in which the result is linear: computed from the
	// terms of sums, it is the terms of the sum; nil where there is none.
	Linear func(op *Op) []int

	// Neutral is the number that changes nothing when k combines it with
	// another; nil for ops that do not combine.
	Neutral func(t DType) *Literal

	Example string // one statement in MLIR text, over the values in ir/dialect/example_test.go
}

var (
	table      [NumKinds]OpInfo
	references = make(map[string]*OpInfo)
)

// Define makes rows the op table, and references the rows of ops that have no Kind:
// they are verified, printed and evaluated by the reference evaluator, and no pass
// knows them. The package that holds the rows calls it when the program starts;
// this package only reads them.
func Define(rows *[NumKinds]OpInfo, reference []OpInfo) {
	table = *rows
	for k := Unknown + 1; k < NumKinds; k++ {
		kindByName[table[k].Name] = k
	}
	for i := range reference {
		references[reference[i].Name] = &reference[i]
	}
}

// row is what the tables say of op.
func (op *Op) row() *OpInfo {
	if op.Kind == Unknown {
		if r := references[op.Spelling]; r != nil {
			return r
		}
	}
	return &table[op.Kind]
}

// Known reports whether a row says what op is.
func (op *Op) Known() bool { return op.Kind != Unknown || references[op.Spelling] != nil }

// HasByName reports whether ops of kind k, or those called name where that is [Unknown], have t.
func HasByName(k Kind, name string, t Trait) bool {
	if row := references[name]; k == Unknown && row != nil {
		return row.Traits&t == t
	}
	return k.Has(t)
}

// Specs are the inherent attributes of op.
func (op *Op) Specs() []AttrSpec { return op.row().Attrs }

// Spec returns the inherent attribute of op called name, or nil.
func (op *Op) Spec(name string) *AttrSpec { return op.row().spec(name) }

func (o *OpInfo) spec(name string) *AttrSpec {
	for i := range o.Attrs {
		if o.Attrs[i].Name == name {
			return &o.Attrs[i]
		}
	}
	return nil
}

// Has reports whether k has all of the traits t.
func (k Kind) Has(t Trait) bool { return table[k].Traits&t == t }

// Refers reports whether ops of kind k have references to the rest of the module to check.
func (k Kind) Refers() bool { return table[k].InModule != nil }

// Doc is one sentence on what k computes.
func (k Kind) Doc() string { return table[k].Doc }

// Specs are the inherent attributes of k.
func (k Kind) Specs() []AttrSpec { return table[k].Attrs }

// Spec returns the inherent attribute of k called name, or nil.
func (k Kind) Spec(name string) *AttrSpec { return table[k].spec(name) }

// NumOperands, NumResults and NumRegions bound what an op of kind k has.
func (k Kind) NumOperands() Arity { return table[k].Operands }

// NumResults bounds the results of an op of kind k.
func (k Kind) NumResults() Arity { return table[k].Results }

// NumRegions bounds the regions of an op of kind k.
func (k Kind) NumRegions() Arity { return table[k].Regions }

// Example is a statement in MLIR text that uses an op of kind k.
func (k Kind) Example() string { return table[k].Example }

// Moves are the operands of op whose elements its results are, chosen, in
// another order, or in another type.
func (op *Op) Moves() []int { return which(table[op.Kind].Moves, op) }

// LinearIn are the operands of op in which its result is linear: computed from
// the terms of sums, it is the terms of the sum.
func (op *Op) LinearIn() []int { return which(table[op.Kind].Linear, op) }

func which(operands func(op *Op) []int, op *Op) []int {
	if operands == nil {
		return nil
	}
	return operands(op)
}

// Neutral is the number that changes nothing when k combines it with another;
// nil where k does not combine.
func (k Kind) Neutral(t DType) *Literal {
	if table[k].Neutral == nil {
		return nil
	}
	return table[k].Neutral(t)
}
