package eval

import (
	"testing"

	"ppc/ir"
)

// ints returns an i32 literal.
func ints(shape []int, vs ...int) *ir.Literal { return ir.Ints64(ir.Tensor(ir.I32, shape...), vs...) }

// count returns the i32 literal 1, 2, 3, … of the given shape.
func count(shape ...int) *ir.Literal {
	vs := make([]int, ir.Product(shape))
	for i := range vs {
		vs[i] = i + 1
	}
	return ints(shape, vs...)
}

func attrs(nameValue ...any) ir.Attrs {
	var as ir.Attrs
	for i := 0; i < len(nameValue); i += 2 {
		as.Set(nameValue[i].(string), nameValue[i+1].(ir.Attr))
	}
	return as
}

type values = []*ir.Value

// An opCase is a function built from arguments, and what it returns.
type opCase struct {
	name  string
	args  []*ir.Literal
	build func(b *ir.Builder, in values) values
	want  []*ir.Literal
}

// run evaluates c.
func (c opCase) run(t *testing.T) {
	var params []*ir.Type
	for _, a := range c.args {
		params = append(params, a.Type)
	}
	out := evaluate(t, program(c.build, params...), Options{}, c.args...)
	if len(out) != len(c.want) {
		t.Fatalf("%d results, want %d", len(out), len(c.want))
	}
	for i, w := range c.want {
		equal(t, out[i], w)
	}
}

func lits(ls ...*ir.Literal) []*ir.Literal { return ls }

