package runtime_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ppc/ir"
	"ppc/runtime"
)

// chains is a random program of what groups are made of: elementwise ops on
// tensors that are rows, views of them, and folds, in an order in which groups
// meet, end and are read from outside.
func chains(rng *rand.Rand, elem ir.DType) *ir.Module {
	rows, cols := []int{1, 3, 8, 40, 70}[rng.IntN(5)], []int{1, 5, 16, 32, 64, 100, 160, 300, 544}[rng.IntN(9)]
	shape := []int{rows, cols}
	full, row, col := ir.Tensor(elem, rows, cols), ir.Tensor(elem, rows), ir.Tensor(elem, cols)
	return program(1, []*ir.Type{full, full, row, col, ir.Tensor(elem, cols, rows)}, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		fulls, rowsOf, colsOf := values{in[0], in[1]}, values{in[2]}, values{in[3]}
		pick := func(vs values) *ir.Value { return vs[rng.IntN(len(vs))] }
		zero := b.Splat(ir.Tensor(elem), 0)
		binary := func() ir.Kind {
			return []ir.Kind{ir.Add, ir.Subtract, ir.Multiply, ir.Maximum, ir.Minimum, ir.Divide}[rng.IntN(6)]
		}
		for range 6 + rng.IntN(20) {
			x, y := pick(fulls), pick(fulls)
			var v *ir.Value
			switch rng.IntN(16) {
			case 0, 1, 2:
				v = b.Binary(binary(), x, y)
			case 3:
				v = b.Unary([]ir.Kind{ir.Tanh, ir.Exponential, ir.Negate, ir.Logistic, ir.Sqrt, ir.Rsqrt, ir.Log, ir.Abs, ir.ExponentialMinusOne}[rng.IntN(9)], x)
			case 4:
				v = b.Broadcast(pick(rowsOf), shape, 0)
			case 5:
				v = b.Broadcast(pick(colsOf), shape, 1)
			case 6:
				v = b.Select(b.Compare([]string{"LT", "GE", "EQ", "NE"}[rng.IntN(4)], x, y), x, b.Splat(full, 2))
			case 7:
				v = b.Binary(binary(), x, b.Splat(full, 0.5))
			case 8:
				rowsOf = append(rowsOf, b.Reduce([]ir.Kind{ir.Add, ir.Maximum}[rng.IntN(2)], x, zero, 1))
				continue
			case 9:
				colsOf = append(colsOf, b.Reduce([]ir.Kind{ir.Add, ir.Maximum}[rng.IntN(2)], x, zero, 0))
				continue
			case 10:
				s := b.Reduce(ir.Add, x, zero, 0, 1)
				v = b.Binary(ir.Maximum, x, b.Broadcast(s, shape))
			case 11:
				rowsOf = append(rowsOf, b.Binary(binary(), pick(rowsOf), pick(rowsOf)))
				continue
			case 12:
				v = b.Reshape(b.Unary(ir.Negate, b.Reshape(x, rows*cols)), shape...)
			case 13:
				v = b.Binary(ir.Add, b.Transpose(in[4], 1, 0), y)
			case 14:
				if rows%2 == 0 {
					v = b.Concat(0, b.SliceDim(x, 0, rows/2, rows), b.Unary(ir.Negate, b.SliceDim(y, 0, 0, rows/2)))
				} else {
					v = b.Convert(b.Convert(x, ir.BF16), elem)
				}
			case 15:
				v = b.Convert(b.Compare("GE", x, y), elem)
			}
			fulls = append(fulls, v)
		}
		return values{fulls[len(fulls)-1], pick(fulls), pick(fulls), pick(rowsOf), pick(colsOf), rowsOf[len(rowsOf)-1], colsOf[len(colsOf)-1]}
	})
}

// Fused programs give the bits that they give op by op, and what the evaluator
// gives as far as its sums do.
func TestFused(t *testing.T) {
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(17, seed))
		m := chains(rng, []ir.DType{ir.F32, ir.F64, ir.BF16}[rng.IntN(3)])
		args := make([]*ir.Literal, len(m.Main().Params()))
		for i, p := range m.Main().Params() {
			args[i] = random(rng, p.Type, seed%3 == 0)
		}
		fused := results(t, m, args)
		plain := results(t, m, args, runtime.Unfused())
		for i := range fused {
			if !sameBits(fused[i], plain[i]) {
				t.Fatalf("seed %d: result %d differs from that of the ops one by one", seed, i)
			}
		}
	}
}

