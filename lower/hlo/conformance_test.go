package hlo

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"testing"

	"ppc/internal/conformance"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/passes"
)

// mustPass is how many units have passed, by kind. It only grows.
var mustPass = map[string]int{"hlo-pipeline": 9, "hlo-collective": 27}

// XLA's programs for several devices give the recorded numbers; those listed in
// testdata/conformance_skip.txt do not yet, and must not.
func TestConformanceRuns(t *testing.T) {
	reasons := conformance.Skips(t, filepath.Join("testdata", "conformance_skip.txt"))
	for kind, must := range mustPass {
		passed := 0
		for _, u := range conformance.Units(t, kind) {
			t.Run(u.Name(), func(t *testing.T) {
				err := runUnit(t, u)
				reason, skipped := reasons[u.Name()]
				switch {
				case err == nil && skipped:
					t.Errorf("passes, but is listed: %s", reason)
				case err == nil:
					passed++
				case !skipped:
					t.Error(err)
				}
			})
		}
		t.Logf("%s: %d units pass", kind, passed)
		if passed < must {
			t.Errorf("%s: %d units pass, want at least %d", kind, passed, must)
		}
	}
}

func runUnit(t *testing.T, u conformance.Unit) error {
	c := u.Case(t)
	m, err := Parse(u.Path, []byte(u.Source(t)))
	if err != nil {
		return err
	}
	if c.Mode == "global" {
		return runGlobal(m, c)
	}
	if c.Replicas > 1 {
		m.Attrs.Set("mhlo.num_replicas", ir.Int{Value: c.Replicas, Type: ir.I32})
	}
	args := make([][]*ir.Literal, len(c.Inputs))
	for d, tensors := range c.Inputs {
		for _, x := range tensors {
			args[d] = append(args[d], literal(x))
		}
	}
	whole, err := Unfuse(m)
	if err != nil {
		return err
	}
	for _, m := range []*ir.Module{m, whole} {
		got, err := eval.RunDevices(m, m.Main(), args, eval.Options{})
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
// whole arguments, and compares whole results.
func runGlobal(m *ir.Module, c conformance.Case) error {
	if err := ReadShardings(m); err != nil {
		return err
	}
	if err := passes.Run(m, passes.Config{}); err != nil {
		return err
	}
	f, mesh := m.Main(), m.Meshes[0]
	args := make([][]*ir.Literal, mesh.Size())
	for d := range args {
		for i, p := range f.Params() {
			whole := literal(c.Inputs[min(d, len(c.Inputs)-1)][i])
			s, _ := p.Attrs.Get("pp.sharding").(*ir.Sharding)
			args[d] = append(args[d], ir.Cut(whole, s, mesh, d))
		}
	}
	got, err := eval.RunDevices(m, f, args, eval.Options{})
	if err != nil {
		return err
	}
	for i, r := range f.Results {
		s, _ := r.Attrs.Get("pp.sharding").(*ir.Sharding)
		parts := make([]*ir.Literal, len(got))
		for d := range got {
			parts[d] = got[d][i]
		}
		whole := ir.Join(mesh, s, s.Global(r.Type, mesh), parts)
		for d := range got {
			got[d][i] = whole
		}
	}
	return sameNumbers(c, got)
}

// literal is the tensor x.
func literal(x conformance.Tensor) *ir.Literal {
	t := ir.Tensor(ir.DTypeByHLO(x.DType), x.Shape...)
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
			vs[i], _ = strconv.ParseFloat(v, 64)
		}
		ints[i] = int(vs[i])
	}
	if t.Elem.IsFloat() {
		return ir.Floats64(t, vs...)
	}
	return ir.Ints64(t, ints...)
}

// sameNumbers compares what the devices give with what XLA gave.
func sameNumbers(c conformance.Case, got [][]*ir.Literal) error {
	for d, results := range c.Expected {
		for i, x := range results {
			want := literal(x)
			if i >= len(got[d]) || !want.Type.Equal(got[d][i].Type) {
				return fmt.Errorf("device %d: %d results, want number %d to be %s", d, len(got[d]), i, want.Type)
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
