// Package gradient appends the gradient of a loss by reverse mode over the regions
// of the IR: loops in reverse, residuals only where they are asked for, remat
// regions recomputed. One rule per op, in the files rules_*.go.
package gradient