func results(t *testing.T, m *ir.Module, args []*ir.Literal, opts ...runtime.LoadOption) []*ir.Literal {
	t.Helper()
	exe, err := runtime.Load(m, opts...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exe.Run(t.Context(), [][]*ir.Literal{args}, runtime.PoisonBuffers())
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// sameBits reports whether a and b are the same, NaNs being all alike.
func sameBits(a, b *ir.Literal) bool {
	if bytes.Equal(a.Data, b.Data) {
		return true
	}
	size := a.Type.Elem.Size()
	for i := range a.Type.NumElements() {
		if x, y := a.Float(i), b.Float(i); !bytes.Equal(a.Data[i*size:(i+1)*size], b.Data[i*size:(i+1)*size]) && (x == x || y == y) {
			return false
		}
	}
	return true
}

// Folds of many elements, in tiles and out of them.
func TestFusedFolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(18, 0))
	for _, shape := range [][]int{{20000}, {4096 * 3}, {3, 5000}, {5000, 3}, {70, 33}, {16385}, {1, 16384}, {2, 17000}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			full := ir.Tensor(ir.F32, shape...)
			m := program(1, []*ir.Type{full, full}, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
				x, zero := b.Mul(in[0], in[1]), b.Splat(ir.Tensor(ir.F32), 0)
				out := values{b.Add(x, in[0])}
				for d := range shape {
					out = append(out, b.Reduce(ir.Add, x, zero, d), b.Reduce(ir.Maximum, x, zero, d))
				}
				if len(shape) == 2 {
					out = append(out, b.Reduce(ir.Add, x, zero, 0, 1))
				}
				return out
			})
			args := []*ir.Literal{random(rng, full, false), random(rng, full, false)}
			fused, plain := results(t, m, args), results(t, m, args, runtime.Unfused())
			for i := range fused {
				if !sameBits(fused[i], plain[i]) {
					t.Errorf("result %d differs from that of the ops one by one", i)
				}
			}
		})
	}
}

// Groups of many members, some of which are read from afar.
func TestFusedLong(t *testing.T) {
	rng := rand.New(rand.NewPCG(22, 0))
	full := ir.Tensor(ir.F32, 1021)
	m := program(1, []*ir.Type{full, full}, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		vs := slices.Clone(in)
		for range 900 {
			k := []ir.Kind{ir.Add, ir.Subtract, ir.Multiply, ir.Maximum}[rng.IntN(4)]
			vs = append(vs, b.Binary(k, vs[len(vs)-1], vs[rng.IntN(len(vs))]))
			if rng.IntN(40) == 0 {
				vs = append(vs, b.Convert(b.Convert(vs[len(vs)-1], ir.BF16), ir.F32))
			}
		}
		return []*ir.Value{vs[len(vs)-1], vs[300]}
	})
	args := []*ir.Literal{random(rng, full, false), random(rng, full, false)}
	fused, plain := results(t, m, args), results(t, m, args, runtime.Unfused())
	for i := range fused {
		if !sameBits(fused[i], plain[i]) {
			t.Errorf("result %d differs from that of the ops one by one", i)
		}
	}
}

// A program gives the same bits in any order of events, on any number of cores,
// and in memory that earlier runs have left.
func TestSameBits(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(19, seed))
		n := 1 + rng.IntN(5)
		m := randomProgram(rng, n)
		args := randomArgs(rng, m, n)
		exe := load(t, m)
		var want [][]*ir.Literal
		for i, opts := range [][]runtime.Option{{runtime.Workers(1)}, {}, {runtime.Shuffle(seed), runtime.Workers(3)}, {runtime.PoisonBuffers()}} {
			got, err := exe.Run(t.Context(), args, opts...)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				want = got
			}
			for d := range want {
				for k := range want[d] {
					if !sameBits(got[d][k], want[d][k]) {
						t.Errorf("seed %d, run %d: device %d: result %d has other bits than in the first run", seed, i, d, k)
					}
				}
			}
		}
	}
}

// Views of several dimensions are read through: slices, broadcasts between
// dimensions, swapped dimensions, and reshapes of them.
func TestFusedViews(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 0))
	for _, elem := range []ir.DType{ir.F32, ir.BF16, ir.F64} {
		full, wide := ir.Tensor(elem, 3, 20, 4, 16), ir.Tensor(elem, 3, 20, 4, 32)
		params := []*ir.Type{full, wide, ir.Tensor(elem, 20, 16), ir.Tensor(elem, 3, 4), ir.Tensor(elem, 3, 4, 20, 16), ir.Tensor(elem, 4, 16)}
		m := program(1, params, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
			shape := full.Shape
			views := values{
				b.SliceDim(in[1], 3, 0, 16), b.SliceDim(in[1], 3, 16, 32),
				b.Broadcast(in[2], shape, 1, 3), b.Broadcast(in[3], shape, 0, 2), b.Broadcast(in[5], shape, 2, 3),
				b.Transpose(in[4], 0, 2, 1, 3),
				b.Reshape(b.Broadcast(b.Reshape(in[2], 20, 2, 8), []int{3, 20, 4, 2, 8}, 1, 3, 4), shape...),
			}
			out := values{}
			for _, v := range views {
				out = append(out, b.Mul(in[0], v))
			}
			return append(out, b.Add(views[0], views[1]), b.Sub(views[2], views[3]))
		})
		args := make([]*ir.Literal, len(params))
		for i, p := range params {
			args[i] = random(rng, p, false)
		}
		fused, plain := results(t, m, args), results(t, m, args, runtime.Unfused())
		for i := range fused {
			if !sameBits(fused[i], plain[i]) {
				t.Errorf("%s: result %d differs from that of the ops one by one", elem, i)
			}
		}
	}
}
