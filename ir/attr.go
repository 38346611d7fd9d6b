package ir

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// An Attr is compile-time information about an op: a number, a list of axes, a
// constant. Attrs are immutable; two are equal exactly when their strings are.
// String is MLIR's spelling.
type Attr interface {
	String() string
	attr()
}

// The attributes that MLIR, StableHLO and Shardy have. [Literal] and
// [Sharding] are attributes too.
type (
	// Int is an integer: 3 : i64.
	Int struct {
		Value int   // of a ui64, the bits
		Type  DType // I64 unless the text said otherwise
	}
	// Float is a number: 1.0 : f32.
	Float struct {
		Value float64
		Type  DType
	}
	Bool  bool
	Unit  struct{} // present or absent
	Str   string
	Sym   string // @name, without the @
	Ints  []int  // array<i64: 1, 2>
	Bools []bool // array<i1: true, false>
	Array []Attr
	Dict  Attrs
	// TypeAttr is a type as a value.
	TypeAttr struct{ Type *Type }
	// Enum is one word of a set: #stablehlo<comparison_direction LT>.
	Enum struct{ Dialect, Set, Value string }
	// Dot is the dimension numbers of dot_general: the dimensions of each
	// operand that are batched and those that are contracted, pairwise.
	Dot struct{ LhsBatch, RhsBatch, LhsContract, RhsContract []int }
	// GatherDims is the dimension numbers of gather.
	GatherDims struct {
		OffsetDims, CollapsedSliceDims, OperandBatchingDims, StartIndicesBatchingDims, StartIndexMap []int
		IndexVectorDim                                                                               int
	}
	// ScatterDims is the dimension numbers of scatter.
	ScatterDims struct {
		UpdateWindowDims, InsertedWindowDims, InputBatchingDims, ScatterIndicesBatchingDims, ScatterDimsToOperandDims []int
		IndexVectorDim                                                                                                int
	}
	// ConvDims is the dimension numbers of convolution: which dimension of each
	// side is which.
	ConvDims struct{ Input, Kernel, Output ConvSide }
	// ConvSide is the dimensions of one side of a convolution. First is the
	// batch, of the kernel the input features; Second is the features, of the
	// kernel the output features.
	ConvSide struct {
		First, Second int
		Spatial       []int
	}
	// Channel is the handle of a collective.
	Channel struct{ Handle, Type int }
	// MeshAxes is the replica groups of a collective as axes of a mesh: the
	// devices that differ only along Axes form a group, in the axes' order.
	MeshAxes struct {
		Mesh string
		Axes []AxisRef
	}
	// AxisShift is the source-target pairs of a permute along mesh axes: of the n
	// devices along Axes, counted major first, number i sends to i+Shift, or, with
	// Reverse, to n-1-i+Shift. Where that number is no device it has no target, or,
	// with Wrap, the number modulo n. The attribute represents as many pairs as
	// there are devices, and is expanded where text or execution need them.
	AxisShift struct {
		Mesh    string
		Axes    []AxisRef
		Shift   int
		Wrap    bool
		Reverse bool
	}
	// AxisMove is the source-target pairs of a permute that reshards a dimension
	// from the axes From to the axes To, which are the same sub-axes in another
	// order: the coordinates of a device along From, major first and read as one
	// number, are those along To of the device that it sends to. Along other axes
	// the coordinates of the two agree.
	AxisMove struct {
		Mesh     string
		From, To []AxisRef
	}
	// PerValue is the shardings of an op's results.
	PerValue []*Sharding
	// Verbatim is an attribute that is carried through unread.
	Verbatim string
)

func (Int) attr() {}

func (Float) attr() {}

func (Bool) attr() {}

func (Unit) attr() {}

func (Str) attr() {}

func (Sym) attr() {}

func (Ints) attr() {}

func (Bools) attr() {}

func (Array) attr() {}

func (Dict) attr() {}

func (TypeAttr) attr() {}

func (Enum) attr() {}

func (Dot) attr() {}

func (GatherDims) attr() {}

func (ScatterDims) attr() {}

func (ConvDims) attr() {}

func (Channel) attr() {}

func (MeshAxes) attr() {}

func (AxisShift) attr() {}

func (AxisMove) attr() {}

func (PerValue) attr() {}

func (Verbatim) attr() {}

