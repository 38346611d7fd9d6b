// Package partition makes of the sharded global program, whose mesh axes divide the
// dimensions that they shard, the program that each device runs, in three passes:
// [Choose] gives every op its layouts and reshards between them, [Collectives]
// does reshards by explicit collectives, and [Localize] makes shapes local. Each
// form between them prints and can be read again. Choose
// decides, and writes down what it has decided as shardings and reshards; the
// others follow.
package partition
