// Package ir is the program representation: StableHLO, eight pp ops for
// pipelines, and Shardy shardings, as one graph of values.
//
// A [Module] holds meshes and functions. A [Func] holds a [Block]; a Block
// holds arguments and [Op]s in execution order; an Op reads and defines
// [Value]s and may hold Blocks of its own, its regions. A region sees the
// values defined before the op that holds it, except in the ops whose row says
// Isolated.
//
// What is known of an op in general is its row in the table of ir/dialect: name,
// arity, attributes, regions, constraints, result types, sharding factors. This
// package reads the table and does not know the rows; a package that builds or
// verifies programs imports ir/dialect.
//
// A Module claims a [Form], a set of properties that passes establish one by
// one until the program is one per device; verify.Verify checks the rules of the
// ops and the claimed Form.
//
// The package does not read or write text (see ir/mlir), compute (ir/eval,
// runtime) or transform (passes). It imports no other package of ppc.
package ir
