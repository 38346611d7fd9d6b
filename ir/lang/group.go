package lang

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/lang/value"
)

// layersFor is the function that a pipeline of the layers of w applies again and
// again: of one layer, or of all of a pattern one after the other.
func (e *elab) layersFor(l *listLayers, w window, batch int) *layerFunc {
	if w.period == 1 {
		k := l.kinds[l.seq[w.lo]]
		return e.layerFor(k.decl, batch, nil, k.known)
	}
	pattern := make([]*stackCall, w.period)
	key, names := fmt.Sprint("pattern ", batch), []string(nil)
	for i := range pattern {
		s := l.kinds[l.seq[w.lo+i]]
		pattern[i] = s
		key += fmt.Sprintf(" %s %s(%s)", s.name, s.decl.Name, knownText(s.known))
		if !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	return e.built(key, strings.Join(names, "_"), func(takes numbers) *layerFunc { return e.p.buildGroup(pattern, batch, takes) })
}

// buildGroup builds the function of several layers, one after the other, for
// batches of one size. A weight has those of all layers of its name on a leading
// axis, in their order. The layers have been built by themselves, without errors.
func (p *builder) buildGroup(pattern []*stackCall, batch int, takes numbers) *layerFunc {
	l := &layerFunc{fn: ir.NewFunc("layers"), decl: pattern[0].decl, rows: takes, group: pattern}
	e, ok := p.startLayer(l, batch, nil)
	if !ok {
		return l
	}
	var tensors []value.Value // the activations and the side inputs
	for _, q := range l.decl.Params {
		if !q.Static() {
			tensors = append(tensors, e.scope.vars[q.Name])
		}
	}
	keys, random := e.random, false
	var sums []*ir.Value
	for i, s := range pattern {
		e.scope, e.under, e.layer, l.decl = newScope(), s.name+".", s.decl.Name, s.decl
		next := 0
		for _, q := range s.decl.Params {
			if q.Static() {
				e.scope.set(q.Name, s.known[q.Name])
			} else {
				e.scope.set(q.Name, tensors[next])
				next++
			}
		}
		if e.random = nil; keys != nil {
			place := e.b.Reshape(e.b.SliceDim(keys.place, 0, i, i+1), 2)
			e.random = &randomState{rows: keys.rows, place: place}
		}
		l.at = i
		v, _ := e.run(s.decl.Body)
		random = random || e.random != nil
		out := e.layerResults(l, s.decl, v)
		if out == nil {
			return l
		}
		tensors[0] = &value.Tensor{V: out[0], Axes: l.x}
		for j, a := range out[1:l.numActs()] {
			tensors[j+1] = &value.Tensor{V: a, Axes: l.sides[j].axes}
		}
		for j, a := range out[l.numActs():] {
			if j < len(sums) {
				sums[j] = e.b.Add(sums[j], a)
			} else {
				sums = append(sums, a)
			}
		}
	}
	if l.decl = pattern[0].decl; takes == rowNumbers {
		e.random = keys
		e.layerPlace(l)
	}
	var out []*ir.Value
	for _, t := range tensors[:l.numActs()] {
		out = append(out, t.(*value.Tensor).V)
	}
	e.layerReturn(l, append(out, sums...))
	if random {
		l.rows = rowNumbers
	}
	return l
}

// weightOfGroup is w of the layer of a group that is being built: its part of what
// the layers of its name have.
func (l *layerFunc) weightOfGroup(e *elab, w weight) *ir.Value {
	name := l.group[l.at].name
	w.stack = name
	for _, s := range l.group {
		if s.name == name {
			w.per++
		}
	}
	k := slices.IndexFunc(l.weights, func(o weight) bool { return o.under+o.name == w.under+w.name })
	if k < 0 {
		k = len(l.weights)
		l.weights = append(l.weights, w)
		l.args = append(l.args, l.weightArg(e, w))
	}
	at := 0
	for _, s := range l.group[:l.at] {
		if s.name == name {
			at++
		}
	}
	return e.b.Reshape(e.b.SliceDim(l.args[k], 0, at, at+1), value.ShapeOf(w.axes)...)
}

// listSlab is the layers of w in a list: of each layer's parameters those rows of
// what all layers of its name have.
func (e *elab) listSlab(l *listLayers, w window) slab {
	count := w.n / w.period
	weights := func(x weight) *ir.Value {
		name, path := l.kinds[l.seq[w.lo]].name, ""
		if w.period > 1 {
			name, path = x.stack, x.under+x.name
		} else {
			path = name + "." + x.under + x.name
		}
		numbers := l.numbers[name]
		lo, _ := slices.BinarySearch(numbers, w.lo)
		hi, _ := slices.BinarySearch(numbers, w.lo+w.n)
		return e.parameterRows(x, path, stackRows{layers: len(numbers), lo: lo, hi: hi, count: count, per: x.per, numbers: numbers})
	}
	places := func() *ir.Value {
		all := e.b.SliceDim(e.places(len(l.seq)), 0, w.lo, w.lo+w.n)
		if w.period > 1 {
			all = e.b.Reshape(all, count, w.period, 2)
		}
		return all
	}
	return slab{count, weights, places}
}
