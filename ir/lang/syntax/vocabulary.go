package syntax

import (
	"slices"
	"strings"

	"ppc/internal/spell"
)

// Near is a hint at the candidate that word was meant to be, or "".
func Near(word string, candidates []string) string {
	if c := spell.Nearest(word, candidates); c != "" && c != word {
		return "did you mean " + c + "?"
	}
	return ""
}

// A Field is what a name of other systems is looked up as.
type Field uint8

const (
	SettingWord   Field = iota // a key of a block
	MeshWord                   // an axis of the mesh
	TypeWord                   // an element type
	OptimizerWord              // an optimizer
	ArgumentWord               // an argument of an optimizer
	RematWord                  // a policy of remat
	BlockWord                  // a block
)

// A foreign is a name that another system has for something, and ours.
type foreign struct {
	system string // that calls it so; "" is that many do
	Names  string // with blanks between them
	Ours   string
}

const (
	maxText   = "MaxText"
	titan     = "torchtitan"
	megatron  = "Megatron-LM"
	deepSpeed = "DeepSpeed"
	praxis    = "praxis"
	nemo      = "NeMo"
	pyTorch   = "PyTorch"
	face      = "Transformers"
)

// Vocabulary is the names that users of other systems know, by what they are
// names of. Where ours is an entry of another block it is written with the block.
var Vocabulary = map[Field][]foreign{
	SettingWord: slices.Concat(parallelisms(), []foreign{
		{maxText, "num_pipeline_microbatches", "microbatches"},
		{maxText, "num_pipeline_repeats", "repeats"},
		{maxText, "num_layers_per_pipeline_stage", "layers_per_stage"},
		{maxText, "pipeline_parallel_layers", "layers"},
		{maxText, "pipeline_delay_activation_forwarding", "delay = 2"},
		{maxText, "pipeline_fsdp_ag_once", "gather = once"},
		{maxText, "pipeline_fsdp_ag_per_repeat", "gather = per_repeat"},
		{maxText, "scan_pipeline_iterations", "scan_iterations"},
		{maxText, "scan_pipeline_repeats", "scan_repeats"},
		{maxText, "scan_layers_per_stage", "scan_layers"},
		{maxText, "set_remat_policy_on_pipeline_iterations", "checkpoint = iteration"},
		{maxText, "set_remat_policy_on_layers_per_stage", "checkpoint = layer"},
		{maxText, "remat_policy", "remat"},
		{maxText, "shard_mode", "mode"},
		{maxText, "gradient_accumulation_steps", "train { gradient_accumulation = … }"},
		{maxText, "gradient_clipping_threshold", "train { clip_by_global_norm = … }"},
		{maxText, "opt_type", "train { optimizer = … }"},
		{maxText, "adam_b1 adam_b2 adam_eps adam_eps_root adam_weight_decay", "an argument of train { optimizer = adamw(…) }"},
		{maxText, "learning_rate_schedule_steps warmup_steps_fraction cosine_learning_rate_final_fraction", "an argument of train { optimizer = adamw(lr: cosine(…)) }"},
		{maxText, "weight_dtype", "types { weight = … }"},
		{maxText, "grad_dtype", "train { dtype = … }"},
		{maxText, "per_device_batch_size global_batch_size_to_train_on", "axes { batch = … }"},
		{maxText, "max_target_length", "axes { seq = … }"},
		{maxText, "emb_dim base_emb_dim", "axes { embed = … }"},
		{maxText, "mlp_dim base_mlp_dim", "axes { mlp = … }"},
		{maxText, "base_num_query_heads num_query_heads", "axes { heads = … }"},
		{maxText, "vocab_size", "axes { vocab = … }"},
		{maxText, "base_num_decoder_layers num_decoder_layers", "pipeline(layer, layers: …)"},
		{maxText, "init_weights_seed data_shuffle_seed", "train { seed = … }"},
		{maxText, "lr_schedule_type learning_rate_final_fraction", "an argument of train { optimizer = adamw(lr: cosine(…)) }"},
		{maxText, "parameter_memory_host_offload optimizer_memory_host_offload", "not a setting: parameters and state stay on the device"},
		{maxText, "head_dim", "axes { head = … }"},
		{maxText, "base_num_kv_heads", "axes { kv_heads = … }"},
		{maxText, "num_experts", "axes { experts = … }"},
		{maxText, "num_experts_per_tok", "axes { routes = … }"},
		{maxText, "num_slices", "mesh { data = dcn(…) }"},
		{maxText, "mesh_axes", "mesh { stage = …, fsdp = … }"},
		{maxText, "dataset_path", "train { data = … }"},
		{maxText, "logical_axis_rules", "shard weights { … } and shard activations { … }"},

		{titan, "pipeline_parallel_degree", "mesh { stage = … }"},
		{titan, "pipeline_parallel_layers_per_stage", "layers_per_stage"},
		{titan, "pipeline_parallel_microbatch_size", "microbatches, which counts microbatches"},
		{titan, "data_parallel_replicate_degree", "mesh { data = … }"},
		{titan, "data_parallel_shard_degree", "mesh { fsdp = … }"},
		{titan, "tensor_parallel_degree", "mesh { tensor = … }"},
		{titan, "context_parallel_degree", "mesh { context = … }"},
		{titan, "expert_parallel_degree", "mesh { expert = … }"},
		{titan, "fsdp_reshard_after_forward reshard_after_forward", "gather"},
		{titan, "mixed_precision_param param_dtype", "gather_dtype"},
		{titan, "mixed_precision_reduce", "reduce_dtype"},
		{titan, "activation_checkpoint activation_checkpointing", "remat"},
		{titan, "pipeline_parallel_split_points module_fqns_per_model_part", "layers_per_stage, of which all stages have as many"},
		{titan, "pipeline_parallel_first_stage_less_layers pipeline_parallel_last_stage_less_layers", "layers, which leaves the last ones outside, or pad_layers"},
		{titan, "selective_ac_option full_activation_checkpoint ac_mode activation_checkpointing_policy", "remat"},
		{titan, "enable_cpu_offload", "offload, for what the backward pass needs"},
		{titan, "min_lr_factor decay_ratio", "an argument of train { optimizer = adamw(lr: cosine(…)) }"},
		{titan, "local_batch_size", "axes { batch = … }"},
		{titan, "max_norm", "train { clip_by_global_norm = … }"},

		{megatron, "pipeline_model_parallel_size", "mesh { stage = … }"},
		{megatron, "virtual_pipeline_model_parallel_size", "repeats"},
		{megatron, "num_layers_per_virtual_pipeline_stage", "layers_per_stage"},
		{megatron, "num_virtual_stages_per_pipeline_rank", "repeats"},
		{megatron, "tensor_model_parallel_size", "mesh { tensor = … }"},
		{megatron, "context_parallel_size", "mesh { context = … }"},
		{megatron, "expert_model_parallel_size", "mesh { expert = … }"},
		{megatron, "micro_batch_size", "microbatches, which counts microbatches"},
		{megatron, "global_batch_size", "axes { batch = … }"},
		{megatron, "recompute_granularity recompute_method", "remat and checkpoint"},
		{megatron, "recompute_modules", "remat = custom { … }"},
		{megatron, "recompute_num_layers", "checkpoint"},
		{megatron, "overlap_p2p_comm", "delay = 2"},
		{megatron, "use_distributed_optimizer", "train { shard_optimizer_over_data = true }"},
		{megatron, "accumulate_allreduce_grads_in_fp32", "train { dtype = f32 }, which is so anyway"},
		{megatron, "grad_reduce_in_bf16", "reduce_dtype = bf16"},
		{megatron, "clip_grad", "train { clip_by_global_norm = … }"},
		{megatron, "adam_beta1 adam_beta2", "an argument of train { optimizer = adamw(…) }"},
		{megatron, "train_iters", "train { steps = … }"},
		{megatron, "lr_warmup_iters lr_decay_iters min_lr", "an argument of train { optimizer = adamw(lr: cosine(…)) }"},
		{megatron, "sequence_parallel", "shard activations { seq -> tensor }"},
		{megatron, "num_layers", "pipeline(layer, layers: …)"},
		{megatron, "decoder_first_pipeline_num_layers decoder_last_pipeline_num_layers num_layers_in_first_pipeline_stage num_layers_in_last_pipeline_stage", "layers, which leaves the last ones outside, or pad_layers"},
		{megatron, "pipeline_model_parallel_layout pipeline_model_parallel_split_rank", "layers_per_stage, of which all stages have as many"},
		{megatron, "account_for_embedding_in_pipeline_split account_for_loss_in_pipeline_split", "not a setting: embedding and loss are outside of the stages and sharded over them"},
		{megatron, "microbatch_group_size_per_vp_stage", "not a setting: all microbatches go through a repeat before the next"},
		{megatron, "overlap_param_gather", "gather = per_repeat, with prefetch = ahead"},
		{megatron, "overlap_p2p_communication", "delay = 2"},
		{megatron, "overlap_grad_reduce tp_comm_overlap", "batch_split = 2, which gives XLA other products beside a collective"},
		{megatron, "data_parallel_sharding_strategy", "shard weights { embed -> fsdp }, or train { shard_optimizer_over_data = true }"},
		{megatron, "cpu_offloading", "offload"},
		{megatron, "pipeline_dtype", "types { act = … }"},
		{megatron, "ffn_hidden_size", "axes { mlp = … }"},
		{megatron, "num_query_groups", "axes { kv_heads = … }"},
		{megatron, "moe_router_topk", "axes { routes = … }"},
		{megatron, "lr_decay_style", "train { optimizer = adamw(lr: cosine(…)) }"},
		{megatron, "params_dtype", "types { weight = … }"},

		{deepSpeed, "train_micro_batch_size_per_gpu", "microbatches, which counts microbatches"},
		{deepSpeed, "train_batch_size", "axes { batch = … }"},
		{deepSpeed, "gradient_clipping", "train { clip_by_global_norm = … }"},
		{deepSpeed, "zero_optimization zero_stage", "shard weights { embed -> fsdp }, or train { shard_optimizer_over_data = true } for stage 1"},
		{deepSpeed, "activation_checkpoint_interval", "checkpoint"},
		{deepSpeed, "partition_method", "layers_per_stage"},
		{deepSpeed, "communication_data_type", "reduce_dtype"},
		{deepSpeed, "pipe_parallel_size", "mesh { stage = … }"},
		{deepSpeed, "partition_activations", "shard activations { seq -> tensor }"},
		{deepSpeed, "cpu_checkpointing", "offload = [decoder_layer_input]"},
		{deepSpeed, "number_checkpoints", "checkpoint"},
		{deepSpeed, "offload_optimizer offload_param", "not a setting: parameters and state stay on the device"},
		{deepSpeed, "overlap_comm", "gather = per_repeat, with prefetch = ahead"},

		{nemo, "activations_checkpoint_method activations_checkpoint_granularity", "remat and checkpoint"},
		{nemo, "activations_checkpoint_num_layers", "checkpoint"},
		{nemo, "gradient_clip_val", "train { clip_by_global_norm = … }"},
		{nemo, "virtual_pipeline_parallel_size", "repeats"},

		{pyTorch, "sharding_strategy", "shard weights { embed -> fsdp }, and gather"},
		{pyTorch, "backward_prefetch forward_prefetch limit_all_gathers", "prefetch"},
		{pyTorch, "cpu_offload", "offload, for what the backward pass needs"},
		{pyTorch, "mixed_precision", "gather_dtype and reduce_dtype"},
		{pyTorch, "clip_grad_norm", "train { clip_by_global_norm = … }"},

		{face, "num_hidden_layers", "pipeline(layer, layers: …)"},
		{face, "num_attention_heads", "axes { heads = … }"},
		{face, "num_key_value_heads", "axes { kv_heads = … }"},
		{face, "intermediate_size", "axes { mlp = … }"},
		{face, "max_position_embeddings", "axes { seq = … }"},
		{face, "per_device_train_batch_size", "axes { batch = … }"},
		{face, "num_train_epochs", "train { steps = … }"},

		{praxis, "circular_repeat", "repeats"},
		{praxis, "checkpoint_policy", "remat"},
		{"", "num_microbatches n_microbatches num_micro_batches micro_batches chunks microbatch_count", "microbatches"},
		{"", "microbatch_size", "microbatches, which counts microbatches"},
		{"", "schedule pipeline_schedule pipeline_parallel_schedule", "not a setting: all microbatches go forward through all repeats, then backward, as in GPipe"},
		{"", "split_points", "layers_per_stage, of which all stages have as many"},
		{"", "forwarding_delay delay_activation_forwarding", "delay"},
		{"", "hsdp", "mesh { data = …, fsdp = … }"},
		{"", "bf16 fp16 use_bf16 half_precision", "types { act = … }"},
		{"", "loss_scale loss_scaling", "not a setting: losses are not scaled"},
		{"", "epochs num_epochs", "train { steps = … }"},
		{"", "stages num_stages pp_size pipeline_stages num_pipeline_stages", "mesh { stage = … }"},
		{"", "num_repeats rounds virtual_stages interleave interleaved circular vpp_size vpp num_model_chunks num_chunks", "repeats"},
		{"", "learning_rate lr lr_schedule learning_rate_schedule", "train { optimizer = adamw(lr: …) }"},
		{"", "weight_decay momentum beta1 beta2 betas epsilon b1 b2", "an argument of train { optimizer = adamw(…) }"},
		{"", "warmup_steps", "train { optimizer = adamw(lr: cosine(…, warmup: …)) }"},
		{"", "accumulation_steps grad_accumulation accumulate_grad_batches", "train { gradient_accumulation = … }"},
		{"", "max_grad_norm grad_clip gradient_clip_norm clip_norm", "train { clip_by_global_norm = … }"},
		{"", "num_steps num_train_steps max_steps", "train { steps = … }"},
		{"", "batch_size", "axes { batch = … }"},
		{"", "seq_len seq_length sequence_length max_seq_len max_sequence_length", "axes { seq = … }"},
		{"", "hidden_size d_model hidden_dim", "axes { embed = … }"},
		{"", "rematerialization recompute gradient_checkpointing checkpointing", "remat"},
		{"", "zero1 zero_1", "train { shard_optimizer_over_data = true }"},
		{"", "flops chips memory_bandwidth ici_bandwidth dcn_bandwidth ici_latency dcn_latency", "not a setting: nothing depends on it. memory is what the hardware block says"},
	}),
	MeshWord: {
		{"", "pp pipe pipeline stages pipeline_parallel pipeline_parallelism pipeline_parallel_size num_stages", "stage"},
		{titan, "dp_replicate", "data"},
		{titan, "dp_shard dp_shard_cp", "fsdp"},
		{"", "dp data_parallel data_parallelism replica replicas replicate ddp", "data"},
		{"", "zero zero3 shard fully_sharded fsdp_parallelism", "fsdp"},
		{"", "tp model mp mdl tensor_parallel tensor_parallelism model_parallel", "tensor"},
		{"", "cp sp seq sequence context_parallel context_parallelism sequence_parallel", "context"},
		{"", "ep experts expert_parallel expert_parallelism", "expert"},
	},
	TypeWord: {
		{"", "bfloat16 bfloat bf", "bf16"},
		{"", "float16 half fp16", "f16"},
		{"", "float32 float fp32 single tf32", "f32"},
		{"", "float64 double fp64", "f64"},
		{"", "bool pred boolean", "i1"},
		{"", "int8 s8 char", "i8"}, {"", "int16 s16 short", "i16"}, {"", "int32 s32 int", "i32"}, {"", "int64 s64 long", "i64"},
		{"", "uint8 u8 byte", "ui8"}, {"", "uint16 u16", "ui16"}, {"", "uint32 u32", "ui32"}, {"", "uint64 u64", "ui64"},
	},
	OptimizerWord: {
		{maxText, "adam_pax", "adam"},
		{"", "nadam", "adam(…, nesterov: true)"},
		{"", "nadamw", "adamw(…, nesterov: true)"},
		{"", "momentum nesterov", "sgd(…, momentum: 0.9)"},
		{"", "fused_adam fusedadam cpuadam cpu_adam distributed_adam", "adamw"},
	},
	ArgumentWord: {
		{"", "learning_rate rate", "lr"},
		{"", "beta1 beta_1 adam_beta1 adam_b1", "b1"},
		{"", "beta2 beta_2 adam_beta2 adam_b2", "b2"},
		{"", "betas", "b1 and b2"},
		{"", "epsilon adam_eps", "eps"},
		{"", "wd adam_weight_decay weight_decay", "weight_decay of adamw"},
		{"", "warmup_steps lr_warmup_iters warmup_iters", "warmup"},
		{"", "decay_steps lr_decay_iters", "decay"},
		{"", "end_value min_lr final", "end"},
		{"", "peak_value init_value max_lr", "peak"},
	},
	RematWord: {
		{"", "nothing_saveable save_nothing true all", "full"},
		{"", "everything_saveable save_everything false off", "none"},
		{"", "dots_saveable checkpoint_dots dots_with_no_batch_dims_saveable save_dot", "minimal"},
		{maxText, "minimal_flash", "minimal_with_context"},
		{megatron, "selective", "custom { … }, or minimal"},
		{megatron, "uniform block", "full, with checkpoint = layer"},
	},
	BlockWord: {
		{titan, "parallelism", "mesh"},
		{"", "training optimizer", "train"},
		{"", "sharding rules logical_axis_rules partition", "shard"},
		{"", "parallel devices topology", "mesh"},
		{"", "dtypes dtype precision", "types"},
		{"", "def func function", "fn"},
		{"", "module block class", "layer"},
	},
}

