package pjrt

import (
	"encoding/binary"
	"fmt"
)

// Options are those of a plugin: a string, an int or a bool by name.
type Options map[string]any

// CompileOptions says for what a program is compiled.
type CompileOptions struct {
	Replicas   int
	Partitions int // of each replica; more than 1 asks for Shardy's partitioner
}

// memoryFitting is memory_fitting_level, how hard XLA works for a program to fit in
// memory: EFFORT_O2.
const memoryFitting = 29

// encode is the options as a CompileOptionsProto of xla/pjrt/proto. They are those that
// JAX gives, of one partition too: with others XLA's compiler for TPUs takes other bytes
// for temporaries.
func (o CompileOptions) encode() []byte {
	var assignment []byte
	assignment = number(assignment, 1, o.Replicas)
	assignment = number(assignment, 2, o.Partitions)
	for p := range o.Partitions {
		var ids []byte
		for r := range o.Replicas {
			ids = binary.AppendUvarint(ids, uint64(r*o.Partitions+p))
		}
		assignment = message(assignment, 3, message(nil, 1, ids))
	}
	var build []byte
	build = binary.AppendUvarint(append(build, 1<<3), ^uint64(0)) // no device_ordinal
	build = number(build, 4, o.Replicas)
	build = number(build, 5, o.Partitions)
	build = number(build, 6, 1) // use_spmd_partitioning
	build = message(build, 9, assignment)
	build = number(build, 19, 1) // use_shardy_partitioner
	build = number(build, 25, memoryFitting)
	return message(nil, 3, build)
}

// number appends field f with an integer.
func number(b []byte, f, v int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(f)<<3), uint64(v))
}

// message appends field f with bytes: a message, or packed integers.
func message(b []byte, f int, body []byte) []byte {
	b = binary.AppendUvarint(b, uint64(f)<<3|2)
	return append(binary.AppendUvarint(b, uint64(len(body))), body...)
}

// An Error is what a plugin says went wrong.
type Error struct {
	Plugin   string
	Function string // of the interface
	Code     int    // of absl::StatusCode: 3 is an invalid argument, 8 exhausted memory
	Message  string // the plugin's own words
}

// outOfMemory is the code of what needs more than there is.
const outOfMemory = 8

// OutOfMemory reports whether the devices do not have the memory that is asked for.
func (e *Error) OutOfMemory() bool { return e.Code == outOfMemory }

// Error is the plugin's own words, after who says them.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %s: %s", e.Plugin, e.Function, e.Message)
	if e.OutOfMemory() {
		return "the devices do not have the memory that the program takes: " + text
	}
	return text
}