func elementwiseCases() []opCase {
	f4 := []int{4}
	return []opCase{
		{"is_finite", lits(floats(ir.F32, f4, 1, inf, nan, -inf)),
			func(b *ir.Builder, in values) values {
				return b.Emit(ir.IsFinite, in, nil, nil, nil).Results
			}, lits(ir.Ints64(ir.Tensor(ir.I1, 4), 1, 0, 0, 0))},
		{"compare NaN", lits(floats(ir.F32, f4, 1, nan, nan, 2), floats(ir.F32, f4, 1, nan, 0, 3)),
			func(b *ir.Builder, in values) values {
				return values{b.Compare("EQ", in[0], in[1]), b.Compare("NE", in[0], in[1]), b.Compare("LT", in[0], in[1]), b.Compare("GE", in[0], in[1])}
			}, lits(ir.Ints64(ir.Tensor(ir.I1, 4), 1, 0, 0, 0), ir.Ints64(ir.Tensor(ir.I1, 4), 0, 1, 1, 1),
				ir.Ints64(ir.Tensor(ir.I1, 4), 0, 0, 0, 1), ir.Ints64(ir.Tensor(ir.I1, 4), 1, 0, 0, 0))},
		{"compare TOTALORDER", lits(floats(ir.F32, f4, -inf, nan, 0, 1), floats(ir.F32, f4, 1, inf, 0, 1)),
			func(b *ir.Builder, in values) values {
				return b.Emit(ir.Compare, in, attrs("comparison_direction", ir.HLOEnum("comparison_direction", "GT"),
					"compare_type", ir.HLOEnum("comparison_type", "TOTALORDER")), nil, nil).Results
			}, lits(ir.Ints64(ir.Tensor(ir.I1, 4), 0, 1, 0, 0))},
		{"select", lits(ir.Ints64(ir.Tensor(ir.I1, 2), 1, 0), ints([]int{2}, 1, 2), ints([]int{2}, 3, 4), ir.Ints64(ir.Tensor(ir.I1), 0)),
			func(b *ir.Builder, in values) values {
				return values{b.Select(in[0], in[1], in[2]), b.Select(in[3], in[1], in[2])}
			}, lits(ints([]int{2}, 1, 4), ints([]int{2}, 3, 4))},
		{"clamp", lits(ints(nil, 0), ints(f4, -1, 0, 5, 9), ints(nil, 7)),
			func(b *ir.Builder, in values) values { return b.Emit(ir.Clamp, in, nil, nil, nil).Results },
			lits(ints(f4, 0, 0, 5, 7))},
		{"convert from float", lits(floats(ir.F32, []int{6}, -1.9, 1.9, 300, -1e30, inf, nan)),
			func(b *ir.Builder, in values) values {
				return values{b.Convert(in[0], ir.I8), b.Convert(in[0], ir.UI8), b.Convert(in[0], ir.I1), b.Convert(in[0], ir.I64)}
			}, lits(ir.Ints64(ir.Tensor(ir.I8, 6), -1, 1, 127, -128, 127, 0), ir.Ints64(ir.Tensor(ir.UI8, 6), 0, 1, 255, 0, 255, 0),
				ir.Ints64(ir.Tensor(ir.I1, 6), 1, 1, 1, 1, 1, 1), ir.Ints64(ir.Tensor(ir.I64, 6), -1, 1, 300, -1<<63, 1<<63-1, 0))},
		{"convert rounds once", lits(ir.Ints64(ir.Tensor(ir.I64, 2), 1<<62+1<<38+1, 1<<62+1<<38)),
			func(b *ir.Builder, in values) values { return values{b.Convert(in[0], ir.F32)} },
			lits(floats(ir.F32, []int{2}, 1<<62+1<<39, 1<<62))},
		{"convert wraps", lits(ints(f4, 256, -1, 128, 2)),
			func(b *ir.Builder, in values) values {
				return values{b.Convert(in[0], ir.I8), b.Convert(in[0], ir.UI8), b.Convert(in[0], ir.I1), b.Convert(in[0], ir.C64)}
			}, lits(ir.Ints64(ir.Tensor(ir.I8, 4), 0, -1, -128, 2), ir.Ints64(ir.Tensor(ir.UI8, 4), 0, 255, 128, 2), ir.Ints64(ir.Tensor(ir.I1, 4), 1, 1, 1, 1),
				floats(ir.C64, f4, 256, -1, 128, 2))},
		{"bitcast_convert", lits(floats(ir.F32, []int{1}, 1), ir.Ints64(ir.Tensor(ir.I16, 1, 2), 0, 0x3f80)),
			func(b *ir.Builder, in values) values {
				return values{
					b.Emit(ir.BitcastConvert, in[:1], nil, nil, []*ir.Type{ir.Tensor(ir.I32, 1)}).Results[0],
					b.Emit(ir.BitcastConvert, in[:1], nil, nil, []*ir.Type{ir.Tensor(ir.UI8, 1, 4)}).Results[0],
					b.Emit(ir.BitcastConvert, in[1:], nil, nil, []*ir.Type{ir.Tensor(ir.F32, 1)}).Results[0],
				}
			}, lits(ints([]int{1}, 0x3f800000), ir.Ints64(ir.Tensor(ir.UI8, 1, 4), 0, 0, 0x80, 0x3f), floats(ir.F32, []int{1}, 1))},
		{"reduce_precision", lits(floats(ir.F32, f4, 1.0000001, 1e30, 1e-30, 1.0625)),
			func(b *ir.Builder, in values) values {
				return b.Emit(ir.ReducePrecision, in, attrs("exponent_bits", ir.I64Attr(5), "mantissa_bits", ir.I64Attr(3)), nil, nil).Results
			}, lits(floats(ir.F32, f4, 1, inf, 0, 1))},
	}
}

