// Normalisation. All of it is computed in the accumulator's type: f32 for
// 16-bit floats.

// rmsnorm divides by the root of the mean square over axes.
fn rmsnorm(x: tensor, scale: tensor, over, eps = 1e-5) {
  t = accumulator(x)
  h = cast(x, t)
  return cast(h * rsqrt(mean(h * h, over: over) + eps) * cast(scale, t), x)
}

// layernorm makes mean 0 and variance 1 over axes, then scales and shifts.
fn layernorm(x: tensor, scale: tensor, bias: tensor, over, eps = 1e-5) {
  t = accumulator(x)
  h = cast(x, t)
  h = h - mean(h, over: over)
  return cast(h * rsqrt(mean(h * h, over: over) + eps) * cast(scale, t) + cast(bias, t), x)
}
