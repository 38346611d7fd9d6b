package gradient

import (
	"slices"
	"strings"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
	"ppc/passes/rewrite"
)

// A rematRegion is the policy of one pp.checkpoint.
type rematRegion struct {
	save    map[string]bool
	offload map[string]bool // of those, the ones that are kept in host memory
	loops   bool            // its loops are rematerialised as loops, and those copies save the residuals
}

func newRematRegion(op *ir.Op) *rematRegion {
	d, _ := op.Attrs.Get("policy").(ir.Dict)
	policy := ir.Attrs(d)
	r := &rematRegion{save: make(map[string]bool), offload: make(map[string]bool), loops: policy.Str("loops") == "keep"}
	for _, name := range []string{"iteration_input", "decoder_layer_input"} {
		if key := "save_" + name; !policy.Has(key) || policy.Bool(key) {
			r.save[name] = true
		}
	}
	for _, name := range facts.WordsOf(policy.Get("save")) {
		r.save[name] = true
	}
	for _, name := range facts.WordsOf(policy.Get("offload")) {
		r.save[name], r.offload[name] = true, true
	}
	return r
}

// saves reports whether op names a value that the policy of r saves.
func (r *rematRegion) saves(op *ir.Op) bool {
	return r != nil && op != nil && op.Kind == ir.PPName && r.save[op.Str("name")]
}

// A regionsOf is the checkpoint regions that an op is in: the outermost one, which
// rematerialises it, nil for none, and the one whose policy applies.
type regionsOf struct{ remat, policy *rematRegion }

// inLoop is the regions of the ops in the body of a loop whose regions are s.
func (s regionsOf) inLoop() regionsOf {
	if s.remat != nil && s.remat.loops {
		s.remat = nil
	}
	return s
}

// openCheckpoints inlines the checkpoint regions of f, records the region of each op,
// and makes of the values that a loop in one saves results of the loop. An op in
// nested regions belongs to the outermost.
func (d *differentiator) openCheckpoints() {
	loops := make(map[*ir.Op]regionsOf)
	d.mark(d.f.Body, regionsOf{}, loops)
	rewrite.OpenCheckpoints(d.f)
	d.exposeAll(d.f.Body, loops)
}

// mark records the regions of the ops of b, which is in those of at; loops gets
// those of each loop.
func (d *differentiator) mark(b *ir.Block, at regionsOf, loops map[*ir.Op]regionsOf) {
	for _, op := range b.Ops {
		inner := at
		switch op.Kind {
		case ir.PPCheckpoint:
			if inner.remat == nil {
				r := newRematRegion(op)
				inner = regionsOf{r, r}
				d.note(op)
			}
			d.mark(op.Regions[0], inner, loops)
			continue
		case ir.PPName:
			if at.policy != nil {
				d.carried[op.Str("name")] = true
			}
		case ir.PPScan:
			inner = at.inLoop()
			if at.policy != nil {
				loops[op] = at
			}
		}
		if at.remat != nil {
			d.regions[op] = at.remat
		}
		if !facts.Reducer(op) {
			for _, r := range op.Regions {
				d.mark(r, inner, loops)
			}
		}
	}
}

// exposeAll does [differentiator.expose] for the loops of b, inner ones first.
func (d *differentiator) exposeAll(b *ir.Block, loops map[*ir.Op]regionsOf) {
	var out []*ir.Op
	for _, op := range b.Ops {
		for _, r := range op.Regions {
			d.exposeAll(r, loops)
		}
		out = append(out, op)
		if at, ok := loops[op]; ok {
			out = append(out, d.expose(op, at)...)
		}
	}
	b.Ops = out
}

// note records the policy of the region op.
func (d *differentiator) note(op *ir.Op) {
	same := func(other *ir.Op) bool { return other.Attrs.Get("policy").String() == op.Attrs.Get("policy").String() }
	if !slices.ContainsFunc(d.policies, same) {
		d.policies = append(d.policies, op)
	}
}

// warnOfNames warns of policies none of whose names has an effect, and of each name
// without effect that a setting lists.
func (d *differentiator) warnOfNames(c *pass.Context) {
	for _, region := range d.policies {
		p, _ := region.Attrs.Get("policy").(ir.Dict)
		policy := ir.Attrs(p)
		for _, name := range facts.WordsOf(policy.Get("asked")) {
			if why := d.withoutEffect(name); why != "" {
				key := "save"
				if slices.Contains(facts.WordsOf(policy.Get("offload")), name) {
					key = "offload"
				}
				c.Warn(&pass.Error{Op: region, Setting: key, Kept: name, Msg: "pipeline: to " + key + " " + name + " has no effect: " + why})
			}
		}
		names := append(facts.WordsOf(policy.Get("save")), facts.WordsOf(policy.Get("offload"))...)
		if word := policy.Str("remat"); len(names) > 0 && word != "full" && word != "custom" && word != "" {
			d.warnOfPolicy(c, region, word, names)
		}
	}
}

