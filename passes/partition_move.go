package passes

import "ppc/ir"

func (p *partitioner) waits(op *ir.Op) bool                       { return false }
func (p *partitioner) makeMoved(v *ir.Value, at layout) *ir.Value { panic("no copy of " + describe(v)) }
