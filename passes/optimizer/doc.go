// Package optimizer makes a differentiated program a training step: optimizer
// state, update rules, learning-rate schedules, gradient clipping, gradient
// accumulation, and ZeRO-1 sharding of the state.
package optimizer
