package pjrt

import (
	"maps"
	"slices"
)

// Stats is what a compiled program takes on one device: bytes of memory, and, where
// the plugin counts them, floating-point operations and bytes read or written in
// one execution.
type Stats struct {
	Code, Arguments, Outputs, Aliases, Temporaries, Peak int64

	Flops, Bytes float64
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