func movementCases() []opCase {
	x23 := count(2, 3)
	return []opCase{
		{"iota", nil, func(b *ir.Builder, in values) values {
			return values{b.Iota(ir.Tensor(ir.I32, 2, 3), 1), b.Iota(ir.Tensor(ir.F32, 2, 2), 0)}
		}, lits(ints([]int{2, 3}, 0, 1, 2, 0, 1, 2), floats(ir.F32, []int{2, 2}, 0, 0, 1, 1))},
		{"broadcast_in_dim", lits(ints([]int{2, 1}, 1, 2)), func(b *ir.Builder, in values) values {
			return values{b.Broadcast(in[0], []int{2, 3}, 0, 1), b.Broadcast(in[0], []int{3, 2}, 1, 0)}
		}, lits(ints([]int{2, 3}, 1, 1, 1, 2, 2, 2), ints([]int{3, 2}, 1, 2, 1, 2, 1, 2))},
		{"concatenate", lits(x23, ints([]int{2, 1}, 7, 8)), func(b *ir.Builder, in values) values { return values{b.Concat(1, in...)} },
			lits(ints([]int{2, 4}, 1, 2, 3, 7, 4, 5, 6, 8))},
		{"dynamic_slice clamps", lits(x23, ints(nil, 5), ints(nil, -5)), func(b *ir.Builder, in values) values {
			return values{b.DynamicSlice(in[0], in[1:], 1, 2)}
		}, lits(ints([]int{1, 2}, 4, 5))},
		{"dynamic_update_slice clamps", lits(x23, ints([]int{1, 2}, 8, 9), ints(nil, -1), ints(nil, 2)), func(b *ir.Builder, in values) values {
			return values{b.DynamicUpdateSlice(in[0], in[1], in[2:])}
		}, lits(ints([]int{2, 3}, 1, 8, 9, 4, 5, 6))},
		{"pad", lits(count(3), ints(nil, 0)), func(b *ir.Builder, in values) values {
			one := func(low, high, interior int) *ir.Value {
				return b.Pad(in[0], in[1], []int{low}, []int{high}, []int{interior})
			}
			return values{one(1, 2, 0), one(0, 0, 1), one(-1, -1, 0), one(-1, 1, 1), one(-3, 0, 0), one(1, -2, 2)}
		}, lits(ints([]int{6}, 0, 1, 2, 3, 0, 0), ints([]int{5}, 1, 0, 2, 0, 3), ints([]int{1}, 2), ints([]int{5}, 0, 2, 0, 3, 0),
			ints([]int{0}), ints([]int{6}, 0, 1, 0, 0, 2, 0))},
		{"pad 2d", lits(x23, ints(nil, -1)), func(b *ir.Builder, in values) values {
			return values{b.Pad(in[0], in[1], []int{0, -1}, []int{1, 0}, []int{0, 0})}
		}, lits(ints([]int{3, 2}, 2, 3, 5, 6, -1, -1))},
		{"reshape", lits(x23), func(b *ir.Builder, in values) values { return values{b.Reshape(in[0], 3, 2)} }, lits(count(3, 2))},
		{"reverse", lits(x23), func(b *ir.Builder, in values) values {
			return values{b.Emit(ir.Reverse, in, attrs("dimensions", ir.Ints{1}), nil, nil).Result(), b.Emit(ir.Reverse, in, attrs("dimensions", ir.Ints{0, 1}), nil, nil).Result()}
		}, lits(ints([]int{2, 3}, 3, 2, 1, 6, 5, 4), ints([]int{2, 3}, 6, 5, 4, 3, 2, 1))},
		{"slice", lits(count(3, 4)), func(b *ir.Builder, in values) values {
			return b.Emit(ir.Slice, in, attrs("start_indices", ir.Ints{1, 0}, "limit_indices", ir.Ints{3, 4}, "strides", ir.Ints{1, 3}), nil, nil).Results
		}, lits(ints([]int{2, 2}, 5, 8, 9, 12))},
		{"transpose", lits(x23), func(b *ir.Builder, in values) values { return values{b.Transpose(in[0], 1, 0)} },
			lits(ints([]int{3, 2}, 1, 4, 2, 5, 3, 6))},
		{"transpose 3d", lits(count(2, 1, 3)), func(b *ir.Builder, in values) values { return values{b.Transpose(in[0], 2, 0, 1)} },
			lits(ints([]int{3, 2, 1}, 1, 4, 2, 5, 3, 6))},
	}
}

