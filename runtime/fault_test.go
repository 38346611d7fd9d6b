package runtime_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ppc/ir"
	"ppc/runtime"
)

// branch appends an if on whether this is device id, and returns its results.
func branch(b *ir.Builder, id int, yes, no func(in *ir.Builder) values) values {
	p := b.Emit(ir.PartitionID, nil, nil, nil, nil).Result()
	is := b.Compare("EQ", p, b.Splat(p.Type, float64(id)))
	blocks := []*ir.Block{new(ir.Block), new(ir.Block)}
	for i, f := range []func(in *ir.Builder) values{yes, no} {
		in := b.In(blocks[i])
		in.Emit(ir.Return, f(in), nil, nil, nil)
	}
	return b.Emit(ir.If, values{is}, nil, blocks, nil).Results
}

// crossed is two devices that enter two sums in opposite order, in the third
// iteration of a loop.
func crossed() *ir.Module {
	both := []int{0, 1}
	sum := func(b *ir.Builder, id, line int, x *ir.Value) *ir.Value {
		at := ir.Origin{Pos: ir.Pos{File: "crossed.pp", Line: line, Col: 3}}.Saying(ir.Said{Name: []string{"", "a", "b"}[id%10]})
		return reduced(b.At(at), id, ir.Add, x, both)
	}
	return program(2, []*ir.Type{ir.Tensor(ir.F32)}, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		return loop(b, 9, in, func(in *ir.Builder, i *ir.Value, args []*ir.Value) []*ir.Value {
			third := in.Compare("EQ", i, in.I32(2))
			yes, no := new(ir.Block), new(ir.Block)
			in.In(no).Emit(ir.Return, args, nil, nil, nil)
			y := in.In(yes)
			out := branch(y, 0, func(b *ir.Builder) values { return values{sum(b, 2, 8, sum(b, 1, 7, args[0]))} },
				func(b *ir.Builder) values { return values{sum(b, 11, 11, sum(b, 12, 10, args[0]))} })
			y.Emit(ir.Return, out, nil, nil, nil)
			return in.Emit(ir.If, values{third}, nil, []*ir.Block{yes, no}, nil).Results
		})
	})
}

func scalars(n int) [][]*ir.Literal {
	return perDevice(n, ir.Tensor(ir.F32), func(d, _ int) float64 { return float64(d) })
}

// synctest.Test fails if a goroutine is left, and its clock stands still, so
// that nothing here waits for time to pass.
func bubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

func TestDeadlock(t *testing.T) {
	exe := load(t, crossed())
	bubble(t, func(t *testing.T) {
		for seed := range uint64(5) {
			_, err := exe.Run(t.Context(), scalars(2), runtime.Shuffle(seed))
			const want = `deadlock: no device can go on
  device 0 waits for device 1 at stablehlo.all_reduce "a" at crossed.pp:7:3 (channel 1), iteration 2
  device 1 waits for device 0 at stablehlo.all_reduce "b" at crossed.pp:10:3 (channel 12), iteration 2`
			if err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
			var d *runtime.Deadlock
			if !errors.As(err, &d) || len(d.Waits) != 2 {
				t.Errorf("got %#v, want a Deadlock of two", err)
			}
		}
	})
}

