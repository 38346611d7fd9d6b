// Mixtures of experts.

// moe sends each token to the k experts with the largest score x . gate and
// returns the sum of what these make of it, weighted by the softmax of the
// scores, and the load-balance loss, which is k where all are used alike.
//
// The softmax is over the chosen experts, or over all of them with among =
// "all". An expert is a gated mlp; with a capacity it has so many places, as
// mixture says, and no more, and with groups it sees the tokens that are sent to
// it alone, all of them.
fn moe(x: [seq, embed], gate: [embed], wi_0: [experts, embed, mlp], wi_1: [experts, embed, mlp], wo: [experts, mlp, embed], k: number, capacity: number = 0, groups: number = 0, room: number = 0, among: text = "chosen",
    activation: function = swiglu, seq: axis = seq, embed: axis = embed, mlp: axis = mlp, experts: axis = experts, routes: axis = routes) {
  if has(gate, experts) {
    gate = rename(gate, experts -> routes)
  }
  scores = cast(dot(x, gate, over: embed), accumulator(x))
  weights, picked, balance = routed(scores, k: k, among: among, seq: seq, routes: routes)
  return mixture(x, picked, weights, wi_0, wi_1, wo, k: k, capacity: capacity, groups: groups, room: room, activation: activation, seq: seq, embed: embed, mlp: mlp, experts: experts, routes: routes), balance
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
// picked weigh nothing. With groups, tokens are sorted by expert, and each expert
// sees those alone that picked it, as sorted_mixture says. With a capacity, an expert has
// max(ceil(seq * k / experts) * capacity, capacity) places for each row of the
// batch, where k of them are picked, which the row's tokens take in order; who
// finds none does without.
//
// Weights are over routes, which are the experts as a token sees them: all of
// them, wherever its row is. Between experts and routes, tokens change
// devices if experts are sharded.
fn mixture(x: [seq, embed], picked: [routes], weights: [routes], wi_0: [experts, embed, mlp], wi_1: [experts, embed, mlp], wo: [experts, mlp, embed], k: number, capacity: number = 0, groups: number = 0, room: number = 0,
    wi_0_bias: [experts, mlp] = none, wi_1_bias: [experts, mlp] = none, wo_bias: [experts, embed] = none, activation: function = swiglu,
    seq: axis = seq, embed: axis = embed, mlp: axis = mlp, experts: axis = experts, routes: axis = routes) {
  weights = cast(weights, x)
  if groups > 0 {
    return sorted_mixture(x, picked, weights, wi_0, wi_1, wo, k: k, groups: groups, room: room, wi_0_bias: wi_0_bias, wi_1_bias: wi_1_bias, wo_bias: wo_bias, activation: activation, seq: seq, embed: embed, mlp: mlp, experts: experts, routes: routes)
  }
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

// sorted_mixture is mixture where each expert sees the tokens alone that picked it, however
// many these are: the choices of a row, k for each token, are sorted by expert, and
// the experts' products are by groups.
//
// Consecutive experts are a group, of which a device has one or more: a rule shards
// the axis expert_group as another one does the experts. Between route_group and
// expert_group tokens change devices. A row has room for that many choices of each
// group: with room = 1 for as many as there would be if all were used alike, with
// room = groups, and without any, for all that there can be. A row that has more for a group than
// there is room for is not a number, nor is what depends on it, so that no token is
// dropped unseen and training ends; overflow counts the choices.
fn sorted_mixture(x: [seq, embed], picked: [routes], weights: [routes], wi_0: [experts, embed, mlp], wi_1: [experts, embed, mlp], wo: [experts, mlp, embed], k: number, groups: number = 1, room: number = 0,
    wi_0_bias: [experts, mlp] = none, wi_1_bias: [experts, mlp] = none, wo_bias: [experts, embed] = none, activation: function = swiglu,
    seq: axis = seq, embed: axis = embed, mlp: axis = mlp, experts: axis = experts, routes: axis = routes) {
  each = size(picked, routes) / groups
  places = group_places(size(x, seq), k: k, each: each, groups: groups, room: room)
  some, which = top_k(picked, over: routes, into: choice, k: k)
  expert = merge(which, [seq, choice] -> sent)
  same, order = top_k(-expert, over: sent, into: sent, k: size(x, seq) * k)
  same, back = top_k(-order, over: sent, into: sent, k: size(x, seq) * k)
  sizes = split(sum(picked, over: seq), routes -> [route_group: groups, member])
  used = sum(sizes, over: member)
  start = cumsum(used, over: route_group) - used

  // From routes to experts: place p of a group has the choice start + p.
  choice_at = minimum(start + iota(place, size: places), size(x, seq) * k - 1)
  token = take(order, choice_at, axis: sent) / k
  sent_x = constrain(rename(constrain(take(x, token, axis: seq)), route_group -> expert_group))
  sizes = constrain(rename(constrain(sizes), route_group -> expert_group))
  h0 = checkpoint(ragged_dot(sent_x, expert_groups(wi_0, groups, experts), sizes, over: embed, along: place), "mlpwi_0")
  h1 = checkpoint(ragged_dot(sent_x, expert_groups(wi_1, groups, experts), sizes, over: embed, along: place), "mlpwi_1")
  ends = cumsum(sizes, over: member)
  of = minimum(sum(cast(iota(place, size: places) >= ends, i32), over: member), each - 1)
  if wi_0_bias != none {
    h0 = h0 + take(expert_groups(wi_0_bias, groups, experts), of, axis: member)
  }
  if wi_1_bias != none {
    h1 = h1 + take(expert_groups(wi_1_bias, groups, experts), of, axis: member)
  }
  made = checkpoint(ragged_dot(activation(h0, h1), expert_groups(wo, groups, experts), sizes, over: mlp, along: place), "mlpwo")
  if wo_bias != none {
    made = made + take(expert_groups(wo_bias, groups, experts), of, axis: member)
  }
  made = constrain(rename(made, expert_group -> route_group))

  // Back: choice c of the row is at the place back[c] - start of its group.
  group = expert / each
  at = group * places + minimum(back - take(start, group, axis: route_group), places - 1)
  y = split(take(merge(made, [route_group, place] -> places), at, axis: places), sent -> [seq, choice: k])
  y = dot(y, take(weights, which, axis: routes), over: choice)
  if places < group_places(size(x, seq), k: k, each: each, groups: groups) {
    fits = cast(overflow(picked, k: k, groups: groups, room: room, seq: seq, routes: routes) == 0, y)
    y = y * fits / fits
  }
  return y
}

// overflow is how many choices of each row find no room in their group, i32.
fn overflow(picked: [seq, routes], k: number, groups: number = 1, room: number = 0, seq: axis = seq, routes: axis = routes) {
  used = sum(split(sum(picked, over: seq), routes -> [route_group: groups, member]), over: member)
  return sum(maximum(used - group_places(size(picked, seq), k: k, each: size(picked, routes) / groups, groups: groups, room: room), 0), over: route_group)
}

// group_places is how many choices of a row there is room for in a group of each experts: of its tokens, each
// of which chooses k experts, with room = 1 as many as there would be if all were
// used alike, and never more than there can be.
fn group_places(tokens: number, k: number, each: number, groups: number, room: number = 0) {
  most = tokens * minimum(k, each)
  if room == 0 {
    return most
  }
  return minimum(ceil(tokens * k / groups * room), most)
}

// expert_groups is x with the experts of one group along an axis of their own.
fn expert_groups(x: tensor, groups: number, experts: axis) {
  return split(x, experts -> [expert_group: groups, member])
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
