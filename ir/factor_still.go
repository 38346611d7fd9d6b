package ir

// isZeroAt reports whether every element of v at place k along dimension dim is
// zero, as far as constants and the clamps to them say: so are the components
// of an index that cannot move a window.
func (v *Value) isZeroAt(dim, k int) bool {
	low, high, ok := v.spanAt(dim, k)
	return ok && low == 0 && high == 0
}

// spanAt returns bounds of the elements of v at place k along dimension dim,
// of all elements where dim is -1; not ok where none are known.
func (v *Value) spanAt(dim, k int) (low, high int64, ok bool) {
	op := v.Def
	if op == nil || !v.Type.IsTensor() || op.Attrs.Has("pp.dont_care") {
		return 0, 0, false
	}
	switch op.Kind {
	case Constant, SdyConstant:
		return literalSpan(op.Literal("value"), dim, k)
	case BroadcastInDim:
		for i, d := range op.Ints("broadcast_dimensions") {
			if d == dim && op.Operands[0].Type.Shape[i] == v.Type.Shape[d] {
				return op.Operands[0].spanAt(i, k)
			}
		}
		return op.Operands[0].spanAt(-1, 0)
	case Concatenate:
		if op.Int("dimension") != dim {
			break
		}
		for _, x := range op.Operands {
			if k < x.Type.Shape[dim] {
				return x.spanAt(dim, k)
			}
			k -= x.Type.Shape[dim]
		}
	case Clamp: // the bounds may be scalars, whatever is between them
		of := func(x *Value) (int64, int64, bool) {
			if x.Type.Rank() == 0 {
				return x.spanAt(-1, 0)
			}
			return x.spanAt(dim, k)
		}
		least, _, known := of(op.Operands[0])
		most, greatest, ok := of(op.Operands[2])
		return min(least, most), greatest, known && ok
	}
	return 0, 0, false
}

// literalSpan is the span of the elements of l at place k along dimension dim.
func literalSpan(l *Literal, dim, k int) (low, high int64, ok bool) {
	if l == nil || !l.Type.Elem.IsInt() {
		return 0, 0, false
	}
	stride, size := 1, 1
	if dim >= 0 {
		size = l.Type.Shape[dim]
		for _, n := range l.Type.Shape[dim+1:] {
			stride *= n
		}
	}
	for i := range l.Type.NumElements() {
		if dim >= 0 && i/stride%size != k {
			continue
		}
		x := l.Int(i)
		if !ok {
			low, high, ok = x, x, true
		}
		low, high = min(low, x), max(high, x)
	}
	return low, high, ok
}
