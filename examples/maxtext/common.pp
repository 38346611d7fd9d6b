// What the layers in this folder share: MaxText's test sizes, one pipeline over
// four stages, and the parts of a decoder layer.

types { act = f32, weight = f32 }

axes {
  batch = 16, seq = 8, kv_seq = seq
  embed = 16, heads = 4, kv_heads = 2, head = 8, mlp = 32
  layers = 4
}

// self_attention is causal within a segment; q and k turn with the position,
// and share it over head groups. Biases, query/key norms and the query's scale
// are for the layers that have them.
fn project(h, kernel) {
  return dot(h, kernel, over: embed)
}

fn attend(q, k, v, kernel, segments, window = 0, cap = 0, sinks = none) {
  context = checkpoint(attention(q, k, v, causal: true, window: window, cap: cap, segments: segments, sinks: sinks), "context")
  return checkpoint(dot(context, kernel, over: [heads, head]), "out_proj")
}

fn self_attention(h, query, key, value, out, pos, segments, window = 0, cap = 0, base = 10000) {
  q = rope(checkpoint(project(h, query), "query_proj"), pos, base: base)
  k = rope(checkpoint(project(h, key), "key_proj"), pos, base: base)
  v = checkpoint(project(h, value), "value_proj")
  return attend(q, k, v, out, segments, window: window, cap: cap)
}

// normed_attention normalises every head's query and key before they turn.
fn normed_attention(h, query, key, value, out, query_norm, key_norm, pos, segments, window = 0, base = 10000, eps = 1e-5) {
  q = rmsnorm(checkpoint(project(h, query), "query_proj"), query_norm, over: head, eps: eps)
  k = rmsnorm(checkpoint(project(h, key), "key_proj"), key_norm, over: head, eps: eps)
  v = checkpoint(project(h, value), "value_proj")
  q = rope(q, pos, base: base) / sqrt(size(query, head))
  return attend(q, rope(k, pos, base: base), v, out, segments, window: window)
}

fn silu_mlp(h, wi_0, wi_1, wo) {
  gate = silu(checkpoint(dot(h, wi_0, over: embed), "mlpwi_0"))
  return checkpoint(dot(gate * checkpoint(dot(h, wi_1, over: embed), "mlpwi_1"), wo, over: mlp), "mlpwo")
}

fn gelu_mlp(h, wi_0, wi_1, wo) {
  gate = gelu(checkpoint(dot(h, wi_0, over: embed), "mlpwi_0"))
  return checkpoint(dot(gate * checkpoint(dot(h, wi_1, over: embed), "mlpwi_1"), wo, over: mlp), "mlpwo")
}

mesh { stage = 4, fsdp = 2 }

shard weights     { embed -> fsdp; heads, kv_heads, mlp -> tensor }
shard activations { batch -> data, fsdp; heads, kv_heads, mlp -> tensor }

// Without repeats the weights of a stage are the same in every iteration, so
// they are gathered once.
pipeline { microbatches = 4, gather = once }