// warnOfPolicy warns if the policy called word keeps none of names.
func (d *differentiator) warnOfPolicy(c *pass.Context, region *ir.Op, word string, names []string) {
	why := "no value has one of the names " + strings.Join(names, ", ")
	for _, name := range names {
		if d.used[name] {
			return
		}
		if d.carried[name] {
			why = d.withoutEffect(name)
		}
	}
	c.Warn(&pass.Error{Op: region, Setting: "remat", Msg: "pipeline: remat = " + word + " has no effect: " + why})
}

// withoutEffect is why no value of the given name is kept, "" if one is.
func (d *differentiator) withoutEffect(name string) string {
	switch {
	case d.used[name]:
		return ""
	case d.carried[name]:
		return "the backward pass does not need " + name
	}
	return "no rematerialised value has the name " + name
}

// A keep is a value in the body of a loop in a checkpoint region, whose name the
// policy saves: the loop returns its rows, one per iteration, under the same name.
// A copy of the loop in the backward pass reads the rows instead of recomputing the
// value.
type keep struct{ v, rows *ir.Value }

// expose makes the loop op, whose regions are at, return the rows of its saved
// values. It returns the ops that name them.
func (d *differentiator) expose(op *ir.Op, at regionsOf) []*ir.Op {
	b := &ir.Builder{Func: d.f, Block: new(ir.Block), Origin: op.Origin}
	for _, named := range slices.Clone(op.Regions[0].Ops) {
		if !at.policy.saves(named) {
			continue
		}
		v := named.Result()
		row := v
		if h := d.onHost(v, at.policy, op.Regions[0]); h != nil {
			row = h
		}
		stacked := stack(d.f, op, row, whySaved(named))
		out := b.At(named.Origin).Emit(ir.PPName, []*ir.Value{stacked}, named.Attrs, nil, nil)
		rows := out.Result().Named(v.Name)
		rows.Sharding = stacked.Sharding
		if at.remat != nil {
			d.regions[out] = at.remat
		}
		if _, ok := d.hosted[v]; ok {
			d.hosted[rows] = nil // they are in host memory already
		}
		d.kept[v], d.kept[row] = rows, rows
		d.keeps[op] = append(d.keeps[op], keep{v, rows})
	}
	return b.Block.Ops
}

// feed gives c, a copy of the loop op, the rows of op's saved values. sub maps
// the values of op to those of c; of a saved one it learns the row.
func (d *differentiator) feed(c, op *ir.Op, sub map[*ir.Value]*ir.Value, rows func(*ir.Value) *ir.Value) {
	keeps := d.keeps[op]
	if len(keeps) == 0 {
		return
	}
	body := c.Regions[0]
	c.Operands = slices.Clone(c.Operands)
	head := &ir.Builder{Func: d.f, Block: new(ir.Block), Origin: op.Origin}
	args := make(map[*ir.Value]*ir.Value)
	old := make([]*ir.Value, len(keeps))
	for i, k := range keeps {
		c.Operands = append(c.Operands, rows(k.rows))
		arg := d.f.NewArg(body, k.v.Type, k.v.Name)
		arg.Sharding = k.v.Sharding
		args[k.v] = arg
		row := arg
		if d.hosted[k.v] != nil {
			row = place(head, arg, deviceMemory)
		}
		old[i], sub[k.v] = sub[k.v], row
	}
	replaced := d.f.NewSubst()
	for i, k := range keeps {
		replaced[old[i].ID] = sub[k.v]
	}
	replaced.ApplyBlock(body)
	body.Ops = append(head.Block.Ops, body.Ops...)
	for _, inner := range op.Regions[0].Ops {
		if inner.Kind == ir.PPScan && len(d.keeps[inner]) > 0 {
			d.feed(sub[inner.Results[0]].Def, inner, sub, func(v *ir.Value) *ir.Value { return args[v] })
		}
	}
}

// The memory kinds of XLA's host offloading.
const (
	hostMemory   = "pinned_host"
	deviceMemory = "device"
)

// place copies v to memory of the given kind.
func place(b *ir.Builder, v *ir.Value, memory string) *ir.Value {
	attrs := ir.AttrsOf(facts.Named("call_target_name", ir.Str(facts.Placement)),
		facts.Named("mhlo.frontend_attributes", ir.Dict(ir.AttrsOf(facts.Named("_xla_buffer_placement", ir.Str(memory))))))
	out := b.Emit(ir.CustomCall, []*ir.Value{v}, attrs, nil, []*ir.Type{v.Type}).Result()
	out.Name, out.Sharding = v.Name, v.Sharding
	return out
}

// onHost is v, a value of the block b, in host memory, if the policy of r wants
// it there.
func (d *differentiator) onHost(v *ir.Value, r *rematRegion, b *ir.Block) *ir.Value {
	if h, ok := d.hosted[v]; ok {
		return h
	}
	if !r.saves(v.Def) || !r.offload[v.Def.Str("name")] {
		return nil
	}
	at := slices.Index(b.Ops, v.Def) + 1
	copies := &ir.Builder{Func: d.f, Block: new(ir.Block), Origin: v.Def.Origin}
	d.hosted[v] = place(copies, v, hostMemory)
	b.Ops = slices.Concat(b.Ops[:at], copies.Block.Ops, b.Ops[at:])
	return d.hosted[v]
}
