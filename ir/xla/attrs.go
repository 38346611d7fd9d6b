package xla

import (
	"strings"

	"ppc/ir"
)

// A meaning is the effect of an attribute on a program.
type meaning uint8

const (
	harmless meaning = iota // says nothing of what is computed
	read                    // is read, here or later
	unless                  // is harmless where it is false, zero or empty
	refused                 // changes what the program means, and is not read
)

// An attrRow is one attribute, or all that begin with a name ending in a dot.
type attrRow struct {
	name    string
	meaning meaning
	why     string // what the attribute says, and the cure; of unless and refused
}

// attrTable holds the attributes that XLA's front ends put on modules, functions,
// parameters, results and ops, beyond those that are part of an op. An attribute
// that is not listed, and belongs to a dialect of XLA (see [ours]), is refused.
var attrTable = []attrRow{
	// Of modules.
	{"mhlo.num_partitions", read, ""},
	{"mhlo.num_replicas", read, ""},
	{"mhlo.input_output_alias", harmless, ""},
	{"mhlo.cross_program_prefetches", harmless, ""},
	{"mhlo.xla_entry_computation_parameter_layouts", harmless, ""},
	{"mhlo.xla_entry_computation_parameter_tiles", harmless, ""},
	{"mhlo.xla_entry_computation_result_layout", harmless, ""},
	{"mhlo.xla_entry_computation_result_tiles", harmless, ""},
	{"mhlo.is_dynamic", unless, "sizes are known only when the program runs; export it with the sizes of one run"},
	{"mhlo.use_auto_spmd_partitioning", unless, "XLA chooses the shardings itself; export the program with the shardings that it is to have"},
	{"mhlo.spmd_output_sharding", refused, "XLA has partitioned the program already, and its shardings are those of the program before; give the program as it was before XLA's partitioner"},
	{"mhlo.spmd_parameters_shardings", refused, "XLA has partitioned the program already, and its shardings are those of the program before; give the program as it was before XLA's partitioner"},

	// Of parameters and results.
	{"mhlo.sharding", read, ""},
	{"mhlo.is_same_data_across_replicas", harmless, ""},
	{"mhlo.parameter_replication", harmless, ""},
	{"mhlo.memory_kind", harmless, ""},
	{"mhlo.layout_mode", harmless, ""},

	// Of ops.
	{"mhlo.backend_config", read, ""},
	{"mhlo.frontend_attributes", read, ""},
	{"mhlo.metadata", harmless, ""},
	{"mhlo.original_value", harmless, ""},
	{"mhlo.result_accuracy", harmless, ""},

	// Of Shardy: on ops, values and functions.
	{"sdy.sharding", read, ""},
	{"sdy.sharding_rule", harmless, ""}, // where an op may be partitioned; one without a rule has replicated operands
	{"sdy.propagation_edges", harmless, ""},
	{"sdy.result_propagation_edges", harmless, ""},
	{"sdy.block_arg_propagation_edges", harmless, ""},
	{"sdy.sharding_origins", harmless, ""},
	{"sdy.block_arg_sharding_origins", harmless, ""},
	{"sdy.result_sharding_origins", harmless, ""},
}

// ours are the dialects whose attributes affect the meaning of a program: one that
// is not in [attrTable] may change it.
var ours = []string{"mhlo.", "sdy.", "xla."}

// rowOf is the row of an attribute; one of refused where the table should have
// it and has not.
func rowOf(name string) attrRow {
	for _, row := range attrTable {
		if row.name == name {
			return row
		}
	}
	for _, dialect := range ours {
		if strings.HasPrefix(name, dialect) {
			return attrRow{name, refused, "it is not known, and may change what the program computes; remove it if it does not"}
		}
	}
	return attrRow{name: name}
}

// frontendTable holds the frontend attributes, a dictionary of strings, that XLA
// itself reads; a name that ends in a dot is all that begin with it.
var frontendTable = []attrRow{
	{"xla.sdy.original_func_name", harmless, ""},
	{"xla.sdy.", refused, "a sharding of Shardy in the form in which XLA stores it; export the program with sdy.sharding attributes"},
}

func frontendRow(name string) attrRow {
	for _, row := range frontendTable {
		if row.name == name || strings.HasSuffix(row.name, ".") && strings.HasPrefix(name, row.name) {
			return row
		}
	}
	return attrRow{name: name}
}

func isZero(a ir.Attr) bool {
	switch a := a.(type) {
	case ir.Bool:
		return !bool(a)
	case ir.Int:
		return a.Value == 0
	case ir.Str:
		return a == ""
	case ir.Array:
		return len(a) == 0
	}
	return false
}
