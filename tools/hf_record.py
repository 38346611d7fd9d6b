#!/usr/bin/env python3
"""Records what Hugging Face's transformers computes for small models with random weights.

  hf_record.py DIR

DIR   Where NAME.safetensors, the weights as save_pretrained writes them, and NAME.logits.npz go: tokens, i32[2, 8], and logits,
      f64[2, 8, vocab].
Needs: pip install torch transformers numpy.
"""
import os
import shutil
import sys
import tempfile

import numpy
import torch
import transformers

SMALL = dict(vocab_size=32, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
             attn_implementation="eager", experts_implementation="eager", tie_word_embeddings=False)
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
LATENT = dict(q_lora_rank=12, kv_lora_rank=10, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=6, num_key_value_heads=4, first_k_dense_replace=1,
              num_hidden_layers=3, moe_intermediate_size=12, n_routed_experts=8, num_experts_per_tok=2, n_shared_experts=1)
MODELS = {
    "llama": ("Llama", dict(rope_parameters=ROPE)),
    "llama31": ("Llama", dict(rope_parameters={"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})),
    "qwen2": ("Qwen2", dict(rope_parameters=ROPE)),
    "qwen3": ("Qwen3", dict(head_dim=8, rope_parameters=ROPE)),
    "qwen3_moe": ("Qwen3Moe", dict(head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12, norm_topk_prob=True, rope_parameters=ROPE)),
    "mixtral": ("Mixtral", dict(num_local_experts=4, num_experts_per_tok=2, rope_parameters=ROPE)),
    "gemma": ("Gemma", dict(head_dim=8, tie_word_embeddings=True, hidden_activation="gelu_pytorch_tanh", rope_parameters=ROPE)),
    "gemma2": ("Gemma2", dict(head_dim=8, query_pre_attn_scalar=8, sliding_window=3, num_hidden_layers=4, tie_word_embeddings=True, rope_parameters=ROPE)),
    "gemma3": ("Gemma3ForCausalLM", dict(head_dim=8, query_pre_attn_scalar=8, sliding_window=3, num_hidden_layers=6, tie_word_embeddings=True, final_logit_softcapping=None,
                                         attn_logit_softcapping=None,
                                         rope_parameters={"sliding_attention": ROPE, "full_attention": {"rope_type": "default", "rope_theta": 1000000.0}})),
    "deepseek_v3": ("DeepseekV3", dict(LATENT, n_group=2, topk_group=1, routed_scaling_factor=2.5, norm_topk_prob=True, rope_interleave=True, rope_parameters=ROPE)),
    "deepseek_yarn": ("DeepseekV3", dict(LATENT, n_group=2, topk_group=1, routed_scaling_factor=2.5, norm_topk_prob=True, rope_interleave=True, max_position_embeddings=640,
                                         rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0,
                                                          "mscale_all_dim": 1.0, "original_max_position_embeddings": 16})),
    "deepseek_v2": ("DeepseekV2", dict(LATENT, q_lora_rank=None, n_group=1, topk_group=1, topk_method="greedy", routed_scaling_factor=1.0, norm_topk_prob=False, rope_parameters=ROPE)),
}


def build(kind, options):
    options = dict(SMALL, **options)
    if kind == "Gemma3ForCausalLM":
        config, cls = transformers.Gemma3TextConfig(**options), transformers.Gemma3ForCausalLM
    else:
        config, cls = getattr(transformers, kind + "Config")(**options), getattr(transformers, kind + "ForCausalLM")
    torch.manual_seed(1)
    model = cls(config)
    with torch.no_grad():
        for p in list(model.parameters()) + [b for n, b in model.named_buffers() if n.endswith("e_score_correction_bias")]:
            p.copy_(torch.randn(p.shape) * 0.3)
    return model.eval()


def main(out):
    os.makedirs(out, exist_ok=True)
    tokens = numpy.array([[3, 7, 1, 31, 0, 12, 12, 5], [9, 9, 2, 30, 17, 4, 8, 21]], dtype=numpy.int32)
    for name, (kind, options) in MODELS.items():
        model = build(kind, options)
        with tempfile.TemporaryDirectory() as d:
            model.save_pretrained(d)
            shutil.copy(os.path.join(d, "model.safetensors"), os.path.join(out, name + ".safetensors"))
        with torch.no_grad():
            logits = model.double()(torch.tensor(tokens, dtype=torch.long)).logits
        numpy.savez(os.path.join(out, name + ".logits.npz"), tokens=tokens, logits=logits.numpy())
        print(name, tuple(logits.shape), os.path.getsize(os.path.join(out, name + ".safetensors")))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