func dotCases() []opCase {
	return []opCase{
		{"dot_general of matrices", lits(count(2, 3), count(3, 2)), func(b *ir.Builder, in values) values {
			return values{b.Dot(in[0], in[1], ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}})}
		}, lits(ints([]int{2, 2}, 22, 28, 49, 64))},
		{"dot_general transposed and batched", lits(count(2, 2, 2), count(2, 2, 2)), func(b *ir.Builder, in values) values {
			return values{b.Dot(in[0], in[1], ir.Dot{LhsBatch: []int{1}, RhsBatch: []int{0}, LhsContract: []int{2}, RhsContract: []int{2}})}
		}, lits(ints([]int{2, 2, 2}, 5, 11, 17, 39, 39, 53, 83, 113))},
		{"dot_general without contraction", lits(count(2), count(3)), func(b *ir.Builder, in values) values { return values{b.Dot(in[0], in[1], ir.Dot{})} },
			lits(ints([]int{2, 3}, 1, 2, 3, 2, 4, 6))},
		{"dot_general with two contracted", lits(count(2, 3), count(3, 2)), func(b *ir.Builder, in values) values {
			return values{b.Dot(in[0], in[1], ir.Dot{LhsContract: []int{0, 1}, RhsContract: []int{1, 0}})}
		}, lits(ints(nil, 1*1+2*3+3*5+4*2+5*4+6*6))},
		{"dot_general rounded once", lits(floats(ir.BF16, []int{5}, 256, 1, 1, 1, 1), floats(ir.BF16, []int{5}, 1, 1, 1, 1, 1)), func(b *ir.Builder, in values) values {
			return values{b.Dot(in[0], in[1], ir.Dot{LhsContract: []int{0}, RhsContract: []int{0}})}
		}, lits(floats(ir.BF16, nil, 260))},
		{"dot_general to a wider type", lits(ir.Ints64(ir.Tensor(ir.I8, 2), 100, 100), ir.Ints64(ir.Tensor(ir.I8, 2), 100, 100)), func(b *ir.Builder, in values) values {
			return b.Emit(ir.DotGeneral, in, attrs("dot_dimension_numbers", ir.Dot{LhsContract: []int{0}, RhsContract: []int{0}}), nil, []*ir.Type{ir.Tensor(ir.I32)}).Results
		}, lits(ints(nil, 20000))},
		{"dot_general of nothing", lits(ints([]int{0, 2}), ints([]int{0, 2})), func(b *ir.Builder, in values) values {
			return values{b.Dot(in[0], in[1], ir.Dot{LhsContract: []int{0}, RhsContract: []int{0}})}
		}, lits(ints([]int{2, 2}, 0, 0, 0, 0))},
	}
}

// argmax returns a region of pairs (value, index) that keeps the larger value,
// the smaller index of equal ones.
func argmax(b *ir.Builder) *ir.Block {
	r := new(ir.Block)
	var a values
	for range 4 {
		a = append(a, b.Func.NewArg(r, ir.Tensor(ir.I32), ""))
	}
	in := b.In(r)
	p := in.Compare("GE", a[0], a[2])
	in.Emit(ir.Return, values{in.Select(p, a[0], a[2]), in.Select(p, a[1], a[3])}, nil, nil, nil)
	return r
}

// called returns a region that adds two numbers by calling a function, so that
// it is no row of elementwise ops.
func viaIf(b *ir.Builder) *ir.Block {
	r := new(ir.Block)
	x, y := b.Func.NewArg(r, ir.Tensor(ir.I32), ""), b.Func.NewArg(r, ir.Tensor(ir.I32), "")
	in := b.In(r)
	branch := func(v *ir.Value) *ir.Block {
		s := new(ir.Block)
		b.In(s).Emit(ir.Return, values{v}, nil, nil, nil)
		return s
	}
	sum := in.Add(x, y)
	op := in.Emit(ir.If, values{in.Compare("GT", sum, x)}, nil, []*ir.Block{branch(sum), branch(x)}, []*ir.Type{ir.Tensor(ir.I32)})
	in.Emit(ir.Return, op.Results, nil, nil, nil)
	return r
}

