package passes

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ppc/internal/conformance"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/ir/mlir"
)

// mustPassConformance is how many units have passed, by kind. It only grows.
var mustPassConformance = map[string]int{"sdy-partition": 22, "sdy-collective": 25}

// Shardy's executable programs, partitioned here, pass their own checks; those
// listed in testdata/conformance_skip.txt do not yet, and must not.
func TestConformance(t *testing.T) {
	reasons := conformance.Skips(t, filepath.Join("testdata", "conformance_skip.txt"))
	for kind, must := range mustPassConformance {
		passed := 0
		for _, u := range conformance.Units(t, kind) {
			t.Run(u.Name(), func(t *testing.T) {
				err := runTwoParts(t, u)
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

// runTwoParts partitions the functions of the first part, puts them beside the
// second part, and runs its @main. It runs in float64: the suite compares sums
// for equality that were split, which holds where every addition rounds, and
// here a sum rounds once.
func runTwoParts(t *testing.T, u conformance.Unit) error {
	parts := u.Parts(t)
	global, err := mlir.Parse(u.Path, []byte(parts["part1.mlir"]))
	if err != nil {
		return err
	}
	if err := ir.Verify(global); err != nil {
		return err
	}
	whole, err := mlir.Parse(u.Path, []byte(parts["part2.mlir"]))
	if err != nil {
		return err
	}
	sharedNames := twoPartNames(parts[""])
	for _, f := range global.Funcs {
		if derived := sequentialName(f.Name); derived != f.Name && global.Func(derived) == nil {
			one := f.Clone()
			one.Name = derived
			dropShardings(one)
			whole.Funcs = append(whole.Funcs, one)
		}
		if !strings.HasPrefix(f.Name, "sequential") {
			if err := partitionFunc(t, global, f, u); err != nil {
				return fmt.Errorf("%s: %w", ir.SymbolText(f.Name), err)
			}
		}
		for _, name := range sharedNames(f.Name) {
			one := f.Clone()
			one.Name = name
			whole.Funcs = append(whole.Funcs, one)
		}
	}
	whole.Meshes = global.Meshes
	if err := ir.Verify(whole); err != nil {
		return err
	}
	if whole.Main() == nil {
		return errors.New("there is no @main")
	}
	_, err = eval.Run(whole, whole.Main(), nil, eval.Options{Float64: true}.WithChecks())
	return err
}

// twoPartNames reads from the RUN lines, which rename functions with sed,
// under which names a function of the first part stands in the whole.
func twoPartNames(head string) func(name string) []string {
	var renames [][2]string
	for line := range strings.Lines(head) {
		if _, rest, ok := strings.Cut(line, "sed 's/"); ok {
			if f := strings.Split(rest, "/"); len(f) > 2 {
				renames = append(renames, [2]string{f[0], f[1]})
			}
		}
	}
	return func(name string) []string {
		var names []string
		for _, r := range renames {
			if name == r[0] {
				names = append(names, r[1])
			}
		}
		if names == nil {
			return []string{name}
		}
		return names
	}
}

// sequentialName is the name under which the unpartitioned form of a function
// stands beside the partitioned one.
func sequentialName(name string) string {
	for parallel, sequential := range map[string]string{"parallel": "sequential", "transformed": "original"} {
		if rest, ok := strings.CutPrefix(name, parallel+"_"); ok {
			return sequential + "_" + rest
		}
	}
	return name
}

func dropShardings(f *ir.Func) {
	drop := func(vs []*ir.Value) {
		for _, v := range vs {
			v.Sharding = nil
		}
	}
	drop(f.Params())
	f.Body.Walk(func(op *ir.Op) { drop(op.Results) })
	for i := range f.Results {
		f.Results[i].Sharding = nil
	}
}

// partitionFunc partitions f, a function of the global program m.
func partitionFunc(t *testing.T, m *ir.Module, f *ir.Func, u conformance.Unit) error {
	one := &ir.Module{Name: f.Name, Meshes: m.Meshes, Funcs: []*ir.Func{f}, Form: ir.Expanded}
	name := f.Name
	f.Name = "main"
	defer func() { f.Name = name }()
	if strings.Contains(u.Source(t), "--replica_count=2 --partition_count=1") {
		one.Attrs.Set("mhlo.num_replicas", ir.Int{Value: 2, Type: ir.I32})
	}
	for _, p := range []*Pass{{Name: "propagate", Run: propagate, Ensures: ir.Sharded}, {Name: "partition", Run: partition, Ensures: ir.Local}} {
		if err := RunOne(p, one); err != nil {
			return err
		}
	}
	return nil
}
