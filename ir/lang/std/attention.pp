// Attention and positions.

// rope turns the pairs (i, i + size/2) of the last axis by an angle that grows
// with the position: position / base^(2i / size).
fn rope(x: [head], pos: tensor, base = 10000, head: axis = head) {
  t = accumulator(x)
  n = size(x, head)
  i = cast(iota(head, size: n / 2), t)
  angle = cast(constrain(pos, like: x), t) / pow(base, i * (2 / n))
  c = cos(angle)
  s = sin(angle)
  a = cast(slice(x, head, 0, n / 2), t)
  b = cast(slice(x, head, n / 2, n), t)
  return cast(concat([a * c - b * s, b * c + a * s], axis: head), x)
}

// attention lets each query see keys and returns the mean of their values,
// weighted by softmax(scale * query . key).
//
// q is over seq, heads and head, k and v over seq (or kv_seq), head and, where
// queries share keys, kv_heads in place of heads; all else is matched by name.
// causal hides later keys, window all but the last so many, segments those of
// other segments. cap bounds the logits smoothly. With block, so many queries
// are computed at a time, and their logits again in the backward pass.
fn attention(q: [seq, head], k: [head], v: [head], causal: bool = false, window: number = 0, cap: number = 0, scale: number = 1, segments: tensor = none, block: number = 0,
    seq: axis = seq, kv_seq: axis = kv_seq, heads: axis = heads, kv_heads: axis = kv_heads, head: axis = head) {
  if has(k, seq) {
    k = rename(k, seq -> kv_seq)
    v = rename(v, seq -> kv_seq)
  }
  grouped = has(k, kv_heads) && has(q, heads) && !has(q, kv_heads)
  if grouped {
    h = split(q, heads -> [kv_heads: size(k, kv_heads), head_group: size(q, heads) / size(k, kv_heads)])
    h = order(h, [kv_heads, head_group, seq, head])
  } else if has(q, heads) {
    h = order(q, [heads, seq, head])
  } else {
    h = q
  }
  if scale != 1 {
    h = h * scale
  }
  others = none
  if segments != none {
    others = rename(segments, seq -> kv_seq)
  }
  i = iota(seq, size: size(q, seq))
  if block != 0 && block < size(q, seq) {
    out = blocks(attended, along: seq, size: block)(h, k, v, i, segments, others, causal: causal, window: window, cap: cap, kv_seq: kv_seq, head: head)
  } else {
    out = attended(h, k, v, i, segments, others, causal: causal, window: window, cap: cap, kv_seq: kv_seq, head: head)
  }
  if grouped {
    out = merge(out, [kv_heads, head_group] -> heads)
  }
  if has(q, heads) {
    out = order(out, [seq, heads, head])
  }
  return out
}

// attended is attention for the queries q, which stand at the places i.
fn attended(q, k, v, i, segments: tensor = none, kv_segments: tensor = none, causal: bool = false, window: number = 0, cap: number = 0, kv_seq: axis = kv_seq, head: axis = head) {
  logits = cast(dot(q, k, over: head), accumulator(q))
  if cap != 0 {
    logits = cap * tanh(logits / cap)
  }
  j = iota(kv_seq, size: size(k, kv_seq))
  hidden = -0.7 * 3.4028234663852886e38
  if causal {
    logits = where(i >= j, logits, hidden)
  }
  if window != 0 {
    logits = where(i - window < j, logits, hidden)
  }
  if segments != none {
    logits = where(segments == kv_segments, logits, hidden)
  }
  return dot(cast(softmax(logits, over: kv_seq), v), v, over: kv_seq)
}
