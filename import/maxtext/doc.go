// Package maxtext makes a .pp program of a configuration of MaxText.
//
// A configuration is what MaxText reads: a YAML file, the files that its
// base_config names, the model that model_name names, and key=value. Every key
// has a row in keys.tsv that answers it: it is mapped, it has no effect on the
// program, or it is refused unless it has its default. Nothing of a configuration
// is passed over: a key without a row is an error.
//
// What MaxText computes otherwise than its configuration says, under a pipeline
// above all, is warned of.
package maxtext
