// Package optimizer makes a differentiated program a step of training: optimizer
// state, update rules, learning rates, gradient accumulation, and ZeRO-1.
package optimizer
