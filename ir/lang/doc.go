// Package lang reads .pp programs: it parses them, checks them, and builds
// their modules in typed form, which the passes take.
//
// A program goes through four steps. [Load] reads the file and what it
// includes (package syntax); merges the declarations, the command line's last
// (package config); then walks the model (elab.go and what it calls), which is
// at once the type check and the building of the module, because a function is
// inlined and the axes of its arguments are only known where it is called; and
// last verifies the module.
//
// Everything wrong with a program is found in one run, in source order: what
// failed is bound to a poison value whose uses keep silent. Each message is a
// row of messages.go in package syntax.
//
// The standard library (std/*.pp) is written in the language. What a file
// declares takes the place of what the library declares under the same name.
//
// The package does not transform programs (see passes), nor compute them (see
// eval and runtime).
package lang

// the op table
