// Mixtures of experts.

// moe sends each token to the k experts with the largest score x . gate and
// returns the sum of what these make of it, weighted by the softmax of the
// scores, and the load-balance loss, which is k where all are used alike.
//
// The softmax is over the chosen experts, or over all of them with among =
// "all". An expert is a gated mlp; with a capacity it has so many places, as
// mixture says, and no more.
fn moe(x: [seq, embed], gate: [embed], wi_0: [experts, embed, mlp], wi_1: [experts, embed, mlp], wo: [experts, mlp, embed], k: number, capacity: number = 0, among: text = "chosen",
    activation: function = swiglu, seq: axis = seq, embed: axis = embed, mlp: axis = mlp, experts: axis = experts, routes: axis = routes) {
  if has(gate, experts) {
    gate = rename(gate, experts -> routes)
  }
  scores = cast(dot(x, gate, over: embed), accumulator(x))
  weights, picked, balance = routed(scores, k: k, among: among, seq: seq, routes: routes)
  return mixture(x, picked, weights, wi_0, wi_1, wo, k: k, capacity: capacity, activation: activation, seq: seq, embed: embed, mlp: mlp, experts: experts, routes: routes), balance
}

// routed chooses the k routes with the largest scores and returns their weights,
// the softmax of the scores among the chosen or among all, which were chosen, and
// the load-balance loss.
fn routed(scores: [seq, routes], k: number, among: text = "chosen", seq: axis = seq, routes: axis = routes) {
  picked = chosen(scores, k: k, over: routes)
  all = softmax(scores, over: routes)
  if among == "all" {
    weights = where(picked > 0, all, 0)
  } else {
    weights = softmax(where(picked > 0, scores, -0.7 * 3.4028234663852886e38), over: routes)
  }
  return weights, picked, load_balance(picked, all, seq: seq, routes: routes)
}

// chosen is 1 at the k largest scores along an axis and 0 at the others, i32. Of
// equal scores the first counts as the larger.
fn chosen(scores: tensor, k: number, over: axis) {
  best, which = top_k(scores, over: over, into: choice, k: k)
  return sum(one_hot(which, over, i32, size: size(scores, over)), over: choice)
}

// limited keeps scores within the best groups of routes: consecutive ones are a
// group, whose own score is the sum of its two largest. The others become less
// than any score.
fn limited(scores: [routes], groups: number, keep: number, routes: axis = routes) {
  g = split(scores, routes -> [route_group: groups, member])
  two, which = top_k(g, over: member, into: pair, k: 2)
  kept = chosen(sum(two, over: pair), k: keep, over: route_group)
  return merge(where(kept > 0, g, -0.7 * 3.4028234663852886e38), [route_group, member] -> routes)
}

// load_balance is the loss that is k where all routes are used alike: for each
// row, how often a route is chosen times its mean probability.
fn load_balance(picked: [seq, routes], probability: [seq, routes], seq: axis = seq, routes: axis = routes) {
  n = size(picked, routes)
  return n * n * mean(mean(cast(picked, probability), over: seq) * mean(probability, over: seq))
}

// mixture is the weighted sum of what the picked experts make of each token:
// activation(x . wi_0, x . wi_1) . wo, with a bias added to each product where
// there is one.
//
// Without a capacity every expert sees every token and those that were not
// picked weigh nothing. With one, an expert has
// max(ceil(seq * k / experts) * capacity, capacity) places for each row of the
// batch, where k of them are picked, which the row's tokens take in order; who
// finds none does without.
//
// Weights are over routes, which are the experts as a token sees them: all of
// them, wherever its row lies. Between experts and routes, tokens change
// devices if experts are cut.
fn mixture(x: [seq, embed], picked: [routes], weights: [routes], wi_0: [experts, embed, mlp], wi_1: [experts, embed, mlp], wo: [experts, mlp, embed], k: number, capacity: number = 0,
    wi_0_bias: [experts, mlp] = none, wi_1_bias: [experts, mlp] = none, wo_bias: [experts, embed] = none, activation: function = swiglu,
    seq: axis = seq, embed: axis = embed, mlp: axis = mlp, experts: axis = experts, routes: axis = routes) {
  weights = cast(weights, x)
  if capacity == 0 {
    h = hidden_of(x, wi_0, wi_1, wi_0_bias, wi_1_bias, activation: activation, embed: embed)
    weights = constrain(rename(weights, routes -> experts))
    y = dot(h * weights, wo, over: [experts, mlp])
    if wo_bias != none {
      y = y + dot(weights, wo_bias, over: experts)
    }
    return y
  }
  places = floor(maximum(ceil(size(x, seq) * k / size(picked, routes)) * capacity, capacity))
  place = cumsum(picked, over: seq) - picked
  dispatch = constrain(one_hot(where(picked > 0, place, -1), slot, x, size: places))
  sent = constrain(rename(dot(dispatch, x, over: seq), routes -> experts))
  h = hidden_of(sent, wi_0, wi_1, wi_0_bias, wi_1_bias, activation: activation, embed: embed)
  made = checkpoint(dot(h, wo, over: mlp), "mlpwo")
  if wo_bias != none {
    made = made + wo_bias
  }
  made = constrain(rename(made, experts -> routes))
  return dot(dispatch * weights, made, over: [routes, slot])
}

// hidden_of is what an mlp has inside: activation(x . wi_0, x . wi_1), with a
// bias added to each product where there is one.
fn hidden_of(x: [embed], wi_0: [embed], wi_1: [embed], wi_0_bias: tensor = none, wi_1_bias: tensor = none, activation: function = swiglu, embed: axis = embed) {
  a = checkpoint(dot(x, wi_0, over: embed), "mlpwi_0")
  b = checkpoint(dot(x, wi_1, over: embed), "mlpwi_1")
  if wi_0_bias != none {
    a = a + wi_0_bias
  }
  if wi_1_bias != none {
    b = b + wi_1_bias
  }
  return activation(a, b)
}
