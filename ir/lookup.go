package ir

import "sync/atomic"

// An index finds things by their names: it knows at what place in a list each name
// comes first. The list may change; what is found is looked at again, and the index
// made anew where it was wrong.
type index struct {
	places atomic.Pointer[map[string]int]
}

// few is the length up to which a list is searched without an index.
const few = 16

// find returns the first thing of list called name, or nil.
func find[T any](x *index, list []*T, name string, nameOf func(*T) string) *T {
	if len(list) <= few {
		return search(list, name, nameOf)
	}
	if places := x.places.Load(); places != nil {
		if i, ok := (*places)[name]; ok && i < len(list) && nameOf(list[i]) == name {
			return list[i]
		}
	}
	found := search(list, name, nameOf)
	if found != nil {
		places := make(map[string]int, len(list))
		for i, t := range list {
			if _, ok := places[nameOf(t)]; !ok {
				places[nameOf(t)] = i
			}
		}
		x.places.Store(&places)
	}
	return found
}

func search[T any](list []*T, name string, nameOf func(*T) string) *T {
	for _, t := range list {
		if nameOf(t) == name {
			return t
		}
	}
	return nil
}
