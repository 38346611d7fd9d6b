// Package bubbles leaves out the work of a stage in iterations in which it has
// no microbatch.
package bubbles
