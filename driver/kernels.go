package driver

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"

	"ppc/driver/binding"
	"ppc/driver/rounding"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/lower"
	"ppc/lower/stats"
	"ppc/lower/strips"
	"ppc/passes"
	"ppc/runtime"
)

// evaluatorMemory is what the values of a reference take at most, in bytes, that is
// evaluated by the reference evaluator; it would take hours over larger ones.
const evaluatorMemory = 4 << 30

// A byKernels is a reference that is too large for the evaluator: the same program in the
// same types, compiled for one device, on the kernels of runs.
type byKernels struct {
	m     *ir.Module
	types []*ir.Type // of parameters
	bytes int        // that it takes, arguments included
}

// kernels compiles the reference m, to be evaluated in float64, if its values take more
// than the evaluator may have; nil where they do not, and where the kernels cannot
// compute it. The reference in other types is evaluated like it.
func (r *runner) kernels(ctx context.Context, m *ir.Module, opts eval.Options, like *evaluation) (*byKernels, error) {
	limit := cmp.Or(r.evaluator, evaluatorMemory)
	if opts.NaN || valueBytes(m) <= limit || like != nil && like.kernels == nil {
		return nil, nil
	}
	k := new(byKernels)
	held := 0
	err := stage(ctx, m, "compiling", func() (err error) {
		if k.m, err = onOneDevice(ctx, m, opts); err != nil {
			return err
		}
		s, err := measured(k.m)
		if err != nil {
			return err
		}
		held = times(s.Memory.Peak, binding.NumDevices(k.m))
		k.bytes = times(plus(s.Run.Peak, scratch(strips.Of(k.m))), binding.NumDevices(k.m))
		_, err = runtime.Load(k.m)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return nil, err
	case err != nil || like == nil && held <= limit: // the evaluator knows more ops
		return nil, nil
	}
	for _, p := range k.m.Main().Params() {
		k.types = append(k.types, p.Type)
	}
	if have := r.memory(); k.bytes > have {
		return nil, fmt.Errorf("reference: it takes %s of memory, %s is available: it computes every layer for the whole batch at once; a smaller batch or shorter sequences (--set axes.NAME=…) check the same program",
			sizeText(k.bytes), sizeText(have))
	}
	if like == nil {
		r.opts.note("the reference is computed by the kernels of runs, in float64: its values take %s, the evaluator has %s", sizeText(held), sizeText(limit))
	}
	return k, nil
}

// valueBytes is what the values of m take together, 8 bytes for each number.
func valueBytes(m *ir.Module) int {
	n := 0
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		f.Body.Walk(func(op *ir.Op) {
			for _, v := range op.Results {
				if v.Type.IsTensor() && v.Type.IsStatic() {
					n = plus(n, times(stats.BytesOf(v.Type)/v.Type.Elem.Size(), 8))
				}
			}
		})
	}
	return n
}

// onOneDevice is m in the types that opts says, as StableHLO; a global program for one
// device.
func onOneDevice(ctx context.Context, m *ir.Module, opts eval.Options) (*ir.Module, error) {
	m, err := lower.Recast(m, func(t ir.DType) ir.DType {
		switch {
		case opts.Float64 && t.IsFloat() || opts.Float32 && t == ir.F64:
			return floatOf(opts.Float64, ir.F64, ir.F32)
		case opts.Float64 && t.IsComplex() || opts.Float32 && t == ir.C128:
			return floatOf(opts.Float64, ir.C128, ir.C64)
		}
		return t
	})
	if err != nil || m.Form.Has(ir.Local) {
		return m, err
	}
	if err := passBug(passes.Run(m, passes.Config{Context: ctx, After: "dce"}), ""); err != nil {
		return nil, err
	}
	lower.OneDevice(m)
	return m, nil
}

func floatOf(wide bool, a, b ir.DType) ir.DType {
	if wide {
		return a
	}
	return b
}

// run takes one step, with a dither from other arguments: the kernels themselves round one way.
// What it takes of memory is free afterwards.
func (k *byKernels) run(ctx context.Context, args [][]*ir.Literal, dither eval.Dither) ([][]*ir.Literal, error) {
	exe, err := runtime.Load(k.m)
	if err != nil {
		return nil, err
	}
	in := make([][]*ir.Literal, len(args))
	for d, list := range args {
		for i, l := range list {
			l = lower.RecastLiteral(l, k.types[i].Elem)
			if dither.Size > 0 && l.Type.Elem.IsFloat() {
				l = rounding.Moved(l, rand.New(rand.NewPCG(dither.Seed, uint64(i))))
			}
			in[d] = append(in[d], l)
		}
	}
	out, err := exe.Run(ctx, in)
	exe = nil
	debug.FreeOSMemory()
	return out, err
}
