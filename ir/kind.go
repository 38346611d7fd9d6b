package ir

// A Kind is an operation in general: a row of the table in table.go.
type Kind uint16

// The operations, in table order.
const (
	Invalid Kind = iota // the zero Kind never verifies
	Unknown             // an op that the table does not have; carried through, see Op.Spelling

	// Elementwise, one operand.
	Abs
	Cbrt
	Ceil
	CountLeadingZeros
	Cosine
	Exponential
	ExponentialMinusOne
	Floor
	IsFinite
	Log
	LogPlusOne
	Logistic
	Negate
	Not
	PopulationCount
	RoundNearestAfz
	RoundNearestEven
	Rsqrt
	Sign
	Sine
	Sqrt
	Tan
	Tanh
	Convert
	BitcastConvert
	Imag
	Real
	ReducePrecision

	// Elementwise, several operands.
	Add
	And
	Atan2
	ComplexOp
	Divide
	Maximum
	Minimum
	Multiply
	Or
	Power
	Remainder
	ShiftLeft
	ShiftRightArithmetic
	ShiftRightLogical
	Subtract
	Xor
	Compare
	Select
	Clamp

	// Functions of the dialect chlo.
	Acos
	Acosh
	Asin
	Asinh
	Atan
	Atanh
	ChloTan
	Cosh
	Digamma
	Erf
	ErfInv
	Erfc
	IsInf
	IsNegInf
	IsPosInf
	Lgamma
	NextAfter
	Sinh
	Square
	TopK

	// Sources.
	Constant
	Iota
	PartitionID
	ReplicaID
	RngBitGenerator

	// Data movement.
	BroadcastInDim
	Concatenate
	DynamicSlice
	DynamicUpdateSlice
	Gather
	Pad
	Reshape
	Reverse
	Scatter
	Slice
	Transpose

	// Contractions and reductions.
	DotGeneral
	RaggedDot
	Convolution
	Reduce
	ReduceWindow
	SelectAndScatter
	Sort

	// Linear algebra.
	Cholesky
	TriangularSolve
	FFT

	// Control.
	While
	Case
	If
	Call
	CompositeCall // stablehlo.composite
	Return        // stablehlo.return
	FuncReturn    // func.return
	OptimizationBarrier
	CustomCall
	TupleOp
	GetTupleElement

	// Collectives.
	AllGather
	AllReduce
	AllToAll
	CollectiveBroadcast
	CollectivePermute
	ReduceScatter

	// Shardy.
	ShardingConstraint
	Reshard
	ManualComputation
	SdyReturn
	NamedComputation
	SdyConstant
	DataFlowEdge
	PropagationBarrier
	ShardingGroup
	SdyAllGather
	SdyAllSlice
	SdyAllToAll
	SdyCollectivePermute
	SdyAllReduce
	SdyReduceScatter
	ReplicatedToUnreduced
	ShardedToUnreduced

	// Pipelines; see docs/architecture.md.
	PPPipeline
	PPStack
	PPScan
	PPRotate
	PPCheckpoint
	PPName
	PPGather
	PPYield

	NumKinds
)

// Kinds returns every op that may appear in a program, in table order.
func Kinds() []Kind {
	var ks []Kind
	for k := Unknown + 1; k < NumKinds; k++ {
		ks = append(ks, k)
	}
	return ks
}

var kindByName = make(map[string]Kind)

// KindByName returns the op with the full name (stablehlo.add), or Unknown.
func KindByName(name string) Kind {
	if k, ok := kindByName[name]; ok {
		return k
	}
	return Unknown
}

func (k Kind) String() string {
	if k >= NumKinds {
		return "invalid"
	}
	return table[k].Name
}

// Combines reports whether k may combine the elements of a reduction in any order:
// it is associative and commutative.
func (k Kind) Combines() bool { return k.Has(Associative | Commutative) }

// CombinerOf is the kind of the one op of a region that combines its two
// arguments: Add for the region of a sum. It is Invalid where the region is
// not one op of both arguments, or that op may not combine the elements of a
// reduction in any order.
func CombinerOf(b *Block) Kind {
	if len(b.Ops) != 2 || len(b.Args) != 2 || len(b.Ops[0].Operands) != 2 || len(b.Ops[1].Operands) != 1 {
		return Invalid
	}
	op, ret := b.Ops[0], b.Ops[1]
	x, y := op.Operands[0], op.Operands[1]
	if ret.Operands[0].Def != op || !(x == b.Args[0] && y == b.Args[1] || x == b.Args[1] && y == b.Args[0]) {
		return Invalid
	}
	if !op.Kind.Combines() {
		return Invalid
	}
	return op.Kind
}
