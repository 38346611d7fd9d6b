package facts

import (
	"ppc/ir"
)

// Placement is the target of the custom call that copies between them.
const Placement = "annotate_device_placement"

// IsPlacement reports whether op copies a value to another memory.
func IsPlacement(op *ir.Op) bool {
	return op != nil && op.Kind == ir.CustomCall && op.Str("call_target_name") == Placement
}

// SmallBytes is the size up to which a value counts as free to keep live: a few
// scalars.
const SmallBytes = 64

// BytesOf is the size of a value of type t in bytes; 0 where it is not known.
func BytesOf(t *ir.Type) int {
	if !t.IsTensor() || !t.IsStatic() {
		return 0
	}
	return t.Bytes()
}
