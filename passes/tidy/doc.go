// Package tidy holds the passes that change no sharding and no schedule: algebraic
// simplification, common-subexpression elimination, dead-code elimination,
// loop-invariant code motion and its opposite, sinking into branches.
package tidy
