package ir

import (
	"strings"
)

// A Form is a set of properties that a Module may have beyond being well
// formed. A pass states the Form it requires, the Form it ensures and the
// Form it breaks; verify.Verify checks the Form that a Module claims.
type Form uint16

// The properties, in the order in which the passes establish them.
const (
	Staged         Form = 1 << iota // no pp.pipeline, no pp.stack: loops over iterations and layers
	Gathered                        // every pipelined weight is all-gathered over its gathered axes before it is used
	Checkpointed                    // remat regions are where the configuration puts them
	Differentiated                  // main returns the gradients that were asked for
	Optimized                       // main is a step of training, if one was asked for
	Rotated                         // no pp.rotate
	Expanded                        // no pp op, no chlo op: pure StableHLO with Shardy shardings
	Sharded                         // every tensor has a closed sharding
	Padded                          // the axes of every sharding divide what they shard
	Resharded                       // every op has operands in the layouts that it is computed with; sdy.reshard is all that moves a value to another
	Explicit                        // no sdy.reshard: every move is an explicit collective
	Local                           // one program per device: no sharding, no sdy op; shapes per device
)

// FormTable says how each property is spelled.
var FormTable = []struct {
	form Form
	name string
}{
	{Staged, "staged"},
	{Gathered, "gathered"},
	{Checkpointed, "checkpointed"},
	{Differentiated, "differentiated"},
	{Optimized, "optimized"},
	{Rotated, "rotated"},
	{Expanded, "expanded"},
	{Sharded, "sharded"},
	{Padded, "padded"},
	{Resharded, "resharded"},
	{Explicit, "explicit"},
	{Local, "local"},
}

// Has reports whether f has all properties of g.
func (f Form) Has(g Form) bool { return f&g == g }

func (f Form) String() string {
	var names []string
	for _, row := range FormTable {
		if f.Has(row.form) {
			names = append(names, row.name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, " ")
}

// ParseForm is the inverse of String; it reports false for an unknown property.
func ParseForm(s string) (Form, bool) {
	var f Form
	if s == "none" {
		return 0, true
	}
next:
	for _, name := range strings.Fields(s) {
		for _, row := range FormTable {
			if row.name == name {
				f |= row.form
				continue next
			}
		}
		return 0, false
	}
	return f, true
}

// Decomposes reports whether the pass expand makes StableHLO ops of op: whether it is
// of the dialect chlo and no function of complex numbers that HLO has an opcode for.
func (op *Op) Decomposes() bool {
	return op.Kind.Has(Composite) && !(op.Kind.Has(InHLO) && len(op.Operands) == 1 && op.Operands[0].Type.Elem.IsComplex())
}
