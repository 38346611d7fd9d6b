// Package bubbles skips the computation of a stage in the iterations in which it
// has no microbatch.
package bubbles