func reduceCases() []opCase {
	return []opCase{
		{"reduce by add", lits(count(2, 3), ints(nil, 10)), func(b *ir.Builder, in values) values {
			return values{b.Reduce(ir.Add, in[0], in[1], 1), b.Reduce(ir.Add, in[0], in[1], 0), b.Reduce(ir.Add, in[0], in[1], 0, 1), b.Reduce(ir.Add, in[0], in[1])}
		}, lits(ints([]int{2}, 16, 25), ints([]int{3}, 15, 17, 19), ints(nil, 31), ints([]int{2, 3}, 11, 12, 13, 14, 15, 16))},
		{"reduce rounds once", lits(floats(ir.BF16, []int{4}, 256, 1, 1, 1), floats(ir.BF16, nil, 0)), func(b *ir.Builder, in values) values {
			return values{b.Reduce(ir.Add, in[0], in[1], 0)}
		}, lits(floats(ir.BF16, nil, 260))},
		{"reduce by argmax", lits(ints([]int{2, 3}, 1, 5, 5, 9, 2, 9), ints(nil, -100), ints(nil, -1)), func(b *ir.Builder, in values) values {
			i := b.Iota(in[0].Type, 1)
			return b.Emit(ir.Reduce, values{in[0], i, in[1], in[2]}, attrs("dimensions", ir.Ints{1}), []*ir.Block{argmax(b)}, nil).Results
		}, lits(ints([]int{2}, 5, 9), ints([]int{2}, 1, 0))},
		{"reduce by a region with control flow", lits(ints([]int{2, 3}, 1, -2, 3, -4, -5, 6), ints(nil, 0)), func(b *ir.Builder, in values) values {
			return b.Emit(ir.Reduce, in, attrs("dimensions", ir.Ints{1}), []*ir.Block{viaIf(b)}, nil).Results
		}, lits(ints([]int{2}, 4, 6))},
		{"reduce to arguments crosswise", lits(count(3), ints([]int{3}, 7, 8, 9), ints(nil, 0)), func(b *ir.Builder, in values) values {
			i32 := ir.Tensor(ir.I32)
			swap := region(b, ir.Return, func(b *ir.Builder, x values) values { return values{x[3], x[2]} }, i32, i32, i32, i32)
			return b.Emit(ir.Reduce, values{in[0], in[1], in[2], in[2]}, attrs("dimensions", ir.Ints{0}), []*ir.Block{swap}, nil).Results
		}, lits(ints(nil, 9), ints(nil, 3))},
		{"reduce of nothing", lits(ints([]int{0, 2}), ints(nil, 7)), func(b *ir.Builder, in values) values { return values{b.Reduce(ir.Add, in[0], in[1], 0)} },
			lits(ints([]int{2}, 7, 7))},
		{"reduce_window", lits(count(4), ints(nil, 0)), func(b *ir.Builder, in values) values {
			return b.Emit(ir.ReduceWindow, in, attrs("window_dimensions", ir.Ints{2}, "window_strides", ir.Ints{2}, "base_dilations", ir.Ints{2}, "window_dilations", ir.Ints{2},
				"padding", ir.Ints64(ir.Tensor(ir.I64, 1, 2), 2, 1)), []*ir.Block{b.Combiner(ir.Add, ir.I32)}, nil).Results
		}, lits(ints([]int{4}, 1, 3, 5, 7))}, // 0 0 1 0 2 0 3 0 4 0
		{"reduce_window 2d", lits(count(3, 3), ints(nil, -9)), func(b *ir.Builder, in values) values {
			return b.Emit(ir.ReduceWindow, in, attrs("window_dimensions", ir.Ints{2, 2}), []*ir.Block{b.Combiner(ir.Maximum, ir.I32)}, nil).Results
		}, lits(ints([]int{2, 2}, 5, 6, 8, 9))},
	}
}