// parallelisms are MaxText's sizes of mesh axes.
func parallelisms() []foreign {
	var out []foreign
	for _, axis := range []struct{ theirs, ours string }{{"pipeline", "stage"}, {"data", "data"}, {"fsdp", "fsdp"}, {"fsdp_transpose", "fsdp_transpose"}, {"tensor", "tensor"},
		{"tensor_sequence", "tensor_sequence"}, {"tensor_transpose", "tensor"}, {"sequence", "context"}, {"context", "context"}, {"context_autoregressive", "context_autoregressive"},
		{"expert", "expert"}, {"autoregressive", "autoregressive"}, {"diloco", "diloco"}} {
		out = append(out, foreign{maxText, "ici_" + axis.theirs + "_parallelism", "mesh { " + axis.ours + " = … }"},
			foreign{maxText, "dcn_" + axis.theirs + "_parallelism", "mesh { " + axis.ours + " = dcn(…) }"})
	}
	return out
}

// Theirs is the row of a name of other systems, in whatever case it is written;
// nil where there is none.
func Theirs(f Field, word string) *foreign {
	word = strings.ReplaceAll(strings.ToLower(word), "-", "_")
	for i, row := range Vocabulary[f] {
		if slices.Contains(strings.Fields(row.Names), word) {
			return &Vocabulary[f][i]
		}
	}
	return axisOf(f, word)
}

