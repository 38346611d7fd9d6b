package scalar

import (
	"ppc/internal/elementary"
	"ppc/ir"
)

// F32 and F64 are what the kernels of elementary functions compute, an element at a time: all tiers give the same bits.
var (
	F32 = map[ir.Kind]func(float32) float32{
		ir.Rsqrt: RsqrtF32, ir.Exponential: ExpF32, ir.ExponentialMinusOne: Expm1F32, ir.Log: LogF32, ir.Tanh: TanhF32, ir.Logistic: LogisticF32, ir.Sine: SinF32, ir.Cosine: CosF32,
	}
	F64 = map[ir.Kind]func(float64) float64{
		ir.Rsqrt: RsqrtF64, ir.Exponential: ExpF64, ir.ExponentialMinusOne: Expm1F64, ir.Log: LogF64, ir.Tanh: TanhF64, ir.Logistic: LogisticF64, ir.Sine: SinF64, ir.Cosine: CosF64,
	}
)

// Angles up to these are reduced by F32 and F64; those beyond, and what is no number, are left to [Angles].
const (
	TurnsF32 = 1 << 14
	TurnsF64 = 1 << 20
)

// Angles are the functions of angles of any size, to be rounded once.
var Angles = map[ir.Kind]func(float64) float64{ir.Sine: elementary.SinReal, ir.Cosine: elementary.CosReal}

// bounds are how far the elementary functions of f32 and of f64 may be from the
// exact value, in units in the last place; those of f64 include what their
// reference, package math, is off.
var bounds = map[ir.Kind][2]float64{
	ir.Rsqrt: {1.5, 1}, ir.Exponential: {1.1, 2}, ir.ExponentialMinusOne: {1.6, 3}, ir.Log: {1.1, 2}, ir.Tanh: {2.6, 5}, ir.Logistic: {2.2, 4}, ir.Sine: {1.5, 2}, ir.Cosine: {1.5, 2},
}

// Bound is how far ops of kind k on elements of type t may be from the exact
// value, in units in the last place; 0 of ops that have no bound of their own.
func Bound(k ir.Kind, t ir.DType) float64 {
	switch t {
	case ir.F32:
		return bounds[k][0]
	case ir.F64:
		return bounds[k][1]
	}
	return 0
}