// More elements than a body holds at once: parts join without a seam.
func wideCases() []opCase {
	n := 2*maxWidth + 5
	return []opCase{{"reduce of many", lits(count(2, n), ints(nil, 0)), func(b *ir.Builder, in values) values {
		row := b.Reshape(b.SliceDim(in[0], 0, 0, 1), n)
		return values{b.Sub(b.Reduce(ir.Add, in[0], in[1], 0), b.Add(row, row))}
	}, lits(ir.SplatOf(ir.Tensor(ir.I32, n), float64(n)))}}
}

func sortCases() []opCase {
	less := func(b *ir.Builder, direction string, operands int) *ir.Block {
		r := new(ir.Block)
		var a values
		for range 2 * operands {
			a = append(a, b.Func.NewArg(r, ir.Tensor(ir.I32), ""))
		}
		in := b.In(r)
		in.Emit(ir.Return, values{in.Compare(direction, a[0], a[1])}, nil, nil, nil)
		return r
	}
	return []opCase{
		{"sort of rows", lits(ints([]int{2, 3}, 3, 1, 2, 6, 5, 4)), func(b *ir.Builder, in values) values {
			return b.Emit(ir.Sort, in, attrs("dimension", ir.I64Attr(1), "is_stable", ir.Bool(true)), []*ir.Block{less(b, "LT", 1)}, nil).Results
		}, lits(ints([]int{2, 3}, 1, 2, 3, 4, 5, 6))},
		{"sort of columns, stable, two operands", lits(ints([]int{3, 1}, 1, 2, 1), ints([]int{3, 1}, 7, 8, 9)), func(b *ir.Builder, in values) values {
			return b.Emit(ir.Sort, in, attrs("dimension", ir.I64Attr(0), "is_stable", ir.Bool(true)), []*ir.Block{less(b, "GT", 2)}, nil).Results
		}, lits(ints([]int{3, 1}, 2, 1, 1), ints([]int{3, 1}, 8, 7, 9))},
	}
}

func indexingCases() []opCase {
	return []opCase{
		{"gather rows", lits(count(3, 2), ints([]int{2, 1}, 2, 9)), func(b *ir.Builder, in values) values {
			return b.Emit(ir.Gather, in, attrs("dimension_numbers", ir.GatherDims{OffsetDims: []int{1}, CollapsedSliceDims: []int{0}, StartIndexMap: []int{0}, IndexVectorDim: 1},
				"slice_sizes", ir.Ints{1, 2}), nil, nil).Results
		}, lits(ints([]int{2, 2}, 5, 6, 5, 6))},
		{"gather elements, indices in columns", lits(count(2, 3), ints([]int{2, 2}, 0, 1, 2, -1)), func(b *ir.Builder, in values) values {
			return b.Emit(ir.Gather, in, attrs("dimension_numbers", ir.GatherDims{CollapsedSliceDims: []int{0, 1}, StartIndexMap: []int{0, 1}, IndexVectorDim: 0},
				"slice_sizes", ir.Ints{1, 1}), nil, nil).Results
		}, lits(ints([]int{2}, 3, 4))},
		{"gather windows before batch", lits(count(4), ints([]int{2}, 0, 2)), func(b *ir.Builder, in values) values {
			return b.Emit(ir.Gather, in, attrs("dimension_numbers", ir.GatherDims{OffsetDims: []int{0}, StartIndexMap: []int{0}, IndexVectorDim: 1},
				"slice_sizes", ir.Ints{2}), nil, nil).Results
		}, lits(ints([]int{2, 2}, 1, 3, 2, 4))},
		{"gather batched", lits(count(2, 3), ints([]int{2, 1}, 2, 0)), func(b *ir.Builder, in values) values {
			return b.Emit(ir.Gather, in, attrs("dimension_numbers", ir.GatherDims{CollapsedSliceDims: []int{1}, OperandBatchingDims: []int{0}, StartIndicesBatchingDims: []int{0},
				StartIndexMap: []int{1}, IndexVectorDim: 1}, "slice_sizes", ir.Ints{1, 1}), nil, nil).Results
		}, lits(ints([]int{2}, 3, 4))},
		{"scatter add rows, one outside", lits(count(3, 2), ints([]int{3, 1}, 2, 0, 3), ints([]int{3, 2}, 10, 20, 30, 40, 50, 60)), func(b *ir.Builder, in values) values {
			return b.Emit(ir.Scatter, in, attrs("scatter_dimension_numbers", ir.ScatterDims{UpdateWindowDims: []int{1}, InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1}),
				[]*ir.Block{b.Combiner(ir.Add, ir.I32)}, nil).Results
		}, lits(ints([]int{3, 2}, 31, 42, 3, 4, 15, 26))},
		{"scatter batched, twice the same place", lits(count(2, 2), ints([]int{2, 2, 1}, 0, 0, 1, -1), ints([]int{2, 2}, 10, 20, 30, 40)), func(b *ir.Builder, in values) values {
			return b.Emit(ir.Scatter, in, attrs("scatter_dimension_numbers", ir.ScatterDims{InsertedWindowDims: []int{1}, InputBatchingDims: []int{0}, ScatterIndicesBatchingDims: []int{0},
				ScatterDimsToOperandDims: []int{1}, IndexVectorDim: 2}), []*ir.Block{b.Combiner(ir.Add, ir.I32)}, nil).Results
		}, lits(ints([]int{2, 2}, 31, 2, 3, 34))},
		{"scatter a window partly outside", lits(count(4), ints([]int{1}, 3), ints([]int{2}, 10, 20)), func(b *ir.Builder, in values) values {
			return b.Emit(ir.Scatter, in, attrs("scatter_dimension_numbers", ir.ScatterDims{UpdateWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}}),
				[]*ir.Block{b.Combiner(ir.Add, ir.I32)}, nil).Results
		}, lits(ints([]int{4}, 1, 2, 3, 14))},
	}
}

