package driver

import (
	"compress/gzip"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ppc/internal/shared"
	"ppc/ir"
	"ppc/ir/eval"
	"ppc/passes"
	"ppc/runtime"
)

// An elementaryRow is one line of the table that tools/elementary.py makes: an
// op, its operands and its result, to which no float64 is nearer. Of complex
// numbers, both parts.
type elementaryRow struct{ operands, want []float64 }

// elementaryTable is the rows of each op, real and complex ones apart.
func elementaryTable(t *testing.T) map[string][]elementaryRow {
	t.Helper()
	f, err := os.Open(filepath.Join(shared.Root(t), "testdata", "elementary", "table.tsv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	table := make(map[string][]elementaryRow)
	for line := range strings.Lines(string(text)) {
		words := strings.Split(strings.TrimSpace(line), "\t")
		var numbers []float64
		for _, w := range words[1:] {
			v, err := strconv.ParseFloat(w, 64)
			if err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, v)
		}
		name, n := words[0], 1
		if name == "stablehlo.atan2" {
			n = 2
		}
		if len(numbers) == 4 {
			name, n = name+" complex", 2
		}
		table[name] = append(table[name], elementaryRow{numbers[:n], numbers[n:]})
	}
	return table
}

// Elementary functions are good to a few units in the last place wherever
// numbers are at an edge, in both evaluators, and where they are made of other
// ops; zeros and infinities have their sign.
func TestElementary(t *testing.T) {
	for name, rows := range elementaryTable(t) {
		t.Run(name, func(t *testing.T) {
			op, complex := strings.CutSuffix(name, " complex")
			elem, operands := ir.F64, 1
			switch {
			case complex:
				elem = ir.C128
			case op == "stablehlo.atan2":
				operands = 2
			}
			typ := ir.Tensor(elem, len(rows))
			f := ir.NewFunc("main")
			b := ir.NewBuilder(f)
			var in []*ir.Value
			args := make([]*ir.Literal, operands)
			for i := range args {
				in = append(in, f.NewArg(f.Body, typ, ""))
				var data []float64
				for _, r := range rows {
					if complex {
						data = append(data, r.operands...)
					} else {
						data = append(data, r.operands[i])
					}
				}
				args[i] = &ir.Literal{Type: typ, Data: ir.Floats64(ir.Tensor(ir.F64, len(data)), data...).Data}
			}
			kind := ir.KindByName(op)
			b.Return(b.Emit(kind, in, nil, nil, nil).Result())
			m := &ir.Module{Name: "elementary", Funcs: []*ir.Func{f}}
			want, err := eval.Run(m, f, args, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			absolute := 0.0
			if kind == ir.Lgamma || kind == ir.Digamma { // have zeros that are no float64
				absolute = 4e-15
			}
			checkElementary(t, "the evaluator", rows, want[0], 32, absolute) // math.Sin of the largest number is off by 25
			ulps := 32.0
			if kind.Has(ir.Composite) { // polynomials and sums
				ulps = 1 << 12
			}
			if err := passes.Run(m, passes.Config{}); err != nil {
				if kind.Has(ir.Composite) && complex {
					return // not made of other ops
				}
				t.Fatal(err)
			}
			exe, err := runtime.Load(m)
			if err != nil {
				t.Fatal(err)
			}
			got, err := exe.Run(t.Context(), [][]*ir.Literal{args})
			if err != nil {
				t.Fatal(err)
			}
			checkElementary(t, "the runtime", rows, got[0][0], ulps, absolute)
		})
	}
}

// checkElementary demands that each result is as good as said, in units in the
// last place of what is wanted, or absolutely.
func checkElementary(t *testing.T, who string, rows []elementaryRow, got *ir.Literal, ulps, absolute float64) {
	t.Helper()
	bad := 0
	for i, r := range rows {
		have := []float64{got.Float(i)}
		if len(r.want) == 2 {
			have = []float64{real(got.Complex(i)), imag(got.Complex(i))}
		}
		size := 0.0
		for _, w := range r.want {
			size = max(size, math.Abs(w))
		}
		unit := math.Nextafter(size, math.Inf(1)) - size
		for k, w := range r.want {
			h := have[k]
			ok := math.Abs(h-w) <= absolute || h == w && math.Signbit(h) == math.Signbit(w) || math.Abs(h-w) <= ulps*unit && !math.IsInf(w, 0)
			if math.IsInf(size, 0) && !math.IsInf(w, 0) { // beside an infinity
				ok = true
			}
			if !ok {
				if bad++; bad < 6 {
					t.Errorf("%s: of %v: %v, want %v (%.3g units)", who, r.operands, have, r.want, math.Abs(h-w)/unit)
				}
			}
		}
	}
	if bad >= 6 {
		t.Errorf("%s: %d of %d are wrong", who, bad, len(rows))
	}
}
