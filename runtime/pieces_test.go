package runtime_test

import (
	"math/rand/v2"
	"testing"

	"ppc/ir"
	"ppc/runtime"
)

// TestPieces holds programs that slice a tensor and update it to have the bits that they have
// op by op, whatever reads the slice, when and where.
func TestPieces(t *testing.T) {
	const n, rows, cols = 4, 64, 128
	sum, x := ir.Tensor(ir.F32, n, rows, cols), ir.Tensor(ir.F32, rows, cols)
	slice := func(b *ir.Builder, v, i *ir.Value) *ir.Value {
		return b.DynamicSlice(v, values{i, b.I32(0), b.I32(0)}, 1, rows, cols)
	}
	update := func(b *ir.Builder, v, u, i *ir.Value) *ir.Value {
		return b.DynamicUpdateSlice(v, u, values{i, b.I32(0), b.I32(0)})
	}
	row := func(b *ir.Builder, v *ir.Value) *ir.Value { return b.Reshape(v, 1, rows, cols) }
	cases := []struct {
		name string
		most int // bytes that are held at one moment, besides arguments; 0 for any
		body func(b *ir.Builder, i, sum, x *ir.Value) (*ir.Value, *ir.Value)
	}{
		{"accumulated", sum.Bytes() + x.Bytes()/2, func(b *ir.Builder, i, sum, x *ir.Value) (*ir.Value, *ir.Value) {
			return update(b, sum, b.Add(slice(b, sum, i), row(b, x)), i), x
		}},
		{"accumulated through reshapes", sum.Bytes() + x.Bytes()/2, func(b *ir.Builder, i, sum, x *ir.Value) (*ir.Value, *ir.Value) {
			old := b.Reshape(slice(b, sum, i), rows, cols)
			return update(b, sum, row(b, b.Add(old, x)), i), x
		}},
		{"accumulated in a branch", sum.Bytes() + x.Bytes()/2, func(b *ir.Builder, i, sum, x *ir.Value) (*ir.Value, *ir.Value) {
			return branches(b, b.Compare("LT", i, b.I32(2)), func(b *ir.Builder) values {
				return values{update(b, sum, b.Add(slice(b, sum, i), row(b, x)), i)}
			}, func(*ir.Builder) values { return values{sum} })[0], x
		}},
		{"accumulated in a branch of a branch", sum.Bytes() + x.Bytes()/2, func(b *ir.Builder, i, sum, x *ir.Value) (*ir.Value, *ir.Value) {
			return branches(b, b.Compare("LT", i, b.I32(3)), func(b *ir.Builder) values {
				return branches(b, b.Compare("GT", i, b.I32(0)), func(b *ir.Builder) values {
					return values{update(b, sum, b.Add(slice(b, sum, i), row(b, x)), i)}
				}, func(*ir.Builder) values { return values{sum} })
			}, func(b *ir.Builder) values { return values{update(b, sum, row(b, x), i)} })[0], x
		}},
		{"read behind the branch", 0, func(b *ir.Builder, i, sum, x *ir.Value) (*ir.Value, *ir.Value) {
			next := branches(b, b.Compare("LT", i, b.I32(2)), func(b *ir.Builder) values {
				return values{update(b, sum, b.Add(slice(b, sum, i), row(b, x)), i)}
			}, func(*ir.Builder) values { return values{sum} })[0]
			return next, b.Unary(ir.Tanh, b.Add(b.Reshape(slice(b, sum, i), rows, cols), x))
		}},
		{"read twice by a branch, and not by the other", 3 * sum.Bytes(), func(b *ir.Builder, i, sum, x *ir.Value) (*ir.Value, *ir.Value) {
			both := branches(b, b.Compare("LT", i, b.I32(1)), func(b *ir.Builder) values {
				return values{sum, b.Unary(ir.Tanh, sum)}
			}, func(b *ir.Builder) values {
				y := b.Broadcast(b.Unary(ir.Tanh, x), sum.Type.Shape, 1, 2)
				return values{y, y}
			})
			return both[0], b.Unary(ir.Tanh, b.Add(b.Reshape(slice(b, both[1], i), rows, cols), x))
		}},
		{"accumulated of what dies", 0, func(b *ir.Builder, i, sum, x *ir.Value) (*ir.Value, *ir.Value) {
			y := b.Unary(ir.Tanh, b.Dot(x, b.Dot(x, x, ir.Dot{LhsContract: []int{0}, RhsContract: []int{0}}), ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}))
			return update(b, sum, b.Add(slice(b, sum, i), row(b, y)), i), b.Unary(ir.Tanh, x)
		}},
		{"two accumulated in one order", 0, func(b *ir.Builder, i, sum, x *ir.Value) (*ir.Value, *ir.Value) {
			j := b.Binary(ir.Subtract, b.I32(n-1), i)
			first, second := slice(b, sum, i), slice(b, sum, j)
			sum = update(b, sum, b.Add(first, row(b, x)), i)
			return update(b, sum, b.Add(second, row(b, x)), j), x
		}},
		{"read after the update", 0, func(b *ir.Builder, i, sum, x *ir.Value) (*ir.Value, *ir.Value) {
			old := slice(b, sum, i)
			sum = update(b, sum, b.Add(old, row(b, x)), i)
			return sum, b.Unary(ir.Tanh, b.Add(b.Reshape(old, rows, cols), b.Reshape(slice(b, sum, i), rows, cols)))
		}},
		{"carried", 0, func(b *ir.Builder, i, sum, x *ir.Value) (*ir.Value, *ir.Value) {
			old := slice(b, sum, i)
			return update(b, sum, b.Add(old, row(b, x)), i), b.Reshape(old, rows, cols)
		}},
		{"put elsewhere", 0, func(b *ir.Builder, i, sum, x *ir.Value) (*ir.Value, *ir.Value) {
			j := b.Binary(ir.Subtract, b.I32(n-1), i)
			return update(b, sum, b.Add(slice(b, sum, i), row(b, x)), j), x
		}},
		{"sliced between", 0, func(b *ir.Builder, i, sum, x *ir.Value) (*ir.Value, *ir.Value) {
			next := b.Add(slice(b, sum, i), row(b, x))
			y := b.Dot(b.Reshape(slice(b, sum, i), rows, cols), x, ir.Dot{LhsContract: []int{0}, RhsContract: []int{0}})
			z := b.Dot(x, y, ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}})
			return update(b, sum, next, i), b.Unary(ir.Tanh, z)
		}},
		{"sliced before and read between", 0, func(b *ir.Builder, i, sum, x *ir.Value) (*ir.Value, *ir.Value) {
			other := b.Reshape(slice(b, sum, i), rows, cols)
			next := b.Add(slice(b, sum, i), row(b, x))
			y := b.Dot(other, x, ir.Dot{LhsContract: []int{0}, RhsContract: []int{0}})
			z := b.Dot(x, y, ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}})
			return update(b, sum, next, i), b.Unary(ir.Tanh, z)
		}},
		{"the tensor is read too", 0, func(b *ir.Builder, i, sum, x *ir.Value) (*ir.Value, *ir.Value) {
			next := b.Add(slice(b, sum, i), row(b, x))
			j := b.Binary(ir.Subtract, b.I32(n-1), i)
			y := b.Dot(b.Reshape(next, rows, cols), b.Reshape(slice(b, sum, j), rows, cols), ir.Dot{LhsContract: []int{1}, RhsContract: []int{1}})
			z := b.Dot(y, b.Reshape(slice(b, sum, i), rows, cols), ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}})
			return update(b, sum, next, i), b.Unary(ir.Tanh, z)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := program(1, []*ir.Type{sum, x}, func(b *ir.Builder, args []*ir.Value) []*ir.Value {
				init := values{b.Add(args[0], args[0]), args[1]} // which is no argument any more
				return loop(b, n, init, func(b *ir.Builder, i *ir.Value, carry []*ir.Value) []*ir.Value {
					s, y := c.body(b, i, carry[0], carry[1])
					return values{s, y}
				})
			})
			rng := rand.New(rand.NewPCG(3, 4))
			args := [][]*ir.Literal{{random(rng, sum, false), random(rng, x, false)}}
			var want [][]*ir.Literal
			for _, opts := range [][]runtime.LoadOption{{runtime.Unfused()}, nil} {
				exe, err := runtime.Load(m, opts...)
				if err != nil {
					t.Fatal(err)
				}
				trace := new(runtime.Trace)
				got, err := exe.Run(t.Context(), args, runtime.PoisonBuffers(), runtime.WithTrace(trace))
				if err != nil {
					t.Fatal(err)
				}
				if want == nil {
					want = got
					continue
				}
				for k := range want[0] {
					if string(got[0][k].Data) != string(want[0][k].Data) {
						t.Errorf("result %d has other bits", k)
					}
				}
				if c.most > 0 && trace.PeakBytes > c.most {
					t.Errorf("%d bytes are held at one moment, %d are enough", trace.PeakBytes, c.most)
				}
			}
		})
	}
}

// branches are the results of one of two blocks.
func branches(b *ir.Builder, p *ir.Value, yes, no func(b *ir.Builder) values) []*ir.Value {
	then, otherwise := new(ir.Block), new(ir.Block)
	var types []*ir.Type
	out := yes(b.In(then))
	for _, v := range out {
		types = append(types, v.Type)
	}
	b.In(then).Emit(ir.Return, out, nil, nil, nil)
	b.In(otherwise).Emit(ir.Return, no(b.In(otherwise)), nil, nil, nil)
	return b.Emit(ir.If, []*ir.Value{p}, nil, []*ir.Block{then, otherwise}, types).Results
}
