// Attention and positions.

// rope turns pairs of the last axis by an angle that grows with the position:
// position / base^(2i / size) for pair i.
//
// The pairs are (i, i + size/2), or with interleaved (2i, 2i + 1), which it
// leaves at i and i + size/2. With frequencies, a function of x and its axis such
// as yarn, the angle is the position times what that returns for the pair. A factor
// divides positions.
fn rope(x: [head], pos: tensor, base = 10000, factor: number = 1, frequencies: function = none, interleaved: bool = false, head: axis = head) {
  t = accumulator(x)
  n = size(x, head)
  p = cast(constrain(pos, like: x), t)
  if frequencies == none {
    angle = p / pow(base, cast(iota(head, size: n / 2), t) * (2 / n))
  } else {
    angle = p * frequencies(x, head: head)
  }
  if factor != 1 {
    angle = angle / factor
  }
  c = cos(angle)
  s = sin(angle)
  if interleaved {
    pairs = split(x, head -> [head: n / 2, rotary_pair])
    a = cast(index(pairs, rotary_pair, 0), t)
    b = cast(index(pairs, rotary_pair, 1), t)
  } else {
    a = cast(slice(x, head, 0, n / 2), t)
    b = cast(slice(x, head, n / 2, n), t)
  }
  return cast(concat([a * c - b * s, b * c + a * s], axis: head), x)
}

// yarn is the frequencies of YaRN for the pairs of x, for a context that is
// factor times the original one: pairs that turn more than fast times in the
// original context keep theirs, those that turn less than slow times have it
// divided by factor, and those between something between.
fn yarn(x: [head], base: number = 10000, factor: number = 40, original: number = 4096, fast: number = 32, slow: number = 1, truncate: bool = true, head: axis = head) {
  n = size(x, head)
  low = n * log(original / (2 * pi * fast)) / (2 * log(base))
  high = n * log(original / (2 * pi * slow)) / (2 * log(base))
  if truncate {
    low = floor(low)
    high = ceil(high)
  }
  low = maximum(low, 0)
  high = minimum(high, n - 1)
  if low == high {
    high = high + 0.001
  }
  i = cast(iota(head, size: n / 2), accumulator(x))
  ramp = clip((i - low) / (high - low), 0, 1)
  return (ramp / factor + (1 - ramp)) / pow(base, i * (2 / n))
}

// long_rope is the frequencies of Llama 3.1 for the pairs of x: those whose wave
// is longer than original / low have theirs divided by factor, those whose wave
// is shorter than original / high keep it, and those between something between.
fn long_rope(x: [head], base: number = 500000, factor: number = 8, original: number = 8192, low: number = 1, high: number = 4, head: axis = head) {
  n = size(x, head)
  i = cast(iota(head, size: n / 2), accumulator(x))
  f = 1 / pow(base, i * (2 / n))
  smooth = clip((f * (original / (2 * pi)) - low) / (high - low), 0, 1)
  return f * ((1 - smooth) / factor + smooth)
}

// attention lets each query see keys and returns the mean of their values,
// weighted by softmax(scale * query . key).
//
// q is over seq, heads and head, k and v over seq (or kv_seq), head and, where
// queries share keys, kv_heads in place of heads; all else is matched by name. A
// value may have another axis, value, in place of head.
// causal hides later keys, window all but the last so many, segments those of
// other segments. cap bounds the logits smoothly. sinks, over heads, are one more
// logit each that takes part in the softmax and has no value. With block, so many
// queries are computed at a time, and their logits again in the backward pass.
fn attention(q: [seq, head], k: [head], v: tensor, causal: bool = false, window: number = 0, cap: number = 0, scale: number = 1, segments: tensor = none, sinks: tensor = none, block: number = 0,
    seq: axis = seq, kv_seq: axis = kv_seq, heads: axis = heads, kv_heads: axis = kv_heads, head: axis = head, value: axis = value) {
  if has(k, seq) {
    k = rename(k, seq -> kv_seq)
    v = rename(v, seq -> kv_seq)
  }
  grouped = has(k, kv_heads) && has(q, heads) && !has(q, kv_heads)
  if grouped {
    h = split(q, heads -> [kv_heads: size(k, kv_heads), head_group: size(q, heads) / size(k, kv_heads)])
    h = order(h, [kv_heads, head_group, seq, head])
    if sinks != none {
      sinks = split(sinks, heads -> [kv_heads: size(k, kv_heads), head_group: size(q, heads) / size(k, kv_heads)])
    }
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
    out = blocks(attended, along: seq, size: block)(h, k, v, i, segments, others, sinks, causal: causal, window: window, cap: cap, kv_seq: kv_seq, head: head)
  } else {
    out = attended(h, k, v, i, segments, others, sinks, causal: causal, window: window, cap: cap, kv_seq: kv_seq, head: head)
  }
  if grouped {
    out = merge(out, [kv_heads, head_group] -> heads)
  }
  if has(q, heads) && has(v, head) {
    out = order(out, [seq, heads, head])
  } else if has(q, heads) {
    out = order(out, [seq, heads, value])
  }
  return out
}

// attended is attention for the queries q, which stand at the places i.
fn attended(q, k, v, i, segments: tensor = none, kv_segments: tensor = none, sinks: tensor = none, causal: bool = false, window: number = 0, cap: number = 0, kv_seq: axis = kv_seq, head: axis = head) {
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
  if sinks == none {
    p = softmax(logits, over: kv_seq)
  } else {
    sinks = cast(sinks, logits)
    top = stop_gradient(maximum(max(logits, over: kv_seq), sinks))
    p = exp(logits - top)
    p = p / (sum(p, over: kv_seq) + exp(sinks - top))
  }
  return dot(cast(p, v), v, over: kv_seq)
}
