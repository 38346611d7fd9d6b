package hlo

import (
	"slices"
	"strings"
	"sync"

	"ppc/ir"
)

// kindsByOpcode are the ops that rows spell with an opcode: one, but for
// conditional.
func kindsByOpcode() map[string]ir.Kind {
	m := make(map[string]ir.Kind)
	for _, k := range ir.Kinds() {
		if row := rowOf(k); row != nil && k != ir.If {
			m[row.opcode] = k
		}
	}
	return m
}

// Elementwise reports whether what an opcode computes is that of elements in the same place.
func Elementwise(opcode string) bool {
	k, ok := rowKinds()[opcode]
	return ok && k.Has(ir.Elementwise)
}

// OfTensors reports whether an opcode takes tensors, and no tuples of them.
func OfTensors(opcode string) bool {
	k, ok := rowKinds()[opcode]
	return ok && k != ir.CollectivePermute && k != ir.CustomCall && k != ir.TupleOp && k != ir.GetTupleElement && slices.Contains([]form{plain, stretched, leveled, exchange}, rowOf(k).form)
}

// Gives reports whether what an opcode computes may be of type t, as far as that is one tensor or a
// tuple of several. An opcode without a row is not looked at.
func Gives(opcode string, t *ir.Type) bool {
	if !OfTensors(opcode) || t.Kind != ir.TupleType {
		return true
	}
	k := rowKinds()[opcode]
	return rowOf(k).form == exchange || len(t.Elems) > 1 && len(t.Elems) <= k.NumResults().Max
}

var rowKinds = sync.OnceValue(kindsByOpcode)

// otherOpcodes are the opcodes of HLO that have no row, with the smallest
// number of operands. They are carried through.
var otherOpcodes = map[string]int{
	"add-dependency": 2, "after-all": 0,
	"all-gather-done": 1, "all-gather-start": 1, "all-reduce-done": 1, "all-reduce-start": 1, "async-done": 1, "async-start": 0, "async-update": 1,
	"batch-norm-grad": 5, "batch-norm-inference": 5, "batch-norm-training": 3, "bitcast": 1,
	"collective-permute-done": 1, "collective-permute-start": 1, "copy": 1, "copy-done": 1, "copy-start": 1,
	"domain": 1, "dynamic-reshape": 1, "fusion": 0, "get-dimension-size": 1, "infeed": 1, "map": 1, "mulhi": 2, "outfeed": 1,
	"ragged-all-to-all": 6, "recv": 1, "recv-done": 1, "rng": 1, "rng-get-and-update-state": 0,
	"scaled-dot": 2, "scan": 1, "send": 2, "send-done": 1, "set-dimension-size": 2, "stochastic-convert": 2, "topk": 1,
}

// asyncSuffixes make the opcode of an operation that is split in time out of
// that of the operation.
var asyncSuffixes = []string{"-start", "-update", "-done"}

// Wrapped returns the opcode that an opcode with one of these suffixes splits.
func Wrapped(opcode string) (string, bool) {
	for _, suffix := range asyncSuffixes {
		if op, ok := strings.CutSuffix(opcode, suffix); ok {
			return op, true
		}
	}
	return "", false
}

// ownAsync are the opcodes that are split by opcodes of their own, which have
// no -update.
var ownAsync = []string{"all-gather", "all-reduce", "collective-permute", "copy", "send", "recv"}

// leastOperands is the smallest number of operands of an opcode without a
// row; false where there is no such opcode.
func leastOperands(opcode string, kinds map[string]ir.Kind) (int, bool) {
	if n, ok := otherOpcodes[opcode]; ok {
		return n, true
	}
	if k, ok := kinds[opcode]; ok {
		return k.NumOperands().Min, true
	}
	op, ok := Wrapped(opcode)
	if !ok || slices.Contains(ownAsync, op) {
		return 0, false
	}
	_, known := kinds[op]
	_, other := otherOpcodes[op]
	return 0, known || other
}
