package verify

import (
	"math/bits"
	"unsafe"

	"ppc/ir"
)

// known is which types have been found sound, and ops to keep the rules of their rows.
// Types and attributes never change, so it tells them by identity; what passes leave as it
// was, and the copies that they make of it, is not checked again.
type known struct {
	types [64]*ir.Type
	ops   []signature
}

// A signature is what the rules of a row are about: the op's kind, its attributes and the
// types of its values.
type signature struct {
	kind              ir.Kind
	operands, results uint8
	module            bool // the module matters, too: the op may refer to a part of it
	attrs             *ir.NamedAttr
	numAttrs          int
	types             [maxTypes]*ir.Type
}

// maxTypes is how many operands and results ops with signatures have at most.
const maxTypes = 6

// reserve makes room for what is known of some n ops.
func (k *known) reserve(n int) {
	const least, most = 1 << 6, 1 << 12
	if n = min(max(n, least), most); n > len(k.ops) {
		k.ops = make([]signature, 1<<bits.Len(uint(n-1)))
	}
}

// mix is h and a pointer in one number.
func mix(h uint64, p unsafe.Pointer) uint64 {
	h = (h ^ uint64(uintptr(p))) * 0x9E3779B97F4A7C15
	return h ^ h>>32
}

// typeAt is where t is, if it is known to be sound.
func (k *known) typeAt(t *ir.Type) **ir.Type {
	return &k.types[mix(0, unsafe.Pointer(t))%uint64(len(k.types))]
}

// isSound reports whether t has been found sound.
func (k *known) isSound(t *ir.Type) bool { return t != nil && *k.typeAt(t) == t }

// found notes that t is sound.
func (k *known) found(t *ir.Type) { *k.typeAt(t) = t }

// at is where the signature of op is, if it is known; nil where op can have none.
func (k *known) at(op *ir.Op) *signature {
	if len(op.Operands)+len(op.Results) > maxTypes || len(op.Regions) > 0 || op.Kind >= ir.NumKinds || op.Kind == ir.Unknown {
		return nil
	}
	h := mix(uint64(op.Kind), unsafe.Pointer(unsafe.SliceData(op.Attrs)))
	for _, x := range op.Operands {
		if x == nil {
			return nil
		}
		h = mix(h, unsafe.Pointer(x.Type))
	}
	for _, x := range op.Results {
		if x == nil {
			return nil
		}
		h = mix(h, unsafe.Pointer(x.Type))
	}
	return &k.ops[h&uint64(len(k.ops)-1)]
}

// like is the signature of op, if ops of that keep the rules of their row; nil if that is
// not known.
func (k *known) like(op *ir.Op) *signature {
	at := k.at(op)
	if at == nil || at.kind != op.Kind || int(at.operands) != len(op.Operands) || int(at.results) != len(op.Results) ||
		at.numAttrs != len(op.Attrs) || at.attrs != unsafe.SliceData(op.Attrs) {
		return nil
	}
	for i, x := range op.Operands {
		if at.types[i] != x.Type {
			return nil
		}
	}
	for i, x := range op.Results {
		if at.types[len(op.Operands)+i] != x.Type {
			return nil
		}
	}
	return at
}

// learn notes that op keeps the rules of its row, and why.
func (k *known) learn(op *ir.Op) {
	at := k.at(op)
	if at == nil || op.Kind.Has(ir.LooksBack) {
		return
	}
	*at = signature{kind: op.Kind, operands: uint8(len(op.Operands)), results: uint8(len(op.Results)),
		attrs: unsafe.SliceData(op.Attrs), numAttrs: len(op.Attrs), module: op.Kind.Refers()}
	for i := range op.Attrs {
		switch a := &op.Attrs[i]; a.Attr.(type) {
		case *ir.Sharding, ir.PerValue:
			at.module = true
		default:
			at.module = at.module || op.Spec(a.Name) == nil
		}
	}
	for i, t := range append(ir.TypesOf(op.Operands), ir.TypesOf(op.Results)...) {
		at.types[i] = t
	}
}
