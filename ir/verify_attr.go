package ir

// kindNames says what an attribute of each kind looks like.
var kindNames = [...]string{
	AnyAttr:       "anything",
	IntAttr:       "an integer",
	BoolAttr:      "a boolean",
	IntsAttr:      "a list of integers",
	BoolsAttr:     "a list of booleans",
	StrAttr:       "a string",
	SymAttr:       "a symbol",
	EnumAttr:      "a word of a set",
	DenseAttr:     "a literal",
	DotAttr:       "dimension numbers of a dot",
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

// maxList is the longest list that any attribute of an op has a use for; a
// literal can claim to be longer than memory.
const maxList = 1 << 12

func (k AttrKind) accepts(a Attr) bool {
	switch k {
	case AnyAttr:
		return true
	case IntAttr:
		return is[Int](a)
	case BoolAttr:
		i, ok := a.(Int)
		return is[Bool](a) || is[Unit](a) || ok && i.Type == I1
	case IntsAttr:
		l, ok := a.(*Literal)
		return is[Ints](a) || ok && l.Type.Rank() == 1 && l.Type.Elem.IsInt() && l.Type.Shape[0] <= maxList
	case BoolsAttr:
		return is[Bools](a)
	case StrAttr:
		return is[Str](a)
	case SymAttr:
		return is[Sym](a)
	case EnumAttr:
		return is[Enum](a)
	case DenseAttr:
		return is[*Literal](a)
	case DotAttr:
		return is[Dot](a)
	case GatherAttr:
		return is[GatherDims](a)
	case ScatterAttr:
		return is[ScatterDims](a)
	case ConvAttr:
		return is[ConvDims](a)
	case ChannelAttr:
		return is[Channel](a)
	case GroupsAttr:
		return is[MeshAxes](a) || isTable(a)
	case PairsAttr:
		return is[AxisShift](a) || is[AxisMove](a) || isTable(a)
	case ShardingAttr:
		return is[*Sharding](a)
	case ShardingsAttr:
		return is[PerValue](a)
	case ArrayAttr:
		return is[Array](a)
	case DictAttr:
		return is[Dict](a)
	case AccuracyAttr:
		return is[Verbatim](a)
	}
	return false
}

func is[T Attr](a Attr) bool {
	_, ok := a.(T)
	return ok
}

func isTable(a Attr) bool {
	l, ok := a.(*Literal)
	return ok && l.Type.Rank() == 2 && l.Type.Elem.IsInt()
}
