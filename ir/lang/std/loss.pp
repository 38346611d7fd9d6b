// Losses.

// cross_entropy is -log of the probability that softmax(logits) gives to the
// target, for each element of the other axes.
fn cross_entropy(logits: tensor, targets: tensor, axis) {
  t = accumulator(logits)
  x = cast(logits, t)
  hit = constrain(targets, like: logits) == iota(axis, size: size(x, axis))
  return logsumexp(x, over: axis) - sum(where(hit, x, 0), over: axis)
}
