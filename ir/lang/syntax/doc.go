// Package syntax reads the source of the .pp language: grammar, syntax tree,
// formatter, the diagnostics that point into a source, and the names that other
// systems have for what ours means.
package syntax
