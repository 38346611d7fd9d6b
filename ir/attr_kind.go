package ir

// kindNames says what an attribute of each kind looks like.
var kindNames = [...]string{
	AnyAttr:       "anything",
	IntAttr:       "an integer",
	FloatAttr:     "a number of type f32",
	BoolAttr:      "a boolean",
	UnitAttr:      "no value",
	IntsAttr:      "a list of integers",
	BoolsAttr:     "a list of booleans",
	StrAttr:       "a string",
	SymAttr:       "a symbol",
	EnumAttr:      "a word of a set",
	DenseAttr:     "a literal",
	DotAttr:       "dimension numbers of a dot",
	RaggedAttr:    "dimension numbers of a ragged dot",
	GatherAttr:    "dimension numbers of a gather",
	ScatterAttr:   "dimension numbers of a scatter",
	ConvAttr:      "dimension numbers of a convolution",
	ChannelAttr:   "a channel handle",
	GroupsAttr:    "groups: a two-dimensional literal of integers, or mesh axes",
	PairsAttr:     "pairs: a two-dimensional literal of integers, or an axis shift",
	ShardingAttr:  "a sharding",
	ShardingsAttr: "shardings",
	ArrayAttr:     "a list",
	DictAttr:      "a dictionary",
	AccuracyAttr:  "a result accuracy",
}

func (k AttrKind) String() string { return kindNames[k] }

// MaxList is the longest list that any attribute of an op has a use for; a
// literal can claim to be longer than memory.
const MaxList = 1 << 12

func (k AttrKind) accepts(a Attr) bool {
	switch k {
	case AnyAttr:
		return true
	case IntAttr:
		return Is[Int](a)
	case FloatAttr:
		f, ok := a.(Float)
		return ok && f.Type == F32
	case BoolAttr:
		i, ok := a.(Int)
		return Is[Bool](a) || ok && i.Type == I1
	case UnitAttr:
		return Is[Unit](a)
	case IntsAttr:
		l, ok := a.(*Literal)
		return Is[Ints](a) || ok && l.Type.Rank() == 1 && l.Type.Elem.IsInt() && l.Type.Shape[0] <= MaxList
	case BoolsAttr:
		return Is[Bools](a)
	case StrAttr:
		return Is[Str](a)
	case SymAttr:
		return Is[Sym](a)
	case EnumAttr:
		return Is[Enum](a)
	case DenseAttr:
		return Is[*Literal](a)
	case DotAttr:
		return Is[Dot](a)
	case RaggedAttr:
		return Is[RaggedDims](a)
	case GatherAttr:
		return Is[GatherDims](a)
	case ScatterAttr:
		return Is[ScatterDims](a)
	case ConvAttr:
		return Is[ConvDims](a)
	case ChannelAttr:
		return Is[Channel](a)
	case GroupsAttr:
		return Is[MeshAxes](a) || isTable(a)
	case PairsAttr:
		return Is[AxisShift](a) || Is[AxisMove](a) || isTable(a)
	case ShardingAttr:
		return Is[*Sharding](a)
	case ShardingsAttr:
		return Is[PerValue](a)
	case ArrayAttr:
		return Is[Array](a)
	case DictAttr:
		return Is[Dict](a)
	case AccuracyAttr:
		return Is[Verbatim](a)
	}
	return false
}

// Is reports whether a is an attribute of type T.
func Is[T Attr](a Attr) bool {
	_, ok := a.(T)
	return ok
}

func isTable(a Attr) bool {
	l, ok := a.(*Literal)
	return ok && l.Type.Rank() == 2 && l.Type.Elem == I64
}
