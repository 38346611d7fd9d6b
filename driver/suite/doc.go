// Package suite runs the test files of StableHLO and of whoever writes such: programs
// that compare their own results by the ops check.expect_*, and programs that have
// errors which comments expect.
package suite
