// Package flow is the data-flow analysis of local programs that packages stats and
// lint have in common: uses of values, slices of weights followed through loops and
// branches, and trip counts of loops.
package flow
