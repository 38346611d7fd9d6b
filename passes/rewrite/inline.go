package rewrite

import (
	"cmp"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/passes/pass"
)

// InlineCalls replaces every call in f by the ops of its callee, calls in there
// included. A function that calls itself is an error.
func InlineCalls(m *ir.Module, f *ir.Func) error {
	in := &inliner{m: m, f: f, sub: f.NewSubst()}
	return in.block(f.Body, nil)
}

// InlineScalarCalls replaces the calls in regions that compute with scalars, such as the
// comparator of a sort, by the ops of their callees. A function that calls itself is an
// error.
func InlineScalarCalls(m *ir.Module) error {
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		var err error
		in := &inliner{m: m, f: f, sub: f.NewSubst()}
		f.Body.Walk(func(op *ir.Op) {
			if err != nil || op.Kind.Has(ir.TensorRegions) {
				return
			}
			for _, r := range op.Regions {
				err = cmp.Or(err, in.block(r, nil))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

type inliner struct {
	m   *ir.Module
	f   *ir.Func
	sub ir.Subst
}

func (in *inliner) block(b *ir.Block, active []string) error {
	var out []*ir.Op
	for _, op := range b.Ops {
		in.sub.Apply(op.Operands)
		for _, r := range op.Regions {
			if err := in.block(r, active); err != nil {
				return err
			}
		}
		if op.Callee() == "" {
			out = append(out, op)
			continue
		}
		ops, err := in.call(op, active)
		if err != nil {
			return err
		}
		out = append(out, ops...)
	}
	b.Ops = out
	return nil
}

func (in *inliner) call(op *ir.Op, active []string) ([]*ir.Op, error) {
	name := op.Callee()
	callee := in.m.Func(name)
	if callee == nil || callee.Body == nil {
		return nil, pass.Errorf(op, "the callee @%s has no body to inline", name)
	}
	if slices.Contains(active, name) {
		return nil, pass.Errorf(op, "@%s calls itself: %s", name, strings.Join(append(active, name), " -> "))
	}
	body := new(ir.Block)
	b := &ir.Builder{Func: in.f, Block: body, Origin: op.Origin}
	sub := make(map[*ir.Value]*ir.Value)
	for i, p := range callee.Params() {
		v := op.Operands[i]
		if p.Sharding != nil {
			v = b.Constrain(v, p.Sharding)
			if names := p.Attrs.Get(ir.KeyAxes); names != nil {
				v.Def.Attrs.Set(ir.KeyAxes, names)
			}
		}
		sub[p] = v
	}
	vs := CopyBody(b, callee.Body, sub)
	for i, v := range op.Results {
		in.sub = in.sub.Grow(v.ID)
		in.sub[v.ID] = vs[i]
	}
	if err := in.block(body, append(active, name)); err != nil {
		return nil, err
	}
	for i, v := range op.Results {
		in.sub[v.ID] = in.sub.Of(vs[i])
	}
	return body.Ops, nil
}
