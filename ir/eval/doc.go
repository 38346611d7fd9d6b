// Package eval is the reference evaluator: it computes the meaning of a program op
// by op, following the wording of the StableHLO specification. It is the oracle
// that the compiler and the runtime are compared with, so it is written for clarity
// before speed.
//
//	out, err := eval.Run(m, m.Main(), args, eval.Options{})
//
// [Run] evaluates a global program in one process: pp ops by their definition,
// shardings as no more than annotations, a manual computation shard by shard.
// [RunDevices] evaluates a per-device program, one process per device, whose
// collectives meet. Both verify the module first and return an [*Error] that
// names the op for whatever then goes wrong.
//
// Numbers: an op computes in float64, int64 or complex128 and rounds or wraps
// each element once, to the element type of its result; dot_general and reduce
// too, which hold many sums. Reductions combine in index order, collectives in
// group order, so that the same program gives the same bits every time. With
// [Options].Float64 nothing is rounded, and the results are float64.
//
// What is known of an op is its row in table.go.
package eval

import _ "ppc/ir/dialect" // the op table
