package ir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/internal/shared"
	"ppc/ir"
	"ppc/ir/mlir"
)

// A unit is one row of the manifest of conformance units.
type unit struct {
	path    string
	segment string
	kind    string
	ops     []string
}

func (u unit) String() string {
	return strings.TrimSuffix(u.path, ".mlir") + ":" + u.segment
}

// known reports whether the op table has every op of u.
func (u unit) known() bool {
	return !slices.ContainsFunc(u.ops, func(name string) bool {
		return name != "" && name != "sdy.mesh" && ir.KindByName(name) == ir.Unknown
	})
}

func readUnits(t *testing.T, dir string) []unit {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "manifest.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var units []unit
	for line := range strings.Lines(string(data)) {
		c := strings.Split(line, "\t")
		if len(c) > 3 && c[0] != "path" {
			units = append(units, unit{path: c[0], segment: c[1], kind: c[2], ops: strings.Split(c[3], ",")})
		}
	}
	return units
}

// text is the module of u.
func (u unit) text(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(u.path)))
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{""}
	for line := range strings.Lines(string(data)) {
		if strings.TrimSpace(line) == "// -----" {
			parts = append(parts, "")
			continue
		}
		parts[len(parts)-1] += line
	}
	var n int
	if _, err := fmt.Sscan(u.segment, &n); err != nil || n >= len(parts) {
		t.Fatalf("%s has no segment %s", u.path, u.segment)
	}
	return parts[n]
}

// accept parses and verifies u.
func (u unit) accept(t *testing.T, dir string) error {
	m, err := mlir.Parse(u.path, []byte(u.text(t, dir)))
	if err != nil {
		return err
	}
	return ir.Verify(m)
}

// A deviation is a number of units, whose names begin alike, that are not
// treated as the suite expects, and why.
type deviation struct {
	prefix string
	units  int
	reason string
}

// accepted are the deviations in units that should be rejected.
var accepted = []deviation{
	{"shardy/parse/edge_sharding_verification", 11, "propagation edges, Shardy's debugging output, are carried unread"},
	{"shardy/parse/sharding_rule_verification", 19, "sharding rules written on an op are carried unread"},
	{"stablehlo/verify/ops_stablehlo_quantized", 73, "quantized types are carried unread"},
	{"stablehlo/verify/ops_stablehlo.00:19", 1, "quantized types are carried unread"},
	{"stablehlo/verify/ops_stablehlo.00:1", 1, "a type that nobody knows is carried unread"},
	{"stablehlo/verify/ops_stablehlo.01:18", 1, "quantized types are carried unread"},
	{"stablehlo/verify/ops_stablehlo.27:0", 1, "quantized types are carried unread"},
	{"stablehlo/verify/ops_stablehlo.27:14", 1, "a type that nobody knows (i10) is carried unread"},
	{"stablehlo/verify/ops_stablehlo.27:1", 1, "quantized types are carried unread"},
	{"stablehlo/verify/verify_reduce:", 2, "quantized types are carried unread"},
	{"stablehlo/verify/verify_reduce_window", 2, "quantized types are carried unread"},
	{"stablehlo/verify/verify_scatter", 2, "quantized types are carried unread"},
	{"stablehlo/verify/verify_select_and_scatter", 1, "quantized types are carried unread"},
}

// rejected are the deviations in units that should be accepted.
var rejected = []deviation{
	{"stablehlo/verify/ops_stablehlo.03:4", 1, "an all_gather of two operands, one of which grows by another factor than the group's size"},
	{"stablehlo/verify/ops_stablehlo.06", 2, "a collective_broadcast of several operands, or from a root that is computed"},
	{"stablehlo/verify/print_reduce", 1, "a reduction of anything but scalars: the specification has none"},
	{"stablehlo/verify/verify_reduce:", 2, "a reduction of anything but scalars: the specification has none"},
	{"stablehlo/verify/verify_reduce_window", 2, "a reduction of anything but scalars: the specification has none"},
}

// The verifier rejects what StableHLO's and Shardy's verifiers reject and
// accepts what they accept, as far as the op table goes.
func TestConformance(t *testing.T) {
	dir := filepath.Join(shared.Dir(t), "conformance")
	tooMuch, tooLittle := newTally(accepted), newTally(rejected)
	n := 0
	for _, u := range readUnits(t, dir) {
		switch {
		case !u.known():
			continue
		case u.kind == "verify-error":
			if err := u.accept(t, dir); err == nil {
				tooMuch.add(t, u, "is accepted")
			}
		case u.kind == "verify-ok" || u.kind == "sdy-parse":
			if err := u.accept(t, dir); err != nil {
				tooLittle.add(t, u, err.Error())
			}
		default:
			continue
		}
		n++
	}
	t.Logf("%d units", n)
	tooMuch.check(t)
	tooLittle.check(t)
}

// A tally counts the units of each deviation.
type tally struct {
	deviations []deviation
	found      []int
}

func newTally(ds []deviation) *tally { return &tally{ds, make([]int, len(ds))} }

func (y *tally) add(t *testing.T, u unit, what string) {
	for i, d := range y.deviations {
		if strings.HasPrefix(u.String(), d.prefix) {
			y.found[i]++
			return
		}
	}
	t.Errorf("%s: %s", u, what)
}

// check demands exactly the deviations that are listed, so that a list only
// becomes shorter.
func (y *tally) check(t *testing.T) {
	for i, d := range y.deviations {
		if y.found[i] != d.units {
			t.Errorf("%s: %d units deviate, %d are listed (%s)", d.prefix, y.found[i], d.units, d.reason)
		}
	}
}
