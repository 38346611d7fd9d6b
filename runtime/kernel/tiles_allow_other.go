//go:build amd64 && !linux

package kernel

// allowTiles reports false: how to ask the system for the tiles of the matrix unit is not known.
func allowTiles() bool { return false }
