// Package suite runs the test files of StableHLO and others like them: programs
// that compare their own results by the ops check.expect_*, and programs that have
// errors which comments expect.
package suite