// NumberType is the type that attributes called name have which are integers.
func NumberType(name string) DType {
	switch name {
	case "exponent_bits", "mantissa_bits", "allowed_direction", "reduction_op", "version", "index":
		return I32
	}
	return I64
}

// I64Attr is v as an attribute of type i64.
func I64Attr(v int) Int { return Int{v, I64} }

// HLOEnum is a word of one of StableHLO's sets.
func HLOEnum(set, value string) Enum { return Enum{"stablehlo", set, value} }

func (a Int) String() string {
	switch a.Type {
	case I1:
		return strconv.FormatBool(a.Value != 0)
	case UI64:
		return fmt.Sprintf("%d : %s", uint64(a.Value), a.Type)
	}
	return fmt.Sprintf("%d : %s", a.Value, a.Type)
}

func (a Float) String() string {
	b := make([]byte, 16)
	a.Type.PutFloat(b, a.Value)
	return FormatFloat(a.Type, a.Value, b) + " : " + a.Type.String()
}

func (a Bool) String() string { return strconv.FormatBool(bool(a)) }

func (Unit) String() string { return "unit" }

func (a Str) String() string { return QuoteText(string(a)) }

func (a Sym) String() string { return SymbolText(string(a)) }

func (a TypeAttr) String() string { return a.Type.String() }

func (a Verbatim) String() string { return string(a) }

func (a Ints) String() string {
	if len(a) == 0 {
		return "array<i64>"
	}
	return "array<i64: " + JoinInts(a) + ">"
}

func (a Bools) String() string {
	if len(a) == 0 {
		return "array<i1>"
	}
	ss := make([]string, len(a))
	for i, v := range a {
		ss[i] = strconv.FormatBool(v)
	}
	return "array<i1: " + strings.Join(ss, ", ") + ">"
}

func (a Array) String() string {
	ss := make([]string, len(a))
	for i, v := range a {
		ss[i] = elementText(v)
	}
	return "[" + strings.Join(ss, ", ") + "]"
}

// elementText is a as an element of an array: the types that numbers have by
// default are left out there.
func elementText(a Attr) string {
	s := valueText(a)
	switch v := a.(type) {
	case Int:
		if v.Type == I64 {
			return strings.TrimSuffix(s, " : i64")
		}
	case Float:
		if v.Type == F64 && !strings.HasPrefix(s, "0x") {
			return strings.TrimSuffix(s, " : f64")
		}
	}
	return s
}

// valueText is a with the prefix of its dialect.
func valueText(a Attr) string {
	if s, ok := a.(*Sharding); ok {
		return "#sdy.sharding" + s.String()
	}
	return a.String()
}

func (a Dict) String() string { return Attrs(a).String() }

func (a Enum) String() string { return fmt.Sprintf("#%s<%s %s>", a.Dialect, a.Set, a.Value) }

func (a Dot) String() string {
	return structText("#stablehlo.dot<", field{"lhs_batching_dimensions", a.LhsBatch}, field{"rhs_batching_dimensions", a.RhsBatch},
		field{"lhs_contracting_dimensions", a.LhsContract}, field{"rhs_contracting_dimensions", a.RhsContract})
}

func (a GatherDims) String() string {
	return structText("#stablehlo.gather<", field{"offset_dims", a.OffsetDims}, field{"collapsed_slice_dims", a.CollapsedSliceDims},
		field{"operand_batching_dims", a.OperandBatchingDims}, field{"start_indices_batching_dims", a.StartIndicesBatchingDims},
		field{"start_index_map", a.StartIndexMap}, field{"index_vector_dim", a.IndexVectorDim})
}

func (a ScatterDims) String() string {
	return structText("#stablehlo.scatter<", field{"update_window_dims", a.UpdateWindowDims}, field{"inserted_window_dims", a.InsertedWindowDims},
		field{"input_batching_dims", a.InputBatchingDims}, field{"scatter_indices_batching_dims", a.ScatterIndicesBatchingDims},
		field{"scatter_dims_to_operand_dims", a.ScatterDimsToOperandDims}, field{"index_vector_dim", a.IndexVectorDim})
}

// convSides are the sides of ConvDims in order: the letters of their first and
// second dimension, and what the raw form calls their dimensions.
var convSides = [3]struct {
	Letters [2]byte
	Names   [3]string
}{
	{[2]byte{'b', 'f'}, [3]string{"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"}},
	{[2]byte{'i', 'o'}, [3]string{"kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions"}},
	{[2]byte{'b', 'f'}, [3]string{"output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"}},
}

