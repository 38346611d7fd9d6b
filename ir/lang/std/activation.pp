// Activation functions.

fn relu(x) {
  return maximum(x, 0)
}

fn silu(x) {
  return x * sigmoid(x)
}

// gelu is the tanh form.
fn gelu(x) {
  return 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))
}

// swiglu is the gated activation: silu of the gate times the value.
fn swiglu(gate, value) {
  return silu(gate) * value
}
