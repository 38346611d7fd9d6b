package dialect

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ppc/ir"
)

// ruleText is a rule as Shardy prints it: ([i, k], [k, j])->([i, j]), sizes,
// then the factors of each type but PassThrough.
func ruleText(f *ir.Factors) string {
	name := func(k int) string { return string(rune('a' + k)) }
	side := func(ts [][][]int) string {
		var tensors []string
		for _, dims := range ts {
			var ds []string
			for _, ks := range dims {
				s := ""
				for _, k := range ks {
					s += name(k)
				}
				ds = append(ds, s)
			}
			tensors = append(tensors, "["+strings.Join(ds, ", ")+"]")
		}
		return "(" + strings.Join(tensors, ", ") + ")"
	}
	s := side(f.Operands) + "->" + side(f.Results)
	for k, n := range f.Sizes {
		s += fmt.Sprintf(" %s=%d", name(k), n)
		s += [...]string{"", "+", "!", "~"}[f.Types[k]]
	}
	return s
}

// The rule of a reshape has a factor for each size that both sides have in common.
func TestReshapeFactors(t *testing.T) {
	for _, c := range []struct {
		in, out []int
		want    string
	}{
		{[]int{8}, []int{2, 4}, "([ab])->([a, b]) a=2 b=4"},
		{[]int{2, 4}, []int{8}, "([a, b])->([ab]) a=2 b=4"},
		{[]int{2, 1, 4}, []int{2, 4, 1}, "([a, , b])->([a, b, ]) a=2 b=4"},
		{[]int{4, 6}, []int{8, 3}, "([a, bc])->([ab, c]) a=4 b=2 c=3"},
		{[]int{2, 3}, []int{3, 2}, "([a, c])->([b, d]) a=2! b=3! c=3! d=2!"},
		{[]int{5, 2, 3}, []int{5, 3, 2}, "([a, b, d])->([a, c, e]) a=5 b=2! c=3! d=3! e=2!"},
		{nil, []int{1, 1}, "([])->([, ])"},
	} {
		f := ir.NewFunc("main")
		x := f.NewArg(f.Body, ir.Tensor(ir.F32, c.in...), "x")
		op := &ir.Op{Kind: ir.Reshape, Operands: []*ir.Value{x}, Results: []*ir.Value{f.NewValue(ir.Tensor(ir.F32, c.out...), "")}}
		if got := ruleText(ir.FactorsOf(op)); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.in, c.out, got, c.want)
		}
	}
}

