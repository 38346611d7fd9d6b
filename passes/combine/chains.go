package combine

import (
	"slices"
	"sort"
)

// maxChains bounds the chains that cover the collectives of a block.
const maxChains = 8

// A reach says of each chain how many of its collectives, from its beginning, a value
// depends on.
type reach [maxChains]int32

// chains cover the collectives of a block that may be joined: in a chain each depends
// on the one before it. Of a collective in a chain, those of another chain that do not
// depend on it are the first ones, so that a search for one that may join it ends
// behind the last of these. What is in no chain may depend on nothing.
//
// A chain of n collectives, of which none may join another, is searched in n steps,
// not in n*n. Joining makes more depend on more, which is not looked at: a search may
// then go on for longer than it has to.
type chains struct {
	length [maxChains]int32
	of     []reach // by ID
	keys   map[string]*keyed
}

// keyed has the collectives of one key, in the order of the block.
type keyed struct {
	chains [maxChains][]*inLine
	loose  []*inLine // in no chain
}

// A chainPlace is where a collective is in a chain.
type chainPlace struct {
	chain, place int32 // the first is in place 1; 0 for one in no chain
	reach        reach
}

// newChains covers the collectives of line, a block from its end on.
func newChains(line []*inLine, ids int) *chains {
	c := &chains{of: make([]reach, ids), keys: make(map[string]*keyed)}
	for _, x := range slices.Backward(line) {
		var r reach
		for _, v := range x.reads {
			for i, n := range c.of[v.ID] {
				r[i] = max(r[i], n)
			}
		}
		x.chainPlace = chainPlace{}
		if x.key != "" {
			c.add(x, &r)
		}
		for _, v := range x.gives {
			c.of[v.ID] = r
		}
	}
	return c
}

// add puts x, which depends on r, at the end of a chain, if there is one.
func (c *chains) add(x *inLine, r *reach) {
	k := c.keys[x.key]
	if k == nil {
		k = new(keyed)
		c.keys[x.key] = k
	}
	for i, n := range c.length {
		if n == r[i] { // it depends on all of the chain, which may be none
			c.length[i]++
			r[i] = c.length[i]
			x.chainPlace = chainPlace{int32(i), c.length[i], *r}
			k.chains[i] = append(k.chains[i], x)
			return
		}
	}
	k.loose = append(k.loose, x)
}

// made adds x, an op that joining has made.
func (c *chains) made(x *inLine) {
	x.chainPlace = chainPlace{}
	if k := c.keys[x.key]; k != nil && x.key != "" {
		k.loose = append(k.loose, x)
	}
}

// last is where in the line, from its end on, the last collective is that may join g,
// collectives of one key: it depends on none of them. Without one it is beyond the
// line.
func (c *chains) last(g []*inLine, beyond int) int {
	k := c.keys[g[0].key]
	if slices.ContainsFunc(g, func(one *inLine) bool { return one.place == 0 }) {
		return 0
	}
	at := beyond
	for i := range k.chains {
		list := k.chains[i]
		for len(list) > 0 && list[0].gone {
			list = list[1:]
		}
		k.chains[i] = list
		n := sort.Search(len(list), func(n int) bool {
			return slices.ContainsFunc(g, func(one *inLine) bool { return list[n].reach[one.chain] >= one.place })
		})
		for n > 0 && list[n-1].gone {
			n--
		}
		if n > 0 {
			at = min(at, list[n-1].at)
		}
	}
	for _, x := range k.loose {
		if !x.gone {
			at = min(at, x.at)
		}
	}
	return at
}