// Sides are the sides of a, in order.
func (a ConvDims) Sides() [3]ConvSide { return [3]ConvSide{a.Input, a.Kernel, a.Output} }

// String is the short form, or the raw one where a dimension is missing or occurs
// twice.
func (a ConvDims) String() string {
	if text, ok := a.Short(); ok {
		return "#stablehlo.conv<" + text + ">"
	}
	var ss []string
	for i, s := range a.Sides() {
		n := convSides[i].Names
		ss = append(ss, fmt.Sprintf("%s = %d, %s = %d, %s = [%s]", n[0], s.First, n[1], s.Second, n[2], JoinInts(s.Spatial)))
	}
	return "#stablehlo.conv<raw " + strings.Join(ss, ", ") + ">"
}

// Short is a as [b, 0, f]x[0, i, o]->[b, 0, f]; false where a dimension is missing
// or occurs twice.
func (a ConvDims) Short() (string, bool) {
	var out [3]string
	for i, s := range a.Sides() {
		labels, ok := s.labels(i)
		if !ok {
			return "", false
		}
		out[i] = "[" + strings.Join(labels, ", ") + "]"
	}
	return out[0] + "x" + out[1] + "->" + out[2], true
}

// labels are what each dimension of side i is: b, f, i, o or the number of a
// spatial dimension.
func (s ConvSide) labels(i int) ([]string, bool) {
	labels := make([]string, len(s.Spatial)+2)
	ok := true
	put := func(d int, label string) {
		if d < 0 || d >= len(labels) || labels[d] != "" {
			ok = false
			return
		}
		labels[d] = label
	}
	put(s.First, string(convSides[i].Letters[0]))
	put(s.Second, string(convSides[i].Letters[1]))
	for k, d := range s.Spatial {
		put(d, strconv.Itoa(k))
	}
	return labels, ok
}

// Labels are the dimensions of each side as HLO writes them, b01f; false where one
// is missing or occurs twice.
func (a ConvDims) Labels() (out [3]string, ok bool) {
	for i, s := range a.Sides() {
		labels, ok := s.labels(i)
		if !ok {
			return out, false
		}
		out[i] = strings.Join(labels, "")
	}
	return out, true
}

// ConvSideOf is the inverse: side i (input, kernel, output) whose dimensions
// have these labels.
func ConvSideOf(i int, labels []string) (ConvSide, error) {
	s := ConvSide{First: -1, Second: -1, Spatial: slices.Repeat([]int{-1}, max(len(labels)-2, 0))}
	letters := convSides[i].Letters
	for d, label := range labels {
		k, err := strconv.Atoi(label)
		at := new(int)
		switch {
		case label == string(letters[0]):
			at = &s.First
		case label == string(letters[1]):
			at = &s.Second
		case err != nil || k < 0 || k >= len(s.Spatial):
			return s, fmt.Errorf("%q is no dimension: want %c, %c or a spatial dimension below %d", label, letters[0], letters[1], len(s.Spatial))
		default:
			at = &s.Spatial[k]
		}
		if *at != -1 {
			return s, fmt.Errorf("%s occurs twice", label)
		}
		*at = d
	}
	if s.First < 0 || s.Second < 0 || len(labels) < 2 {
		return s, fmt.Errorf("want both %c and %c", letters[0], letters[1])
	}
	return s, nil
}

// ConvNames is what the raw form of ConvDims calls the dimensions of each side.
func ConvNames() (names [3][3]string) {
	for i := range names {
		names[i] = convSides[i].Names
	}
	return names
}

func (a Channel) String() string {
	return fmt.Sprintf("#stablehlo.channel_handle<handle = %d, type = %d>", a.Handle, a.Type)
}

func (a MeshAxes) String() string {
	return fmt.Sprintf("#stablehlo.replica_group_mesh_axes<mesh = %s, axes = [%s]>", SymbolText(a.Mesh), axisRefsText(a.Axes))
}

func axisRefsText(rs []AxisRef) string {
	ss := make([]string, len(rs))
	for i, r := range rs {
		ss[i] = axisRefText(r)
	}
	return strings.Join(ss, ", ")
}

