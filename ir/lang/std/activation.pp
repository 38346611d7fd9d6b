// Activation functions.

// relu is x where it is positive, else 0.
fn relu(x) {
  return maximum(x, 0)
}

// silu is x * sigmoid(x).
fn silu(x) {
  return x * sigmoid(x)
}

// gelu is x * P(normal < x), in its approximation by tanh.
fn gelu(x) {
  return 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))
}

// swiglu is the gated activation: silu of the gate times the value.
fn swiglu(gate, value) {
  return silu(gate) * value
}
