// Package slab allocates values of one type many at a time. The garbage collector
// frees a slab when nothing refers to any value in it: it is for values that come
// and go together.
package slab

// Slabs hold these many values: few where few are needed, up to some 16 KB.
const (
	least = 2
	most  = 256
)

// Of allocates values of type T. The zero value is ready to use.
type Of[T any] struct {
	free []T
	size int // of the last slab
}

// New returns a new value.
func (s *Of[T]) New() *T { return &s.Slice(1)[0] }

// Slice returns n new values in a slice that has no room for more.
func (s *Of[T]) Slice(n int) []T {
	if n > len(s.free) {
		if n > most {
			return make([]T, n)
		}
		s.size = max(least, n, min(2*s.size, most))
		s.free = make([]T, s.size)
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}
