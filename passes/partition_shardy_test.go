package passes

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ppc/internal/shared"
	"ppc/ir"
	"ppc/ir/mlir"
)

// Shardy's own programs for its partitioner, as far as their sizes divide,
// compute the same numbers partitioned here.
func TestPartitionShardy(t *testing.T) {
	dir := filepath.Join(shared.Dir(t), "conformance", "shardy")
	var files []string
	for _, sub := range []string{"partition", "collective"} {
		found, err := filepath.Glob(filepath.Join(dir, sub, "*.mlir"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(src), "//--- part2.mlir")
			m, err := mlir.Parse(file, []byte(first))
			if err != nil {
				t.Skip(err)
			}
			for _, f := range m.Funcs {
				if strings.HasPrefix(f.Name, "parallel") {
					partitionShardyFunc(t, m, f)
				}
			}
		})
	}
}

func partitionShardyFunc(t *testing.T, m *ir.Module, f *ir.Func) {
	one := &ir.Module{Name: f.Name, Meshes: m.Meshes[:1], Funcs: []*ir.Func{f.Clone()}}
	one.Funcs[0].Name = "main"
	if err := ir.Verify(one); err != nil {
		t.Skip(err)
	}
	g := &programMaker{r: rand.New(rand.NewPCG(1, 2))}
	var args []*ir.Literal
	for _, v := range f.Params() {
		args = append(args, g.literal(v.Type))
	}
	err := partitionedEqual(one, args)
	if err != nil && (strings.Contains(err.Error(), "do not divide") || strings.Contains(err.Error(), "does not know")) {
		t.Skip(err)
	}
	if err != nil {
		t.Errorf("%s: %v", f.Name, err)
	}
}
