// Package partition makes the sharded program the program of one device: local
// shapes and explicit collectives.
package partition
