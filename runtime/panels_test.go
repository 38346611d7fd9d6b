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
	x, w := ir.Tensor(ir.F32, rows, in), ir.Tensor(ir.F32, 2, in/2, out)
	groups := [][]int{{0, 1}, {2, 3}}
	for _, read := range []bool{false, true} {
		t.Run(fmt.Sprintf("other readers %v", read), func(t *testing.T) {
			m := program(n, []*ir.Type{x, w}, func(b *ir.Builder, args []*ir.Value) []*ir.Value {
				return loop(b, 6, values{args[0], b.Splat(ir.Tensor(ir.F32, in, out), 0)}, func(b *ir.Builder, i *ir.Value, carry []*ir.Value) []*ir.Value {
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
			rng := rand.New(rand.NewPCG(1, 2))
			var args [][]*ir.Literal
			for range n {
				args = append(args, []*ir.Literal{random(rng, x, false), random(rng, w, false)})
			}
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
		})
	}
}
