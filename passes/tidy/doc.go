// Package tidy holds the passes that change no layout and no algorithm:
// algebraic identities, common subexpressions, dead values, and what is the same
// in every iteration of a loop.
package tidy
