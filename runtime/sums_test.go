package runtime_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"ppc/ir"
)

func scattered(b *ir.Builder, id int, x *ir.Value, dim int, gs ...[]int) *ir.Value {
	shape := append([]int(nil), x.Type.Shape...)
	shape[dim] /= len(gs[0])
	attrs := ir.AttrsOf(channel(id), ir.NamedAttr{Name: "replica_groups", Attr: groups(gs...)}, ir.NamedAttr{Name: "use_global_device_ids", Attr: ir.Unit{}},
		ir.NamedAttr{Name: "scatter_dimension", Attr: ir.I64Attr(dim)})
	return b.Emit(ir.ReduceScatter, []*ir.Value{x}, attrs, []*ir.Block{b.Combiner(ir.Add, x.Type.Elem)}, []*ir.Type{x.Type.WithShape(shape...)}).Result()
}

// A reduce-scatter with the addition to its result has the bits of the two, whichever of the terms comes first, whatever reads
// them, and of rows that are long or short.
func TestSums(t *testing.T) {
	for _, elem := range []ir.DType{ir.F32, ir.BF16} {
		for _, c := range []struct {
			shape []int
			dim   int
		}{{[]int{64, 96}, 0}, {[]int{64, 96}, 1}, {[]int{70, 8}, 1}, {[]int{2, 20000}, 0}, {[]int{3, 2, 5000}, 1}} {
			for _, devices := range []int{2, 4} {
				if c.shape[c.dim]%devices != 0 {
					continue
				}
				t.Run(fmt.Sprint(elem, c.shape, c.dim, devices), func(t *testing.T) { sameBitsUnfused(t, scatteredSums(elem, c.shape, c.dim, devices), devices) })
			}
		}
	}
}

func scatteredSums(elem ir.DType, shape []int, dim, devices int) *ir.Module {
	all := []int{0, 1, 2, 3}[:devices]
	x := ir.Tensor(elem, shape...)
	part := append([]int(nil), shape...)
	part[dim] /= devices
	y := ir.Tensor(elem, part...)
	stack := ir.Tensor(elem, append([]int{3}, part...)...)
	return program(devices, []*ir.Type{x, y, stack}, func(b *ir.Builder, args []*ir.Value) []*ir.Value {
		fresh := values{b.Unary(ir.Tanh, args[0]), b.Unary(ir.Tanh, args[1]), b.Unary(ir.Tanh, args[2])}
		return loop(b, 3, fresh, func(b *ir.Builder, i *ir.Value, in []*ir.Value) []*ir.Value {
			x, y, sum := in[0], in[1], in[2]
			start := values{i}
			for range part {
				start = append(start, b.I32(0))
			}
			row := append([]int{1}, part...)
			g := b.Reshape(scattered(b, 1, x, dim, all), row...)
			sum = b.DynamicUpdateSlice(sum, b.Add(g, b.DynamicSlice(sum, start, row...)), start)
			first := b.Add(y, scattered(b, 2, x, dim, all))
			kept := b.Add(scattered(b, 3, x, dim, all), first) // of which first is read again
			twice := scattered(b, 4, b.Unary(ir.Tanh, x), dim, all)
			return values{b.Unary(ir.Sine, x), b.Unary(ir.Tanh, b.Add(b.Mul(first, kept), b.Add(twice, twice))), sum}
		})
	})
}

// Of two that are no numbers the sum is the first.
func TestSumOfNaNs(t *testing.T) {
	x, y := ir.Tensor(ir.F32, 64), ir.Tensor(ir.F32, 32)
	nans := func(t *ir.Type, bits uint32) *ir.Literal {
		data := make([]byte, t.Bytes())
		for at := 0; at < len(data); at += 4 {
			binary.LittleEndian.PutUint32(data[at:], bits)
		}
		return &ir.Literal{Type: t, Data: data}
	}
	args := []*ir.Literal{nans(x, 0x7fc00001), nans(y, 0x7fc00002)}
	for first, want := range []uint32{0x7fc00001, 0x7fc00002} {
		m := program(2, []*ir.Type{x, y}, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
			terms := values{b.Reshape(scattered(b, 1, in[0], 0, []int{0, 1}), 1, 32), b.Reshape(in[1], 1, 32)}
			return values{b.Add(terms[first], terms[1-first])}
		})
		out, err := load(t, m).Run(t.Context(), [][]*ir.Literal{args, args})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out[0][0].Data, nans(y, want).Data) {
			t.Errorf("the sum is not term %d, which comes first", first)
		}
	}
}
