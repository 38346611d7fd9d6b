package facts

import (
	"ppc/ir"
)

// ManualAxesOf are the names of the axes that a manual computation is manual
// over.
func ManualAxesOf(op *ir.Op) []string {
	list, _ := op.Attrs.Get("manual_axes").(ir.Array)
	names := make([]string, len(list))
	for i, a := range list {
		s, _ := a.(ir.Str)
		names[i] = string(s)
	}
	return names
}

// Stated is the sharding that the program states for v, nil if none.
func Stated(v *ir.Value) *ir.Sharding {
	if v.Def != nil && (v.Def.Kind == ir.ShardingConstraint || v.Def.Kind == ir.PPGather) {
		return v.Def.Attrs.Get("sharding").(*ir.Sharding)
	}
	return v.Sharding
}