func (a AxisShift) String() string {
	axes, how := "axes = ["+axisRefsText(a.Axes)+"]", ""
	if len(a.Axes) == 1 {
		axes = "axis = " + axisRefText(a.Axes[0])
	}
	if a.Wrap {
		how += ", wrap"
	}
	if a.Reverse {
		how += ", reverse"
	}
	return fmt.Sprintf("#pp.axis_shift<mesh = %s, %s, shift = %d%s>", SymbolText(a.Mesh), axes, a.Shift, how)
}

// Inverse is the permute with the sources and targets of a exchanged.
func (a AxisShift) Inverse() AxisShift {
	if !a.Reverse {
		a.Shift = -a.Shift
	}
	return a
}

func (a AxisMove) String() string {
	return fmt.Sprintf("#pp.axis_move<mesh = %s, from = [%s], to = [%s]>", SymbolText(a.Mesh), axisRefsText(a.From), axisRefsText(a.To))
}

// Inverse is the permute with the sources and targets of a exchanged.
func (a AxisMove) Inverse() AxisMove { return AxisMove{a.Mesh, a.To, a.From} }

func (a PerValue) String() string {
	ss := make([]string, len(a))
	for i, s := range a {
		ss[i] = s.String()
	}
	return "#sdy.sharding_per_value<[" + strings.Join(ss, ", ") + "]>"
}

func axisRefText(r AxisRef) string {
	if r.Size == 0 {
		return fmt.Sprintf("#stablehlo.axis_ref<name = %s>", QuoteText(r.Name))
	}
	return fmt.Sprintf("#stablehlo.axis_ref<name = %s, sub_axis_info = (%d)%d>", QuoteText(r.Name), r.Pre, r.Size)
}

// A field is one entry of a struct-like attribute: []int or int.
type field struct {
	name  string
	value any
}

// structText prints what is not empty and not zero, as MLIR does.
func structText(open string, fields ...field) string {
	var ss []string
	for _, f := range fields {
		switch v := f.value.(type) {
		case []int:
			if len(v) > 0 {
				ss = append(ss, fmt.Sprintf("%s = [%s]", f.name, JoinInts(v)))
			}
		case int:
			if v != 0 {
				ss = append(ss, fmt.Sprintf("%s = %d", f.name, v))
			}
		}
	}
	return open + strings.Join(ss, ", ") + ">"
}

// JoinInts is a list of numbers in decimal, as text prints it.
func JoinInts(xs []int) string {
	ss := make([]string, len(xs))
	for i, x := range xs {
		ss[i] = strconv.Itoa(x)
	}
	return strings.Join(ss, ", ")
}

