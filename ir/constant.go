package ir

// ConstantOf is the literal that v is, nil if it is no constant or its elements
// do not matter.
func ConstantOf(v *Value) *Literal {
	if v.Def == nil || v.Def.Attrs.Has(KeyDontCare) {
		return nil
	}
	switch v.Def.Kind {
	case Constant:
		return v.Def.Literal("value")
	case BroadcastInDim: // of a scalar: a splat
		if l := ConstantOf(v.Def.Operands[0]); l != nil && l.IsSplat() {
			return &Literal{Type: v.Type, Data: l.Data}
		}
	}
	return nil
}
