// Package kernel computes dense tensors: for each op of ir's table that does
// not control or communicate, a function from the operands' memory to the
// results'.
//
// [Build] turns an op into a [Func] once, with everything that types and
// attributes say already worked out; the Func then runs any number of times,
// from any number of goroutines, each with a [Work] of its own. A Func never
// allocates per element and, but for packing and windows of odd shapes, never
// computes an index per element.
//
// Every Func folds in a fixed order, which depends on the shape alone, so the
// same operands give the same bits. A row is folded in [foldLanes] chains, rows
// are folded into each other in groups: that is fast, and sums lose less. The
// elementary functions of floats have the bounds that their test states. Integers wrap; a division by zero is
// all ones and a remainder by zero the dividend; conversions to integers
// saturate and take NaN to zero. bf16 and f16 compute in f32 and round once at
// the end of the op, reductions and contractions included; only a region of
// several ops rounds after each of them.
package kernel

import _ "ppc/ir/dialect" // the op table
