// Package tidy holds the passes that change no sharding and no schedule: algebraic
// simplification, common-subexpression elimination, dead-code elimination and
// loop-invariant code motion.
package tidy