// axisOf is the row of a name that is an axis of the mesh with what systems put around it, as
// tensor_parallel_size and dp_degree, or of such an axis as a setting.
func axisOf(f Field, word string) *foreign {
	axis := strings.TrimPrefix(strings.TrimPrefix(word, "use_"), "enable_")
	for _, suffix := range []string{"_size", "_degree", "_model", "_parallelism", "_parallel"} {
		axis = strings.TrimSuffix(axis, suffix)
	}
	if f != SettingWord && (f != MeshWord || axis == word) {
		return nil
	}
	for _, row := range Vocabulary[MeshWord] {
		switch {
		case axis != row.Ours && !slices.Contains(strings.Fields(row.Names), axis):
		case f == SettingWord:
			return &foreign{"", word, "mesh { " + row.Ours + " = … }"}
		default:
			return &foreign{"", word, row.Ours}
		}
	}
	return nil
}

// Suggest is the hint for a name that is not known: what it is called here, if other
// systems have it, or the candidate that is near.
func Suggest(f Field, word string, candidates []string) string {
	for _, c := range candidates {
		if c != word && strings.EqualFold(c, word) {
			return "did you mean " + c + "?"
		}
	}
	row := Theirs(f, word)
	switch {
	case row != nil && f == ArgumentWord && !slices.Contains(candidates, strings.Fields(row.Ours)[0]) && !strings.Contains(row.Ours, " "):
		return Near(word, candidates) // of another function
	case row == nil || slices.Contains(candidates, word):
		return Near(word, candidates)
	case strings.HasPrefix(row.Ours, "not a setting"):
		return word + " is " + row.Ours
	case row.system != "":
		return row.system + "'s " + word + " is " + row.Ours + " here"
	case f == SettingWord || strings.Contains(row.Ours, " "):
		return word + " is " + row.Ours + " here"
	}
	return "did you mean " + row.Ours + "?"
}
