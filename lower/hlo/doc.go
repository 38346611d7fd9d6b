// Package hlo is the HLO text form of a program: what XLA reads and prints.
//
// [Print] writes a per-device program, the last form of package ir, as a
// module that XLA parses, compiles and runs. [Parse] reads HLO text, ours or
// XLA's, into the same ops. How an op is spelled is its row in the table of
// table.go, which both directions read.
//
// The two forms differ in three ways. An HLO computation sees nothing of its
// caller, so the values that a region captures become elements of the tuple
// that a while carries, or of the operand of a conditional's branch; small
// constants are repeated where they are used. An HLO instruction has one
// result, so an op of several has a tuple and its elements. And HLO's
// broadcast does not stretch a dimension of size 1, its select and clamp want
// equal shapes, its constants have no splats: one op becomes several
// instructions.
package hlo

// the op table
