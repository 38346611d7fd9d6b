// Package flow says where values go in a per-device program: who reads them,
// what is chosen from what, through loops and branches, and how often loops
// run. What reads programs shares it: package stats and package lint.
package flow
