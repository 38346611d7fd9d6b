package ir

// A FactorType says what sharding a factor over mesh axes entails.
type FactorType uint8

// The types of factors; Shardy's.
const (
	PassThrough     FactorType = iota // each device computes its shard
	Reduction                         // the result of each device is unreduced, to be all-reduced or reduce-scattered
	NeedReplication                   // must be replicated
	Permutation                       // each device needs elements of the shards of others: a halo exchange or permute
)

// Factors is the einsum-like sharding rule of one op. A factor is an axis of the
// op's index space; a dimension of an operand or result is the product of some
// factors, major first. Values whose dimensions share a factor have the same
// sharding along it. A dimension without factors is not related to any other.
//
// A PassThrough factor occurs in every result. One that no operand has can be
// sharded without communication. A Reduction occurs in operands only. A factor that
// occurs in one tensor alone relates nothing: propagation does not cross it.
//
// The rule of a matrix product is ([i, k], [k, j]) -> ([i, j]), with k a
// [Reduction].
type Factors struct {
	Sizes    []int
	Types    []FactorType
	Operands [][][]int // [operand][dimension] -> factors
	Results  [][][]int // [result][dimension] -> factors
}

// FactorsOf returns the sharding rule of op, or nil if its kind has none or one
// of its types is carried through unread.
func FactorsOf(op *Op) *Factors {
	if f := table[op.Kind].Factors; f != nil && !unread(op) {
		return f(op)
	}
	return nil
}

// NewFactors is a rule for op in which no dimension has a factor yet.
func NewFactors(op *Op) *Factors {
	n := len(op.Operands)
	total, most := 0, 0
	for _, vs := range [][]*Value{op.Operands, op.Results} {
		for _, v := range vs {
			total, most = total+rankOf(v), max(most, rankOf(v))
		}
	}
	// One piece of memory each for the tensors, their dimensions, and the one factor
	// that most dimensions have.
	tensors, dims, first := make([][][]int, n+len(op.Results)), make([][]int, total), make([]int, total)
	for d := range dims {
		dims[d] = first[d : d : d+1]
	}
	for i := range tensors {
		var rank int
		if i < n {
			rank = rankOf(op.Operands[i])
		} else {
			rank = rankOf(op.Results[i-n])
		}
		tensors[i], dims = dims[:rank:rank], dims[rank:]
	}
	return &Factors{
		Sizes: make([]int, 0, most), Types: make([]FactorType, 0, most),
		Operands: tensors[:n:n], Results: tensors[n:],
	}
}

func rankOf(v *Value) int {
	if !v.Type.IsTensor() {
		return 0
	}
	return v.Type.Rank()
}

// Factor makes a new factor.
func (f *Factors) Factor(size int, t FactorType) int {
	f.Sizes = append(f.Sizes, size)
	f.Types = append(f.Types, t)
	return len(f.Sizes) - 1
}

// Add makes a factor of the given dimensions, by operand and by result; -1
// means that it is not there.
func (f *Factors) Add(size int, t FactorType, operands, results []int) {
	k := f.Factor(size, t)
	for i, d := range operands {
		if d >= 0 {
			f.Operands[i][d] = append(f.Operands[i][d], k)
		}
	}
	for i, d := range results {
		if d >= 0 {
			f.Results[i][d] = append(f.Results[i][d], k)
		}
	}
}

// Window adds a factor for each dimension d of operand 0 and the result; one
// whose size changes is a Permutation.
func (f *Factors) Window(in, out []int, covered func(d int) bool) {
	for d := range out {
		t := PassThrough
		if !covered(d) {
			t = Permutation
		}
		f.Add(in[d], t, []int{d}, []int{d})
	}
}
