// A small GPT: layer norm, gelu, learned positions, dropout (off unless the
// model is trained), and two of its six layers outside of the pipeline.

types { act = f32, weight = f32 }

axes {
  batch = 16, seq = 32, kv_seq = seq
  embed = 64, heads = 4, head = embed / heads, mlp = 4 * embed, vocab = 256
}

layer block(x: act[batch, seq, embed]) {
  param scale1, scale2: weight[embed]              = ones
  param shift1, shift2: weight[embed]              = zeros
  param wq, wk, wv:     weight[embed, heads, head] = normal(0.02)
  param bq, bk, bv:     weight[heads, head]        = zeros
  param wo:             weight[heads, head, embed] = normal(0.02)
  param bo, bout:       weight[embed]              = zeros
  param wi:             weight[embed, mlp]         = normal(0.02)
  param bi:             weight[mlp]                = zeros
  param wout:           weight[mlp, embed]         = normal(0.02)

  x = checkpoint(x, "decoder_layer_input")
  h = layernorm(x, scale1, shift1, over: embed)
  q = checkpoint(dot(h, wq, over: embed) + bq, "query_proj")
  k = checkpoint(dot(h, wk, over: embed) + bk, "key_proj")
  v = checkpoint(dot(h, wv, over: embed) + bv, "value_proj")
  a = attention(q, k, v, causal: true, scale: 1 / sqrt(head))
  x = x + dropout(dot(a, wo, over: [heads, head]) + bo, 0.1)

  h = layernorm(x, scale2, shift2, over: embed)
  h = gelu(checkpoint(dot(h, wi, over: embed) + bi, "mlpwi"))
  return x + dropout(checkpoint(dot(h, wout, over: mlp) + bout, "mlpwo"), 0.1)
}

model gpt(tokens: i32[batch, seq], targets: i32[batch, seq]) {
  param table:     weight[vocab, embed] = normal(0.02)
  param positions: weight[seq, embed]   = normal(0.02)
  param scale:     weight[embed]        = ones
  param shift:     weight[embed]        = zeros
  x = take(table, tokens, axis: vocab) + positions
  x = pipeline(block, layers: 6)(x)
  logits = dot(layernorm(x, scale, shift, over: embed), table, over: embed)
  return mean(cross_entropy(logits, targets, axis: vocab))
}

mesh { stage = 2, data = 2 }

shard weights     { embed -> fsdp; heads, mlp, vocab -> tensor }
shard activations { batch -> data, fsdp; heads, mlp, vocab -> tensor }

pipeline {
  layers       = 4  // the other two run after the pipeline
  repeats      = 2
  microbatches = 4
}
