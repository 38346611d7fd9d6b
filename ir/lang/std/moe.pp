// Mixtures of experts.

// moe sends each token to the k experts with the largest score x . gate and
// returns the sum of what these make of it, weighted by the softmax of the
// scores, and the load-balance loss, which is k where all are used alike.
//
// wi_0, wi_1 and wo are over experts, embed and mlp: an expert is a gated mlp.
// The softmax is over the chosen experts, or over all of them with among =
// "all". Without a capacity every expert sees every token and those that were
// not chosen weigh nothing. With one, an expert has
// max(ceil(seq * k / experts) * capacity, capacity) places for each row of the
// batch, which the row's tokens take in order; who finds none does without.
//
// Scores are over routes, which are the experts as a token sees them: all of
// them, wherever its row lies. Between experts and routes, tokens change
// devices if experts are cut.
fn moe(x: [seq, embed], gate: [embed], wi_0: [experts, embed, mlp], wi_1: [experts, embed, mlp], wo: [experts, mlp, embed], k: number, capacity: number = 0, among: text = "chosen",
    seq: axis = seq, embed: axis = embed, mlp: axis = mlp, experts: axis = experts, routes: axis = routes) {
  if has(gate, experts) {
    gate = rename(gate, experts -> routes)
  }
  t = accumulator(x)
  n = size(gate, routes)
  scores = cast(dot(x, gate, over: embed), t)
  best, which = top_k(scores, over: routes, into: choice, k: k)
  chosen = sum(one_hot(which, routes, i32, size: n), over: choice)
  all = softmax(scores, over: routes)
  if among == "all" {
    weights = where(chosen > 0, all, 0)
  } else {
    weights = softmax(where(chosen > 0, scores, -0.7 * 3.4028234663852886e38), over: routes)
  }
  balance = n * n * mean(mean(cast(chosen, t), over: seq) * mean(all, over: seq))
  weights = cast(weights, x)

  if capacity == 0 {
    h = swiglu(checkpoint(dot(x, wi_0, over: embed), "mlpwi_0"), checkpoint(dot(x, wi_1, over: embed), "mlpwi_1"))
    return dot(h * constrain(rename(weights, routes -> experts)), wo, over: [experts, mlp]), balance
  }
  places = floor(maximum(ceil(size(x, seq) * k / n) * capacity, capacity))
  place = cumsum(chosen, over: seq) - chosen
  dispatch = constrain(one_hot(where(chosen > 0, place, -1), slot, x, size: places))
  sent = constrain(rename(dot(dispatch, x, over: seq), routes -> experts))
  h = swiglu(checkpoint(dot(sent, wi_0, over: embed), "mlpwi_0"), checkpoint(dot(sent, wi_1, over: embed), "mlpwi_1"))
  made = constrain(rename(checkpoint(dot(h, wo, over: mlp), "mlpwo"), experts -> routes))
  return dot(dispatch * weights, made, over: [routes, slot]), balance
}