// A gather reduces over the dimensions from which one element is taken.
func TestGatherFactors(t *testing.T) {
	f := ir.NewFunc("main")
	table, tokens := f.NewArg(f.Body, ir.Tensor(ir.F32, 32, 8), "table"), f.NewArg(f.Body, ir.Tensor(ir.I32, 2, 4), "tokens")
	op := ir.NewBuilder(f).Emit(ir.Gather, []*ir.Value{table, tokens}, ir.AttrsOf(
		ir.NamedAttr{Name: "dimension_numbers", Attr: ir.GatherDims{OffsetDims: []int{2}, CollapsedSliceDims: []int{0}, StartIndexMap: []int{0}, IndexVectorDim: 2}},
		ir.NamedAttr{Name: "slice_sizes", Attr: ir.Ints{1, 8}}), nil, nil)
	if got, want := ruleText(ir.FactorsOf(op)), "([d, c], [a, b])->([a, b, c]) a=2 b=4 c=8 d=32+"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The window of a scatter that is as large as a dimension passes through it
// where a clamp says that no index moves it.
func TestScatterFactors(t *testing.T) {
	for _, c := range []struct {
		least int
		most  []int
		want  ir.FactorType
	}{{0, []int{3, 0}, ir.PassThrough}, {0, []int{3, 1}, ir.NeedReplication}, {-1, []int{3, 0}, ir.NeedReplication}} {
		f := ir.NewFunc("main")
		b := ir.NewBuilder(f)
		x, at, rows := f.NewArg(f.Body, ir.Tensor(ir.F32, 4, 8), "x"), f.NewArg(f.Body, ir.Tensor(ir.I32, 2, 2), "at"), f.NewArg(f.Body, ir.Tensor(ir.F32, 2, 1, 8), "rows")
		at = b.Emit(ir.Clamp, []*ir.Value{b.Const(ir.Ints64(ir.Tensor(ir.I32), c.least)), at, b.Broadcast(b.Const(ir.Ints64(ir.Tensor(ir.I32, 2), c.most...)), at.Type.Shape, 1)}, nil, nil, nil).Result()
		rule := ir.FactorsOf(b.Emit(ir.Scatter, []*ir.Value{x, at, rows}, ir.AttrsOf(
			ir.NamedAttr{Name: "scatter_dimension_numbers", Attr: ir.ScatterDims{UpdateWindowDims: []int{1, 2}, ScatterDimsToOperandDims: []int{0, 1}, IndexVectorDim: 1}}),
			[]*ir.Block{b.Combiner(ir.Add, ir.F32)}, nil))
		if k := rule.Operands[0][1][0]; rule.Types[k] != c.want || slices.Equal(rule.Operands[2][2], []int{k}) != (c.want == ir.PassThrough) {
			t.Errorf("between %d and %d: %s", c.least, c.most, ruleText(rule))
		}
	}
}

// A dimension passes through a window of one element where the k-th window is
// element k of it however large it is, which its sizes alone do not say.
func TestWindowFactors(t *testing.T) {
	for _, c := range []struct{ size, stride, base, want int }{
		{1, 1, 1, 0}, {8, 1, 1, 0}, {8, 2, 2, 0},
		{1, 2, 1, '~'}, // of two elements, it would make one
		{2, 2, 3, '~'}, // the second one is padding
		{8, 2, 1, '~'},
	} {
		f := ir.NewFunc("main")
		b := ir.NewBuilder(f)
		x, init := f.NewArg(f.Body, ir.Tensor(ir.F32, c.size), "x"), f.NewArg(f.Body, ir.Tensor(ir.F32), "init")
		op := b.Emit(ir.ReduceWindow, []*ir.Value{x, init}, ir.AttrsOf(ir.NamedAttr{Name: "window_dimensions", Attr: ir.Ints{1}},
			ir.NamedAttr{Name: "window_strides", Attr: ir.Ints{c.stride}}, ir.NamedAttr{Name: "base_dilations", Attr: ir.Ints{c.base}}), []*ir.Block{b.Combiner(ir.Add, ir.F32)}, nil)
		want := fmt.Sprintf("([a], [])->([a]) a=%d", op.Result().Type.Shape[0])
		if c.want != 0 {
			want += string(rune(c.want))
		}
		if got := ruleText(ir.FactorsOf(op)); got != want {
			t.Errorf("%d elements, stride %d, base %d: %s, want %s", c.size, c.stride, c.base, got, want)
		}
	}
}

// Sub-axes are merged and split like digits in mixed radix.
func TestSubAxes(t *testing.T) {
	m := &ir.Mesh{Name: "mesh", Axes: []ir.MeshAxis{{Name: "x", Size: 8}, {Name: "y", Size: 2}}}
	x12, x22, x42 := ir.AxisRef{Name: "x", Pre: 1, Size: 2}, ir.AxisRef{Name: "x", Pre: 2, Size: 2}, ir.AxisRef{Name: "x", Pre: 4, Size: 2}
	if got := m.JoinAxes([]ir.AxisRef{ir.Ax("y"), x12}, []ir.AxisRef{x22, x42}); fmt.Sprint(got) != `["y" "x"]` {
		t.Errorf("joined %v", got)
	}
	if got, ok := m.PrefixOutside(ir.Ax("x"), []ir.AxisRef{x42}); !ok || got != (ir.AxisRef{Name: "x", Pre: 1, Size: 4}) {
		t.Errorf("prefix %v, %v", got, ok)
	}
	if _, ok := m.PrefixOutside(ir.Ax("x"), []ir.AxisRef{x12}); ok {
		t.Errorf("a prefix that is not there")
	}
	if !m.IsPrefix(x12, ir.Ax("x")) || m.IsPrefix(x22, ir.Ax("x")) || !m.Contains(ir.Ax("x"), x22) || m.Contains(x12, x22) {
		t.Errorf("prefixes or parts of sub-axes")
	}
}
