// Package config holds what a source declares besides functions: axes, element
// types, the mesh, sharding rules, the settings with their table, and which of
// them act on nothing. What an expression means is asked of its caller, package
// lang.
package config