// QuoteText is s as MLIR writes strings: quotes and everything but printable
// ASCII as \XX.
func QuoteText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\':
			b.WriteString(`\\`)
		case c >= ' ' && c <= '~' && c != '"':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\%02X`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// SymbolText is the symbol name as MLIR writes it: @name or @"any text".
func SymbolText(name string) string {
	if isBare(name) {
		return "@" + name
	}
	return "@" + QuoteText(name)
}

// isBare reports whether MLIR writes name without quotes.
func isBare(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || !(c == '$' || c == '.' || '0' <= c && c <= '9')) {
			return false
		}
	}
	return name != ""
}

// A NamedAttr is one entry of an [Attrs].
type NamedAttr struct {
	Name string
	Attr Attr
}

// Attrs is a set of named attributes, sorted by name. The zero Attrs is empty.
type Attrs []NamedAttr

// fewAttrs is up to how many it takes less time to compare a name with each than to
// search: names of different lengths differ at once.
const fewAttrs = 16

func (as Attrs) find(name string) (int, bool) {
	return slices.BinarySearchFunc(as, name, func(a NamedAttr, n string) int { return cmp.Compare(a.Name, n) })
}

// Get returns the attribute called name, or nil.
func (as Attrs) Get(name string) Attr {
	if len(as) > fewAttrs {
		if i, ok := as.find(name); ok {
			return as[i].Attr
		}
		return nil
	}
	for i := range as {
		if as[i].Name == name {
			return as[i].Attr
		}
	}
	return nil
}

// Has reports whether there is an attribute called name.
func (as Attrs) Has(name string) bool { return as.Get(name) != nil }

// Set makes a the attribute called name. It copies, so that as may be shared.
func (as *Attrs) Set(name string, a Attr) {
	i, ok := as.find(name)
	c := slices.Clone(*as)
	if ok {
		c[i].Attr = a
	} else {
		c = slices.Insert(c, i, NamedAttr{name, a})
	}
	*as = c
}

// ShareAttrs makes the attributes of ops that have the same the same memory, by which
// those who keep what they know of ops tell that they are alike. Literals are not
// compared.
func (m *Module) ShareAttrs() {
	shared := make(map[string]Attrs)
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		f.Body.Walk(func(op *Op) {
			if len(op.Attrs) == 0 || slices.ContainsFunc(op.Attrs, func(a NamedAttr) bool { return Is[*Literal](a.Attr) }) {
				return
			}
			text := op.Attrs.String()
			as, ok := shared[text]
			if !ok {
				as = op.Attrs
				shared[text] = as
			}
			op.Attrs = as
		})
	}
}

// Delete drops the attribute called name, if it is there.
func (as *Attrs) Delete(name string) {
	if i, ok := as.find(name); ok {
		*as = slices.Delete(slices.Clone(*as), i, i+1)
	}
}

// String is the set as MLIR writes dictionaries: {a = 1 : i64, b}.
func (as Attrs) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, a := range as {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(a.String())
	}
	b.WriteByte('}')
	return b.String()
}

// String is one entry: name = value, or the name alone of a unit attribute.
func (a NamedAttr) String() string {
	name := a.Name
	if !isBare(name) {
		name = QuoteText(name)
	}
	if _, ok := a.Attr.(Unit); ok {
		return name
	}
	return name + " = " + valueText(a.Attr)
}

// The typed getters return the zero value where the attribute is not there or
// is of another type.

// Int is the integer called name, 1 for a boolean that is true; 0 if there is
// none.
func (as Attrs) Int(name string) int {
	switch v := as.Get(name).(type) {
	case Int:
		return v.Value
	case Bool:
		if v {
			return 1
		}
	}
	return 0
}

// Float reads integers too.
func (as Attrs) Float(name string) float64 {
	switch v := as.Get(name).(type) {
	case Float:
		return v.Value
	case Int:
		return float64(v.Value)
	}
	return 0
}

// Bool is the boolean called name; a unit attribute and a nonzero integer are true,
// an absent one false.
func (as Attrs) Bool(name string) bool {
	switch v := as.Get(name).(type) {
	case Bool:
		return bool(v)
	case Unit:
		return true
	case Int:
		return v.Value != 0
	}
	return false
}

// Str is the string called name, "" if there is none.
func (as Attrs) Str(name string) string {
	v, _ := as.Get(name).(Str)
	return string(v)
}

// Sym is the symbol called name, without its @; "" if there is none.
func (as Attrs) Sym(name string) string {
	v, _ := as.Get(name).(Sym)
	return string(v)
}

// Ints reads array<i64: …> and one-dimensional dense integers alike.
func (as Attrs) Ints(name string) []int {
	switch v := as.Get(name).(type) {
	case Ints:
		return v
	case *Literal:
		out := make([]int, v.Type.NumElements())
		for i := range out {
			out[i] = int(v.Int(i))
		}
		return out
	}
	return nil
}

// Word is the value of an enum.
func (as Attrs) Word(name string) string {
	switch v := as.Get(name).(type) {
	case Enum:
		return v.Value
	case Str:
		return string(v)
	}
	return ""
}

// Literal is the constant called name, nil if there is none.
func (as Attrs) Literal(name string) *Literal {
	v, _ := as.Get(name).(*Literal)
	return v
}

// UnquotedText is the value of a string in quotes: \n, \t, \\, \" and \XX. It may be a
// part of t.
func UnquotedText(t string) string {
	t = t[1 : len(t)-1]
	if strings.IndexByte(t, '\\') < 0 {
		return t
	}
	var b strings.Builder
	for i := 0; i < len(t); i++ {
		c := t[i]
		if c != '\\' || i+1 >= len(t) {
			b.WriteByte(c)
			continue
		}
		i++
		switch {
		case i+1 < len(t) && isHexDigit(t[i]) && isHexDigit(t[i+1]):
			b.WriteByte(hexDigit(t[i])<<4 | hexDigit(t[i+1]))
			i++
		case t[i] == 'n':
			b.WriteByte('\n')
		case t[i] == 't':
			b.WriteByte('\t')
		default:
			b.WriteByte(t[i])
		}
	}
	return b.String()
}

func hexDigit(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}

func isHexDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
