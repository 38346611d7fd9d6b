// Package driver does what the command line offers with files: it reads
// programs by extension, compiles them, binds arguments, runs, checks and
// writes results. The file named after a task holds that task.
//
// It prints nothing. What there is to say comes back as values and errors; an
// error of ppc itself is a [*Bug], a flag that does not fit a [*UsageError],
// results beyond their tolerance a [*Mismatch].
package driver