// A device that waits for one that has returned will wait for ever.
func TestDeadlockReturned(t *testing.T) {
	m := program(3, []*ir.Type{ir.Tensor(ir.F32)}, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		return branch(b, 1, func(in2 *ir.Builder) values { return in }, func(b *ir.Builder) values { return values{reduced(b, 1, ir.Add, in[0], []int{0, 1, 2})} })
	})
	exe := load(t, m)
	bubble(t, func(t *testing.T) {
		_, err := exe.Run(t.Context(), scalars(3))
		const want = "device 0 waits for device 1, which has returned, at stablehlo.all_reduce (channel 1)"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

// A permute that nobody answers, and a sender that runs ahead of its receiver.
func TestDeadlockPermute(t *testing.T) {
	for want, receives := range map[string]int{
		"device 1 waits for device 0, which has returned, at stablehlo.collective_permute (channel 1), iteration 0": 1,
		"device 0 waits for device 1, which has returned, at stablehlo.collective_permute (channel 1), iteration 1": 0,
	} {
		m := program(2, []*ir.Type{ir.Tensor(ir.F32)}, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
			return branch(b, receives, func(b *ir.Builder) values {
				return loop(b, 3, in, func(b *ir.Builder, _ *ir.Value, args []*ir.Value) []*ir.Value {
					return values{permute(b, 1, args[0], [2]int{0, 1})}
				})
			}, func(*ir.Builder) values { return in })
		})
		exe := load(t, m)
		bubble(t, func(t *testing.T) {
			_, err := exe.Run(t.Context(), scalars(2))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestKill(t *testing.T) {
	exe := load(t, ring())
	args := perDevice(4, ir.Tensor(ir.F64, 2), func(d, i int) float64 { return 1 })
	bubble(t, func(t *testing.T) {
		for seed := range uint64(5) {
			_, err := exe.Run(t.Context(), args, runtime.Kill(2, 3), runtime.Shuffle(seed))
			const want = "device 2: stablehlo.collective_permute (channel 1), iteration 2: killed at collective number 3"
			if err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
			var f *runtime.Fault
			if !errors.As(err, &f) || f.Device != 2 || f.Stack != nil {
				t.Errorf("got %#v, want a Fault of device 2", err)
			}
		}
	})
}

// endless loops until it is stopped; every device passes what it has on.
func endless() *ir.Module {
	return program(3, []*ir.Type{ir.Tensor(ir.F32)}, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		cond, body := new(ir.Block), new(ir.Block)
		b.Func.NewArg(cond, in[0].Type, "")
		x := b.Func.NewArg(body, in[0].Type, "")
		c, d := b.In(cond), b.In(body)
		c.Emit(ir.Return, values{c.Splat(ir.Tensor(ir.I1), 1)}, nil, nil, nil)
		d.Emit(ir.Return, values{permute(d, 1, x, [2]int{0, 1}, [2]int{1, 2}, [2]int{2, 0})}, nil, nil, nil)
		return b.Emit(ir.While, in, nil, []*ir.Block{cond, body}, nil).Results
	})
}

func TestCancel(t *testing.T) {
	exe := load(t, endless())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := exe.Run(ctx, scalars(3))
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if _, err := exe.Run(ctx, scalars(3)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := exe.Run(ctx, scalars(3)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestPanic(t *testing.T) {
	exe := load(t, ring())
	exe.Sabotage(1)
	args := perDevice(4, ir.Tensor(ir.F64, 2), func(d, i int) float64 { return 1 })
	bubble(t, func(t *testing.T) {
		_, err := exe.Run(t.Context(), args)
		var f *runtime.Fault
		if !errors.As(err, &f) || f.Stack == nil || !strings.HasSuffix(err.Error(), "panic: sabotage; this is a bug in ppc") {
			t.Errorf("got %v, want a Fault that owns up", err)
		}
	})
}

// What is marked don't care becomes NaN when asked for, and nothing else does.
func TestPoisonBubbles(t *testing.T) {
	m := program(1, []*ir.Type{ir.Tensor(ir.F32)}, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		mark := func(v *ir.Value) *ir.Value {
			v.Def.Attrs.Set("pp.dont_care", ir.Unit{})
			return v
		}
		c, n := mark(b.Splat(ir.Tensor(ir.F32), 3)), mark(b.I32(4))
		return values{c, mark(b.Add(in[0], in[0])), mark(b.Reshape(in[0], 1)), in[0], n, b.Add(c, in[0])}
	})
	exe := load(t, m)
	for poison, want := range map[bool][]float64{false: {3, 10, 5, 5, 4, 8}, true: {math.NaN(), math.NaN(), math.NaN(), 5, 4, math.NaN()}} {
		var opts []runtime.Option
		if poison {
			opts = append(opts, runtime.PoisonBubbles())
		}
		got, err := exe.Run(t.Context(), [][]*ir.Literal{{ir.SplatOf(ir.Tensor(ir.F32), 5)}}, opts...)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if v := got[0][i].Float(0); v != w && !(v != v && w != w) {
				t.Errorf("poison %v: result %d is %v, want %v", poison, i, v, w)
			}
		}
	}
}

// Results do not change after Run, and arguments never do.
func TestNoAliasing(t *testing.T) {
	m := program(2, []*ir.Type{ir.Tensor(ir.F64, 4)}, func(b *ir.Builder, in []*ir.Value) []*ir.Value {
		g := reduced(b, 1, ir.Add, in[0], []int{0, 1})
		h := b.Add(g, g)
		return values{in[0], g, h, b.DynamicUpdateSlice(h, b.SliceDim(g, 0, 0, 1), values{b.I32(2)})}
	})
	exe := load(t, m)
	args := perDevice(2, ir.Tensor(ir.F64, 4), func(d, i int) float64 { return float64(d + i) })
	first, err := exe.Run(t.Context(), args)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := exe.Run(t.Context(), args); err != nil {
			t.Fatal(err)
		}
	}
	for d := range 2 {
		for i, want := range [][]float64{{float64(d), float64(d + 1), float64(d + 2), float64(d + 3)}, {1, 3, 5, 7}, {2, 6, 10, 14}, {2, 6, 1, 14}} {
			for k, w := range want {
				if v := first[d][i].Float(k); v != w {
					t.Errorf("device %d: result %d: element %d is %v, want %v", d, i, k, v, w)
				}
			}
		}
	}
}

func TestArguments(t *testing.T) {
	exe := load(t, ring())
	for _, test := range []struct {
		change func(args [][]*ir.Literal) [][]*ir.Literal
		want   string
	}{
		{func(a [][]*ir.Literal) [][]*ir.Literal { return a[:3] }, "arguments for 3 devices, the program runs on 4"},
		{func(a [][]*ir.Literal) [][]*ir.Literal { a[2] = nil; return a }, "device 2: 0 arguments, the program takes 1"},
		{func(a [][]*ir.Literal) [][]*ir.Literal { a[2][0] = nil; return a }, "device 2: argument 0 is missing"},
		{func(a [][]*ir.Literal) [][]*ir.Literal { a[1][0] = ir.SplatOf(ir.Tensor(ir.F32, 2), 0); return a }, "device 1: argument 0 is tensor<2xf32>, want tensor<2xf64>"},
		{func(a [][]*ir.Literal) [][]*ir.Literal {
			a[1][0] = &ir.Literal{Type: ir.Tensor(ir.F64, 2), Data: make([]byte, 9)}
			return a
		}, "device 1: argument 0 has 9 bytes, tensor<2xf64> takes 16"},
	} {
		args := perDevice(4, ir.Tensor(ir.F64, 2), func(d, i int) float64 { return 0 })
		_, err := exe.Run(t.Context(), test.change(args))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}