// With EachTerm the terms of a dot_general and of a convolution, which here cancel, round one by
// one in float32, complex ones too, and results of narrower types once more.
func TestEachTerm(t *testing.T) {
	dot := func(b *ir.Builder, in values) values {
		return values{b.Dot(in[0], in[1], ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}})}
	}
	side := ir.ConvSide{First: 0, Second: 1}
	convolution := func(b *ir.Builder, in values) values {
		return b.Emit(ir.Convolution, in, attrs("dimension_numbers", ir.ConvDims{Input: side, Kernel: side, Output: side},
			"feature_group_count", ir.I64Attr(1), "batch_group_count", ir.I64Attr(1)), nil, []*ir.Type{ir.Tensor(in[0].Type.Elem, 1, 1)}).Results
	}
	row, column, one := []int{1, 4}, []int{4, 1}, []int{1, 1}
	for name, build := range map[string]func(b *ir.Builder, in values) values{"dot_general": dot, "convolution": convolution} {
		for _, c := range []struct {
			elem       ir.DType
			x          []float64
			once, each float64
		}{
			{ir.F32, []float64{1 << 24, 1, 1, -1 << 24}, 2, 0},
			{ir.F64, []float64{1 << 24, 1, 1, -1 << 24}, 2, 2},
			{ir.BF16, []float64{256, 1, 1, 1}, 260, 260}, // 259 is halfway between 258 and 260; sums in bf16 would stay at 256
			{ir.C64, []float64{1 << 24, 1, 1, -1 << 24}, 2, 0},
		} {
			args := lits(floats(c.elem, row, c.x...), floats(c.elem, column, 1, 1, 1, 1))
			m := program(build, args[0].Type, args[1].Type)
			equal(t, evaluate(t, m, Options{}, args...)[0], floats(c.elem, one, c.once))
			equal(t, evaluate(t, m, Options{EachTerm: true}, args...)[0], floats(c.elem, one, c.each))
			if t.Failed() {
				t.Fatalf("%s of %s", name, c.elem)
			}
		}
	}
}
