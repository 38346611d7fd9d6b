// Package rounding says how often a program rounds, and in which types: what a tolerance follows from.
package rounding

import (
	"cmp"
	"slices"

	"ppc/driver/binding"
	"ppc/ir"
)

// Unit is the largest relative error of a number rounded to t.
func Unit(t ir.DType) float64 {
	u := 0.5
	for u > 0x1p-53 && t.Round(1+u) != 1 {
		u /= 2
	}
	return u
}

// Types returns the floating-point types of the values of m and those to
// which its pipelines round weights, the least precise first.
func Types(m *ir.Module) []ir.DType {
	var found []ir.DType
	add := func(t ir.DType) {
		if t.IsComplex() {
			t = t.Part()
		}
		if t.IsFloat() && !slices.Contains(found, t) {
			found = append(found, t)
		}
	}
	see := func(vs []*ir.Value) {
		for _, v := range vs {
			if v.Type.IsTensor() {
				add(v.Type.Elem)
			}
		}
	}
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		see(f.Params())
		f.Body.Walk(func(op *ir.Op) {
			see(op.Results)
			if d, ok := op.Attrs.Get("config").(ir.Dict); ok {
				add(ir.DTypeByName(ir.Attrs(d).Str("gather_dtype")))
			}
		})
	}
	slices.SortFunc(found, func(a, b ir.DType) int { return cmp.Compare(Unit(b), Unit(a)) })
	return found
}

// Reduces reports whether a pipeline of m sums gradients in a type of its own.
func Reduces(m *ir.Module) bool {
	found := false
	for _, f := range m.Funcs {
		if f.Body != nil {
			f.Body.Walk(func(op *ir.Op) {
				d, ok := op.Attrs.Get("config").(ir.Dict)
				found = found || ok && ir.DTypeByName(ir.Attrs(d).Str("reduce_dtype")).IsFloat()
			})
		}
	}
	return found
}

// LongestSum is the largest number of terms of a sum in m.
func LongestSum(m *ir.Module) float64 {
	longest := 1.0
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		f.Body.Walk(func(op *ir.Op) {
			rule, n := ir.FactorsOf(op), 1.0
			if rule == nil {
				return
			}
			for k, t := range rule.Types {
				if t == ir.Reduction {
					n *= float64(rule.Sizes[k])
				}
			}
			longest = max(longest, n)
		})
	}
	return longest
}

// Pieces is in how many pieces m adds up what is one sum in the reference: those
// of the devices of a stage, of microbatches and of accumulated batches.
func Pieces(m *ir.Module) int {
	microbatches, stages := 1, 1
	for _, op := range m.Main().Body.Ops {
		if d, ok := op.Attrs.Get("config").(ir.Dict); ok {
			microbatches, stages = max(microbatches, ir.Attrs(d).Int("microbatches")), max(stages, ir.Attrs(d).Int("stages"))
		}
	}
	train, _ := m.Attrs.Get(ir.KeyTrain).(ir.Dict)
	return binding.NumDevices(m) / stages * microbatches * max(1, ir.Attrs(train).Int("gradient_accumulation"))
}
