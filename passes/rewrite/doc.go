// Package rewrite has the edits that several passes make: inlining, copying a
// region, dropping functions that nothing refers to.
package rewrite
