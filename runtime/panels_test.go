package runtime_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ppc/ir"
	"ppc/runtime"
)

// TestPanelledGathers holds a program whose products read what all-gathers bring together,
// in one order and in two, in a loop over layers and beside another reader, to have the bits
// that it has op by op.
func TestPanelledGathers(t *testing.T) {
	const n, rows, in, out = 4, 64, 512, 384
	groups := [][]int{{0, 1}, {2, 3}}
	for i, elem := range []ir.DType{ir.F32, ir.F32, ir.BF16, ir.F64} {
		read := i == 1
		t.Run(fmt.Sprintf("%s, other readers %v", elem, read), func(t *testing.T) {
			x, w := ir.Tensor(elem, rows, in), ir.Tensor(elem, 2, in/2, out)
			m := program(n, []*ir.Type{x, w}, func(b *ir.Builder, args []*ir.Value) []*ir.Value {
				return loop(b, 6, values{args[0], b.Splat(ir.Tensor(elem, in, out), 0)}, func(b *ir.Builder, i *ir.Value, carry []*ir.Value) []*ir.Value {
					layer := b.DynamicSlice(args[1], values{b.Binary(ir.Divide, i, b.I32(3)), b.I32(0), b.I32(0)}, 1, in/2, out)
					g := gathered(b, 1, b.Reshape(layer, in/2, out), 0, groups...)
					h := b.Unary(ir.Tanh, b.Dot(carry[0], g, ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}))
					y := b.Dot(h, g, ir.Dot{LhsContract: []int{1}, RhsContract: []int{1}})
					sum := carry[1]
					if read {
						sum = b.Add(sum, g)
					}
					return values{b.Unary(ir.Tanh, y), sum}
				})
			})
			sameBitsUnfused(t, m, n)
		})
	}
}

// sameBitsUnfused holds m, on n devices, to the bits that it has op by op.
func sameBitsUnfused(t *testing.T, m *ir.Module, n int) {
	t.Helper()
	args := randomArgs(rand.New(rand.NewPCG(1, 2)), m, n)
	var want [][]*ir.Literal
	for i, opts := range [][]runtime.LoadOption{{runtime.Unfused()}, nil} {
		exe, err := runtime.Load(m, opts...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := exe.Run(t.Context(), args, runtime.PoisonBuffers())
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			want = got
			continue
		}
		for d := range want {
			for k := range want[d] {
				if string(got[d][k].Data) != string(want[d][k].Data) {
					t.Errorf("device %d: result %d has other bits", d, k)
				}
			}
		}
	}
}

// TestKeptProducts holds products in a loop whose right sides are slices of an argument and of a value that is written
// in place between two executions of the loop to the bits that they have op by op; the slices are the same for three
// iterations, others in each, copies, or all of the value.
func TestKeptProducts(t *testing.T) {
	for _, elem := range []ir.DType{ir.F32, ir.BF16, ir.F64} {
		t.Run(elem.String(), func(t *testing.T) { sameBitsUnfused(t, keptProducts(elem), 1) })
	}
}

func keptProducts(elem ir.DType) *ir.Module {
	const rows, in, out = 64, 192, 320
	x, w := ir.Tensor(elem, rows, in), ir.Tensor(elem, 2, in, out)
	forward, back := ir.Dot{LhsContract: []int{1}, RhsContract: []int{0}}, ir.Dot{LhsContract: []int{1}, RhsContract: []int{1}}
	return program(1, []*ir.Type{x, w, w}, func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		return loop(b, 3, values{args[0], b.Unary(ir.Sine, args[2])}, func(b *ir.Builder, epoch *ir.Value, carry []*ir.Value) []*ir.Value {
			written := carry[1]
			all := b.Reshape(b.DynamicSlice(written, values{b.I32(1), b.I32(0), b.I32(0)}, 1, in, out), in, out)
			y := loop(b, 6, carry[:1], func(b *ir.Builder, i *ir.Value, inner []*ir.Value) []*ir.Value {
				layer := func(of, i *ir.Value) *ir.Value {
					return b.Reshape(b.DynamicSlice(of, values{i, b.I32(0), b.I32(0)}, 1, in, out), in, out)
				}
				slowly := b.Binary(ir.Divide, i, b.I32(3))
				quickly := b.Binary(ir.Remainder, i, b.I32(2))
				h := b.Unary(ir.Sine, b.Dot(inner[0], layer(args[1], slowly), forward))
				h = b.Unary(ir.Sine, b.Dot(h, layer(written, slowly), back))
				h = b.Unary(ir.Sine, b.Dot(h, layer(written, quickly), forward))
				h = b.Unary(ir.Sine, b.Dot(h, layer(args[1], quickly), back))
				zero := b.I32(0) // a slice of a slice, which is a copy
				copied := b.DynamicSlice(b.DynamicSlice(written, values{slowly, zero, zero}, 1, in, out), values{zero, zero, zero}, 1, in, out)
				h = b.Unary(ir.Sine, b.Dot(h, b.Reshape(copied, in, out), forward))
				h = b.Unary(ir.Sine, b.Dot(h, layer(args[1], quickly), back))
				h = b.Unary(ir.Sine, b.Dot(h, all, forward))
				return values{b.Unary(ir.Sine, b.Dot(h, all, back))}
			})[0]
			part := b.Unary(ir.Cosine, b.DynamicSlice(written, values{b.I32(0), b.I32(0), b.I32(0)}, 1, in, out))
			return values{y, b.DynamicUpdateSlice(written, part, values{b.Binary(ir.Remainder, epoch, b.I32(2)), b.I32(0), b.I32(0)})}
		})
	})
}
