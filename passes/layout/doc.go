// Package layout has what propagation and partitioning say of shardings in
// common: the layout of a tensor, the plan of a reshard from one to another, the
// projection of axes on factors, unreduced axes, and texts about rules.
package layout
