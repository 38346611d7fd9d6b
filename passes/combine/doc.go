// Package combine merges collectives, as XLA's collective combiners do: several of
// the same kind and groups into one with as many operands, and several whose
// results are added up into one of the sum.
package combine
