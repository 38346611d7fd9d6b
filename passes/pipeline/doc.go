// Package pipeline turns pipelines and stacks of layers into loops: the
// iterations of a schedule with the stages as a sharded dimension, the layer
// mapped over stages, the rotation of activations, where weights are gathered,
// and which regions are rematerialised.
package pipeline
