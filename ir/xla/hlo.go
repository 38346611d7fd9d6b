package xla

import (
	"fmt"
	"slices"
	"strings"

	"ppc/internal/diag"
	"ppc/ir"
)

// ImportHLO is [Import] for a module read from HLO text, which is the global
// program or, after XLA's partitioner, the local one: perDevice says which. The
// partitioner gives the entry a name that ends in _spmd, and scheduled modules have
// been partitioned; the sharding of a parameter then only says what its shard is
// of. A program that is neither and has both shardings over several devices and
// collectives is an error.
func ImportHLO(m *ir.Module, o Options) (warnings diag.List, perDevice bool, err error) {
	im := &importer{m: m, Options: o, has: surveyOf(m)}
	if partitioned(m) || !im.distributed() {
		if im.fitting(); len(im.errs) > 0 {
			return nil, false, im.errs
		}
		dropShardings(m)
		warnings, err = Import(m, o)
		return warnings, true, err
	}
	if op := collective(m.Main()); op != nil {
		im.errorf(op.Origin, "%s is a collective of one device, but other ops have a sharding over several: the text is no program of all devices and none of one; "+
			"of one, XLA's has an entry whose name ends in _spmd, or is_scheduled=true", op.Name())
		return nil, false, im.errs
	}
	warnings, err = Import(m, o)
	return warnings, false, err
}

// partitioned reports whether XLA has partitioned m.
func partitioned(m *ir.Module) bool {
	f := m.Main()
	return m.Attrs.Str("hlo.is_scheduled") == "true" || f != nil && strings.HasSuffix(f.Name, "_spmd")
}

// distributed reports whether a sharding of the program gives devices different
// things. One that cannot be read does, for its error.
func (im *importer) distributed() bool {
	found := false
	im.each(func(_ string, _ *ir.Origin, as ir.Attrs) {
		if s, name := shardingOf(as); name != "" && !found {
			t, err := parse(s)
			found = err != nil || t.distributes()
		}
	})
	return found || im.hasCalls()
}

// fitting reports shardings, of a program that is local already, which are none of the values
// that have them.
func (im *importer) fitting() {
	fits := func(what string, o *ir.Origin, as ir.Attrs, types ...*ir.Type) {
		if s, name := shardingOf(as); name != "" {
			t, err := parse(s)
			if err == nil {
				err = t.fits(types)
			}
			if err != nil {
				im.errorf(o, "%s: %v", what, err)
			}
		}
	}
	for _, f := range im.m.Funcs {
		for i, v := range f.Params() {
			fits(fmt.Sprintf("parameter %d of %s", i, ir.SymbolText(f.Name)), f.Origin, v.Attrs, v.Type)
		}
		if f.Body != nil && im.has.attrs {
			f.Body.Walk(func(op *ir.Op) { fits(op.Name(), op.Origin, op.Attrs, ir.Types(op.Results)...) })
		}
	}
}

// fits reports what is wrong with t as the sharding of values of these types.
func (t *text) fits(types []*ir.Type) error {
	leaves := tensors(types)
	switch {
	case t.kind == tuple && len(t.tuple) != max(len(leaves), 1):
		return fmt.Errorf("%s is of %s, want one for each of %d", t.spelling, counted(len(t.tuple), "value"), max(len(leaves), 1))
	case t.kind == tuple && len(leaves) > 0:
		for i, e := range t.tuple {
			if err := e.fits(leaves[i : i+1]); err != nil {
				return err
			}
		}
	case t.kind == tiled && len(types) == 1 && types[0].IsTensor() && len(t.dims()) != types[0].Rank():
		return fmt.Errorf("%s tiles %s, the value has %d", t.spelling, counted(len(t.dims()), "dimension"), types[0].Rank())
	}
	return nil
}

// tensors are the types of the parts of values of these types that are no tuples.
func tensors(types []*ir.Type) []*ir.Type {
	var leaves []*ir.Type
	for _, t := range types {
		if t.Kind == ir.TupleType {
			leaves = append(leaves, tensors(t.Elems)...)
		} else {
			leaves = append(leaves, t)
		}
	}
	return leaves
}

func (t *text) distributes() bool {
	switch t.kind {
	case tiled:
		return t.named != nil && t.mesh.Size() > 1 || ir.ProductUpTo(t.tiles, ir.MaxDevices) > 1
	case maximal:
		return t.device > 0
	case tuple:
		return slices.ContainsFunc(t.tuple, (*text).distributes)
	}
	return t.kind == manual || t.kind == unreduced
}

// dropShardings removes the sharding attributes of HLO text.
func dropShardings(m *ir.Module) {
	drop := func(as *ir.Attrs) {
		as.Delete("hlo.sharding")
		if len(*as) == 0 {
			*as = nil
		}
	}
	for _, f := range m.Funcs {
		drop(&f.Attrs)
		for _, v := range f.Params() {
			drop(&v.Attrs)
		}
		if f.Body != nil {
			f.Body.Walk(func(op *ir.Op) { drop(&op.Attrs) })
		}
	}
}

// collective is the first collective of f; nil where there is none.
func collective(f *ir.Func) *ir.Op {
	var found *ir.Op
	if f != nil && f.Body != nil {
		f.Body.Walk(func(op *ir.Op) {
			if found == nil && op.Kind.Has(ir.Collective) {
				found = op
			}
		})
	}
	return found
}
