// Package runtime executes a program that is one per device: each device is a
// goroutine, and devices meet in collectives.
//
// [Load] compiles a module to an [Executable]; [Executable.Run] runs it, any
// number of times, also at the same time.
//
//	exe, err := runtime.Load(m)
//	results, err := exe.Run(ctx, args) // args[device][parameter]
//
// A module that Load accepts has StableHLO ops only. Its devices are the
// partitions of mhlo.num_partitions (or of the mesh), in each of the replicas of
// mhlo.num_replicas. What Load accepts, Run fails only for its arguments, for
// the context, or for the program's own fault: devices that wait for each other
// in a cycle.
//
// How it works. A function is a list of steps over numbered slots; a region is
// a list of steps over the slots of its function, so that what a region
// captures costs nothing. A slot holds a reference to a buffer. The compiler
// knows the last use of each value, where the step takes the reference over:
// loop carries, reshapes and permutes move buffers and copy nothing, and an
// elementwise op or an update writes into an operand that nobody else holds. A
// slice is the memory of its tensor where nobody writes that while it is read (see
// piece).
// A buffer with several references is never written, which is how devices
// share what a collective made for all of them.
//
// A run with [WithTrace] counts, one with [WithProfile] measures ops, one with
// [WithTimeline] keeps when each device was at which op, which costs one reading
// of the clock for each, or for a row of brief ones.
//
// The package imports no pass and knows no pipeline.
package runtime
