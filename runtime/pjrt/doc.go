// Package pjrt runs a program for one device on the devices of a PJRT plugin: a
// shared library with XLA's portable C interface, such as those that JAX loads
// for CPUs, GPUs and TPUs.
//
// [Open] loads a plugin, [Plugin.Client] makes its devices, [Client.Compile]
// compiles StableHLO text for as many replicas as it has. [Plugin.Topology] compiles ahead of time,
// without devices.
//
// A plugin is code of others in the process that loads it. [Start] loads it in a
// child process instead, where a crash ends the child alone; [Serve] is what the
// child does.
//
// The interface is that of xla/pjrt/c/pjrt_c_api.h: one table of functions, each of
// which takes a struct that begins with its size. Structs and the table only grow
// at their ends, so a plugin that is older or newer is told what is known by those
// sizes. Nothing here uses cgo.
package pjrt
