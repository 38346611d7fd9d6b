package layout

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
)

// AxesText is axes with their sizes: stage=4 x fsdp=2.
func AxesText(mesh *ir.Mesh, axes []ir.AxisRef) string {
	var ss []string
	for _, r := range axes {
		ss = append(ss, fmt.Sprintf("%s=%d", strings.ReplaceAll(r.String(), `"`, ""), mesh.RefSize(r)))
	}
	return strings.Join(ss, " x ")
}

// A ShardedDim is dimension D of a tensor that is sharded along Axes, by Rule of
// the source where that is known.
type ShardedDim struct {
	D    int
	Axes []ir.AxisRef
	Rule *ir.Origin
}

// ShardedDims are the dimensions that s shards.
func ShardedDims(s *ir.Sharding) []ShardedDim {
	var out []ShardedDim
	if s != nil {
		for d, c := range s.Dims {
			if len(c.Axes) > 0 {
				out = append(out, ShardedDim{d, c.Axes, c.Rule})
			}
		}
	}
	return out
}

// RulesText says which rules of the source shard dims, each rule once: "; batch
// is sharded along data=2 by the rule at model.pp:12:3". It is empty where no rule
// is known.
func RulesText(mesh *ir.Mesh, dims ...ShardedDim) string {
	var said []string
	last := ""
	for _, c := range dims {
		if c.Rule == nil || c.Rule.Place().Line == 0 {
			continue
		}
		name, what := c.Rule.Name(), "rule"
		if name == "" {
			name, what = fmt.Sprintf("dimension %d", c.D), "sharding"
		}
		text := fmt.Sprintf("along %s by the %s at %s", AxesText(mesh, c.Axes), what, c.Rule.Place())
		if slices.Contains(said, text) || slices.Contains(said, name+" is sharded "+text) {
			continue
		}
		if name != last {
			text, last = name+" is sharded "+text, name
		}
		said = append(said, text)
	}
	if len(said) == 0 {
		return ""
	}
	return "; " + strings.Join(said, " and ")
}
