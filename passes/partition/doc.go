// Package partition makes the sharded program, whose axes divide what they shard,
// the program of one device, in passes with a printable program between them:
// [Choose] gives every op its layouts and reshards between them, [Collectives]
// does reshards by explicit collectives, and [Localize] makes shapes local. Choose
// decides, and writes down what it has decided as shardings and reshards; the
// others follow.
package partition
