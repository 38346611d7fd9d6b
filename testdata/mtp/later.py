#!/usr/bin/env python3
"""Writes later.npz: the loss and the gradients of a small Llama with two heads for later tokens, in float64.

  python later.py later.npz

It is a program in JAX that was written from the text of MaxText (commit e591f30c): layers/multi_token_prediction.py,
and of trainers/pre_train/train.py what becomes of its losses. It has none of the code of ppc. Arrays:

inputs, targets, …   a batch: one document; two in a row; one with padding; one that ends in a token of its own
w/PATH, g/PATH       weights by MaxText's paths, with layers stacked in front, and the gradients of loss
loss, mtp_loss       the loss of a step of training, and the part of it that the heads make
config               the keys of the configuration, as JSON
"""
import json
import sys

import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import numpy as np

config = dict(decoder_block="llama2", base_emb_dim=8, base_num_query_heads=2, base_num_kv_heads=1, head_dim=4, base_mlp_dim=16,
              base_num_decoder_layers=2, vocab_size=16, max_target_length=8, mtp_num_layers=2, mtp_loss_scaling_factor=0.25,
              normalization_layer_epsilon=1e-5, dtype="float32", weight_dtype="float32", steps=1)
E, N, M, D, F, L, V, T, B = 8, 2, 1, 4, 16, 2, 16, 8, 4
EPS = 1e-8  # maxtext.utils.globals


def rms(x, scale):
    return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale


def rope(x, pos):
    half = D // 2
    angle = pos[:, :, None, None] / 10000 ** (2 * jnp.arange(half) / D)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), b * jnp.cos(angle) + a * jnp.sin(angle)], -1)


def layer(w, x, pos, seg):
    h = rms(x, w["pre_self_attention_layer_norm/scale"])
    q, k, v = (jnp.einsum("bse,end->bsnd", h, w[f"self_attention/{n}/kernel"]) for n in ("query", "key", "value"))
    q, k = rope(q, pos), jnp.repeat(rope(k, pos), N // M, 2)
    s = jnp.einsum("bqnd,bknd->bnqk", q, k)
    at = jnp.arange(T)
    seen = (at[:, None] >= at[None, :]) & (seg[:, :, None] == seg[:, None, :])
    p = jax.nn.softmax(jnp.where(seen[:, None], s, -0.7 * 3.4028234663852886e38), -1)
    c = jnp.einsum("bnqk,bknd->bqnd", p, jnp.repeat(v, N // M, 2))
    a = x + jnp.einsum("bsnd,nde->bse", c, w["self_attention/out/kernel"])
    h = rms(a, w["post_self_attention_layer_norm/scale"])
    return a + (jax.nn.silu(h @ w["mlp/wi_0/kernel"]) * (h @ w["mlp/wi_1/kernel"])) @ w["mlp/wo/kernel"]


def below(w, prefix):
    return {k[len(prefix):]: v for k, v in w.items() if k.startswith(prefix)}


def roll_and_mask(x):
    return jnp.roll(x, -1, axis=1).at[:, -1].set(jnp.zeros((), x.dtype))


def roll_and_mask_by_segment(x, seg):
    boundary = (seg != roll_and_mask(seg)) | (seg == 0)
    return jnp.where(boundary, 0, roll_and_mask(x))


def logits_of(w, x):
    return rms(x, w["decoder/decoder_norm/scale"]) @ w["decoder/logits_dense/kernel"]


def cross_entropy(logits, labels):
    return jax.scipy.special.logsumexp(logits, -1) - jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]


def losses(w, d):
    pos, seg = d["inputs_position"], d["inputs_segmentation"]
    x = w["token_embedder/embedding"][d["inputs"]]
    for i in range(L):
        x = layer({k: v[i] for k, v in below(w, "decoder/layers/").items()}, x, pos, seg)
    real = d["targets_segmentation"] != 0
    loss = jnp.sum(cross_entropy(logits_of(w, x), d["targets"]) * real) / (jnp.sum(real) + EPS)
    hidden, ids, targets, mask, segments = x, d["inputs"], d["targets"], real, seg
    sums, counts = [], []
    for k in (1, 2):
        at = f"mtp_block/mtp_layer_{k}/mtp_{k}_"
        ids, targets, mask = (roll_and_mask_by_segment(v, segments) for v in (ids, targets, mask))
        segments = roll_and_mask(segments)
        e = rms(w["token_embedder/embedding"][ids], w[at + "embedding_norm/scale"])
        h = rms(hidden, w[at + "hidden_state_norm/scale"])
        hidden = layer(below(w, at + "transformer_layer/"), jnp.concatenate([e, h], -1) @ w[at + "projection/kernel"], pos, seg)
        sums.append(jnp.sum(cross_entropy(logits_of(w, hidden), targets) * mask))
        counts.append(jnp.sum(mask))
    mtp = config["mtp_loss_scaling_factor"] * sum(sums) / (sum(counts) + EPS)
    return loss + mtp, mtp


def main():
    r = np.random.default_rng(14)
    shapes = {"pre_self_attention_layer_norm/scale": (E,), "self_attention/query/kernel": (E, N, D), "self_attention/key/kernel": (E, M, D),
              "self_attention/value/kernel": (E, M, D), "self_attention/out/kernel": (N, D, E), "post_self_attention_layer_norm/scale": (E,),
              "mlp/wi_0/kernel": (E, F), "mlp/wi_1/kernel": (E, F), "mlp/wo/kernel": (F, E)}
    draw = lambda path, shape: np.float64(np.float32(r.normal(size=shape) * 0.4 + path.endswith("scale")))
    w = {"token_embedder/embedding": draw("", (V, E)), "decoder/decoder_norm/scale": draw("scale", (E,)), "decoder/logits_dense/kernel": draw("", (E, V))}
    w |= {"decoder/layers/" + p: draw(p, (L, *s)) for p, s in shapes.items()}
    for k in (1, 2):
        at = f"mtp_block/mtp_layer_{k}/mtp_{k}_"
        w |= {at + p: draw(p, s) for p, s in {"embedding_norm/scale": (E,), "hidden_state_norm/scale": (E,), "projection/kernel": (2 * E, E)}.items()}
        w |= {at + "transformer_layer/" + p: draw(p, s) for p, s in shapes.items()}
    seg = np.int32([[1] * 8, [1] * 5 + [2] * 3, [1] * 6 + [0] * 2, [1] * 3 + [2] * 4 + [3]])
    pos = np.int32([[i - next(j for j in range(T) if row[j] == row[i]) for i in range(T)] for row in seg])
    d = {"inputs": np.int32(r.integers(1, V, (B, T))) * (seg != 0), "targets": np.int32(r.integers(1, V, (B, T))) * (seg != 0),
         "inputs_position": pos, "inputs_segmentation": seg, "targets_segmentation": seg}
    d = {k: np.int32(v) for k, v in d.items()}
    (loss, mtp), g = jax.value_and_grad(losses, has_aux=True)({k: jnp.array(v) for k, v in w.items()}, d)
    np.savez(sys.argv[1], config=np.frombuffer(json.dumps(config).encode(), np.uint8), loss=loss, mtp_loss=mtp, **d,
             **{"w/" + k: v for k, v in w.items()}, **{"g/" + k: np.asarray(v) for k, v in g.items()})
    print(loss, mtp)


if __name__ == "__main__":
    main()
