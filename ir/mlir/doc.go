// Package mlir is the text form of programs: it prints and parses modules in
// MLIR syntax, as StableHLO 1.20 and Shardy print them.
//
// What an op looks like is a row of the table in syntax.go, a list of parts
// that both print and parse. An op without a row, or that does not fit its
// row, is written in MLIR's generic form, and every op may be read in it. Ops
// that package ir does not know are carried through as [ir.Unknown].
//
// The text of a module says everything about it but the origins of its ops,
// which [Options.Locs] adds, so a compilation can be resumed from a dump.
// Printing what was parsed from printed text gives the same text, names of
// values included: see names.go.
//
// The parser takes time and memory proportional to its input, and bounds the
// depth of nesting.
package mlir

import _ "ppc/ir/dialect" // the op table
