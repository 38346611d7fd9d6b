package conformance

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"ppc/driver/suite"
	"ppc/ir"
	"ppc/ir/verify"
	"ppc/ir/xla"
	"ppc/lower/hlo"
	"ppc/passes"
)

// kindsOf are the kinds that a machine can be asked for.
func kindsOf(on suite.Machine) []Kind {
	parts := func(collective bool) func(context.Context, Unit) error {
		return func(ctx context.Context, u Unit) error { return runParts(ctx, on, u, collective) }
	}
	run := func(ctx context.Context, u Unit) error {
		if strings.Contains(u.Notes, "two-part") {
			return runParts(ctx, on, u, false)
		}
		source, err := u.Source()
		if err != nil {
			return err
		}
		return suite.Run(ctx, on, u.Path, source)
	}
	text := func(ctx context.Context, u Unit) error { return runText(ctx, on, u) }
	return []Kind{
		{"interpret", run}, {"testdata", run}, {"sdy-partition", parts(false)}, {"sdy-collective", parts(true)}, {"hlo-pipeline", text}, {"hlo-collective", text},
	}
}

// runText runs a unit of HLO text with the numbers in the file beside it, which
// the evaluator does as it is, too, and not only without fusions.
func runText(ctx context.Context, on suite.Machine, u Unit) error {
	c, err := u.Case()
	if err != nil {
		return err
	}
	m, err := parseHLO(u)
	if err != nil {
		return err
	}
	args := make([][]*ir.Literal, len(c.Inputs))
	for d, tensors := range c.Inputs {
		for _, x := range tensors {
			l, err := literal(x)
			if err != nil {
				return err
			}
			args[d] = append(args[d], l)
		}
	}
	if c.Mode == "global" {
		return runGlobal(ctx, on, m, c, args)
	}
	if c.Replicas > 1 {
		m.Attrs.Set("mhlo.num_replicas", ir.Int{Value: c.Replicas, Type: ir.I32})
	}
	whole, err := hlo.Unfuse(m)
	if err != nil {
		return err
	}
	forms := []*ir.Module{whole}
	if _, ok := on.(suite.Evaluator); ok {
		forms = append(forms, m)
	}
	for _, m := range forms {
		if err := verify.Verify(m); err != nil {
			return err
		}
		got, err := on.Devices(ctx, m, args)
		if err != nil {
			return err
		}
		if err := sameNumbers(c, got); err != nil {
			return err
		}
	}
	return nil
}

// runGlobal partitions m over the devices, each of which the case gives the
// global arguments, and compares global results.
func runGlobal(ctx context.Context, on suite.Machine, m *ir.Module, c Case, args [][]*ir.Literal) error {
	if _, err := xla.Import(m, xla.Options{}); err != nil {
		return err
	}
	if err := passes.Run(m, passes.Config{}); err != nil {
		return err
	}
	f, mesh := m.Main(), m.Meshes[0]
	local := make([][]*ir.Literal, mesh.Size())
	for d := range local {
		for i, p := range f.Params() {
			s, _ := p.Attrs.Get("pp.sharding").(*ir.Sharding)
			local[d] = append(local[d], ir.ShardOf(args[min(d, len(args)-1)][i], s, mesh, d))
		}
	}
	got, err := on.Devices(ctx, m, local)
	if err != nil {
		return err
	}
	for i, r := range f.Results {
		s, _ := r.Attrs.Get("pp.sharding").(*ir.Sharding)
		parts := make([]*ir.Literal, len(got))
		for d := range got {
			parts[d] = got[d][i]
		}
		global := ir.FromShards(mesh, s, s.Global(r.Type, mesh), parts)
		for d := range got {
			got[d][i] = global
		}
	}
	return sameNumbers(c, got)
}

// literal is the tensor x.
func literal(x Tensor) (*ir.Literal, error) {
	elem := ir.DTypeByHLO(x.DType)
	if elem == ir.InvalidDType {
		return nil, fmt.Errorf("%s is no type of elements", x.DType)
	}
	t := ir.Tensor(elem, x.Shape...)
	vs := make([]float64, len(x.Data))
	ints := make([]int, len(x.Data))
	for i, v := range x.Data {
		switch v := v.(type) {
		case float64:
			vs[i] = v
		case bool:
			if v {
				vs[i] = 1
			}
		case string:
			var err error
			if vs[i], err = strconv.ParseFloat(v, 64); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%v is no number", v)
		}
		ints[i] = int(vs[i])
	}
	if t.Elem.IsFloat() {
		return ir.Floats64(t, vs...), nil
	}
	return ir.Ints64(t, ints...), nil
}

// sameNumbers compares what the devices give with what XLA gave.
func sameNumbers(c Case, got [][]*ir.Literal) error {
	for d, results := range c.Expected {
		if results == nil {
			continue
		}
		if d >= len(got) || len(got[d]) != len(results) {
			return fmt.Errorf("device %d: %d results are expected", d, len(results))
		}
		for i, x := range results {
			want, err := literal(x)
			if err != nil {
				return err
			}
			if !want.Type.Equal(got[d][i].Type) {
				return fmt.Errorf("device %d: result %d is %s, want %s", d, i, got[d][i].Type, want.Type)
			}
			for k := range want.Type.NumElements() {
				a, b := want.Float(k), got[d][i].Float(k)
				diff := math.Abs(a - b)
				if a != b && !(math.IsNaN(a) && math.IsNaN(b)) && !(diff <= c.Tolerance.Abs) && !(diff <= c.Tolerance.Rel*math.Abs(a)) {
					return fmt.Errorf("device %d, result %d, element %d: %v, want %v", d, i, k, b, a)
				}
			}
		}
	}
	return nil
}
