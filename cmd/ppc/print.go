package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"

	"ppc/driver"
	"ppc/internal/diag"
)

// print writes text to a file, or to standard output where none is named.
func (s *streams) print(file, text string) error {
	if file == "" {
		_, err := s.stdout.WriteString(text)
		return err
	}
	return driver.WriteFile(s.ctx, file, []byte(text))
}

// quote is text for a terminal. Names on the command line stay on their line.
func (s *streams) quote(text string) string {
	for _, arg := range s.args {
		_, value, _ := strings.Cut(arg, "=")
		for _, name := range []string{arg, value} {
			if strings.ContainsAny(name, "\n\t") {
				text = strings.ReplaceAll(text, name, diag.Line(name))
			}
		}
	}
	return diag.Printable(text)
}

// note writes a remark.
func (s *streams) note(text string) { fmt.Fprintf(s.stderr, "note: %s\n", s.quote(text)) }

// errDiffers is said by the diff.
var errDiffers = errors.New("")

// report writes an error.
func (s *streams) report(err error) {
	text := strings.TrimSpace(err.Error())
	if text == "" {
		return
	}
	var use *driver.UsageError
	if errors.As(err, &use) {
		text = "ppc: " + text
	}
	fmt.Fprintln(s.stderr, paint(s.quote(text), colours(s.stderr.w)))
	var bug *driver.Bug
	if errors.As(err, &bug) {
		fmt.Fprintf(s.stderr, "\n%s", diag.Printable(string(bug.Stack)))
	}
}

// warn writes a warning.
func (s *streams) warn(w *driver.Warning) { fmt.Fprint(s.stderr, s.quote(w.String())) }

// failures collects the errors of several files.
type failures []error

func (f *failures) add(err error) {
	if err != nil {
		*f = append(*f, err)
	}
}

func (f failures) err() error { return errors.Join(f...) }

// colours reports whether w is a terminal that wants colour.
func colours(w any) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && terminal(w)
}

func terminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

const (
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	plain = "\x1b[0m"
)

// paint makes the first line of each error bold and its mark red.
func paint(text string, colour bool) string {
	if !colour {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch mark := strings.TrimLeft(line, " \t"); {
		case line == mark:
			lines[i] = bold + line + plain
		case strings.HasPrefix(mark, "^"):
			lines[i] = red + line + plain
		}
	}
	return strings.Join(lines, "\n")
}

// ofCores is a cell of the seconds of all cores, where they are known.
func ofCores(format string, s float64) string {
	if s == 0 {
		return ""
	}
	return fmt.Sprintf("\t"+format+" s of all cores", s)
}

// benchText prints what was measured.
func (s *streams) benchText(r *driver.BenchResult) {
	w := tabwriter.NewWriter(s.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "compile\t%.3f s\n", r.CompileSec)
	if r.Engine != "" {
		fmt.Fprintf(w, "engine's own\t%.3f s%s\n", r.EngineSec, ofCores("%.3f", r.EngineCPUSec))
		fmt.Fprintf(w, "step\t%.4f s min\t%.4f s median%s\n", r.StepMin, r.StepMedian, ofCores("%.4f", r.CPUSec))
		fmt.Fprintf(w, "memory\t%.1f MiB per device beside arguments\n", mib(float64(r.TempBytes)))
		w.Flush()
		return
	}
	fmt.Fprintf(w, "step\t%.4f s min\t%.4f s median\t%.4f s of all cores\n", r.StepMin, r.StepMedian, r.CPUSec)
	fmt.Fprintf(w, "speed\t%.1f GFLOP/s\t%.1f at most\t%.0f %%\n", r.GFlops, r.PeakGFlops, 100*r.GFlops/r.PeakGFlops)
	fmt.Fprintf(w, "memory\t%.1f MiB per device beside arguments\t%.1f planned\t%.1f moved\n", mib(float64(r.TempBytes)), mib(float64(r.PlanBytes)), mib(r.BytesMoved))
	w.Flush()
	fmt.Fprintf(s.stdout, "\n%-32s %9s %10s %10s\n", "op", "times", "s", "MiB")
	for _, o := range r.Ops {
		fmt.Fprintf(s.stdout, "%-32s %9d %10.4f %10.1f\n", diag.Line(o.Op), o.Times, o.Sec, mib(o.Bytes))
	}
	fmt.Fprintf(s.stdout, "\n%-32s %10s\n", "pass", "s")
	for _, p := range r.Passes {
		fmt.Fprintf(s.stdout, "%-32s %10.4f\n", p.Pass, p.Sec)
	}
}

func mib(n float64) float64 { return n / (1 << 20) }

// textResult prints one line per output and one per comparison.
func (s *streams) textResult(r *driver.RunResult) {
	w := tabwriter.NewWriter(s.stdout, 0, 8, 2, ' ', 0)
	for _, o := range r.Outputs {
		if o.Scalar() {
			fmt.Fprintf(w, "%s\t%s\n", diag.Line(o.Name), o.Value)
			continue
		}
		if o.Empty() {
			fmt.Fprintf(w, "%s\t%s\tno elements\n", diag.Line(o.Name), o.Type())
			continue
		}
		format := "%s\t%s\tmin %.6g\tmean %.6g\tmax %.6g"
		if o.Integer() {
			format = "%s\t%s\tmin %.0f\tmean %.6g\tmax %.0f"
		}
		fmt.Fprintf(w, format, diag.Line(o.Name), o.Type(), o.Min, o.Mean, o.Max)
		if o.NaNs > 0 {
			fmt.Fprintf(w, "\t%d NaN", o.NaNs)
		}
		fmt.Fprintln(w)
	}
	for _, c := range r.Checks {
		verdict := "ok"
		switch {
		case !c.OK:
			verdict = "differs"
		case c.Lost():
			verdict = "lost to rounding"
		}
		fmt.Fprintf(w, "check %s\tabs %.3g\trel %.3g\ttolerance %.3g\t%s\n", diag.Line(c.Name), c.MaxAbs, c.Rel, c.Tolerance, verdict)
	}
	w.Flush()
}

// json prints v as one line of JSON. What no terminal should obey stands only in
// strings, where JSON can escape it.
func (s *streams) json(v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // names, numbers and their text
	}
	for _, r := range b.String() {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			s.stdout.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(s.stdout, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(s.stdout, `\u%04x`, r)
		}
	}
}

// A number is a float64 that JSON can say: what is no number is a string.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return json.Marshal(fmt.Sprint(v))
	}
	return json.Marshal(v)
}

// jsonValue is the value of a scalar: a number or a truth value where JSON can
// say it, its text otherwise; nil of a tensor.
func jsonValue(o *driver.Output) any {
	switch {
	case !o.Scalar():
		return nil
	case json.Valid([]byte(o.Value)):
		return json.RawMessage(o.Value)
	}
	return o.Value
}

// jsonResult prints one object per output and one per comparison.
func (s *streams) jsonResult(r *driver.RunResult) {
	for _, o := range r.Outputs {
		s.json(struct {
			Output string `json:"output"`
			Type   string `json:"type"`
			Shape  []int  `json:"shape"`
			Value  any    `json:"value,omitempty"`
			Min    number `json:"min"`
			Mean   number `json:"mean"`
			Max    number `json:"max"`
			NaNs   int    `json:"nans"`
		}{o.Name, o.DType, append([]int{}, o.Shape...), jsonValue(o), number(o.Min), number(o.Mean), number(o.Max), o.NaNs})
	}
	for _, c := range r.Checks {
		s.json(struct {
			Check     string `json:"check"`
			MaxAbs    number `json:"max_abs"`
			Rel       number `json:"rel"`
			Tolerance number `json:"tolerance"`
			OK        bool   `json:"ok"`
			Lost      bool   `json:"lost,omitempty"`
			Worst     string `json:"worst,omitempty"`
		}{c.Name, number(c.MaxAbs), number(c.Rel), number(c.Tolerance), c.OK, c.Lost(), c.Worst})
	}
}

// jsonStep prints one object for a step of training.
func (s *streams) jsonStep(step *driver.Step) {
	values := make(map[string]any)
	for _, o := range step.Outputs {
		values[o.Name] = jsonValue(o)
	}
	s.json(struct {
		Step   int            `json:"step"`
		Values map[string]any `json:"values"`
		MS     number         `json:"ms"`
		Speed  number         `json:"tokens_per_second"`
		Left   int            `json:"steps_left"`
	}{step.Number, values, number(milliseconds(step)), number(step.TokensPerSecond()), step.Left})
	s.stdout.Flush()
}

func milliseconds(s *driver.Step) float64 { return float64(s.Took.Microseconds()) / 1000 }

// stepLine is a step of training for people.
func stepLine(s *driver.Step) string {
	return fmt.Sprintf("step %d  %s %s  %.0f ms  %.0f tokens/s", s.Number, diag.Line(s.Loss().Name), s.Loss().Value, milliseconds(s), s.TokensPerSecond())
}

// step shows a step of training: one line that is written over on a terminal, one
// line for each step elsewhere.
func (s *streams) step(step *driver.Step) {
	if s.stderr.status == nil {
		fmt.Fprintln(s.stderr, stepLine(step))
		return
	}
	s.stderr.status.keep(stepLine(step))
}

// errFound is said by the findings.
var errFound = errors.New("")

// findings prints one line per finding, or one object.
func (s *streams) findings(found []*driver.Finding, asJSON bool) {
	for _, f := range found {
		if !asJSON {
			fmt.Fprintln(s.stdout, s.quote(f.String()))
			continue
		}
		row := findingRow{Lint: f.Lint, Severity: f.Severity.String(), File: f.Pos.File, Line: f.Pos.Line, Col: f.Pos.Col, Source: driver.PlaceText(f.Source),
			Name: f.Name, Layer: f.Layer, Op: f.Op, Loop: f.Loop, Axes: f.Axes, Bytes: f.Bytes, Message: f.Msg}
		if n := int(f.Executions); n >= 0 {
			row.Executions = &n
		}
		s.json(row)
	}
}

type findingRow struct {
	Lint       string `json:"lint"`
	Severity   string `json:"severity"`
	File       string `json:"file"`
	Line       int    `json:"line"`
	Col        int    `json:"col"`
	Source     string `json:"source"`
	Name       string `json:"name"`
	Layer      string `json:"layer"`
	Op         string `json:"op"`
	Loop       string `json:"in"`
	Axes       string `json:"axes"`
	Bytes      int    `json:"bytes"`
	Executions *int   `json:"executions"`
	Message    string `json:"message"`
}

// lintTable prints one line per lint.
func (s *streams) lintTable(rows []driver.LintInfo) {
	w := tabwriter.NewWriter(s.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "LINT\tFINDS")
	for _, l := range rows {
		fmt.Fprintf(w, "%s\t%s\n", l.Name, l.Doc)
	}
	w.Flush()
}

// passTable prints one line per pass.
func (s *streams) passTable(rows []driver.PassInfo) {
	w := tabwriter.NewWriter(s.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "PASS\tREQUIRES\tENSURES\t")
	for _, p := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Name, p.Requires, p.Ensures, p.Doc)
	}
	w.Flush()
}

// enginesText is a table of engines, and why one cannot be used.
func (s *streams) enginesText(engines []driver.Engine) {
	w := tabwriter.NewWriter(s.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ENGINE\tDEVICES\tVERSION\tPATH")
	for _, e := range engines {
		devices := "as many as asked for"
		switch {
		case e.Unusable != "":
			devices = "none"
		case e.Devices > 0:
			devices = fmt.Sprintf("%d %s", e.Devices, e.Kind)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", e.Name, devices, e.Version, diag.Line(e.Path))
		if e.Unusable != "" {
			fmt.Fprintf(w, "\tunusable: %s\t\t\n", diag.Line(e.Unusable))
		}
	}
	w.Flush()
}

// aheadText is what a compiler says of a program.
func (s *streams) aheadText(r *driver.AheadResult) {
	w := tabwriter.NewWriter(s.stdout, 0, 8, 2, ' ', 0)
	devices := strconv.Itoa(r.Devices)
	if r.Devices < r.Available {
		devices = fmt.Sprintf("%d of %d", r.Devices, r.Available)
	}
	fmt.Fprintf(w, "%s\t%s devices\tcompiled in %.1f s\n", r.Topology, devices, r.CompileSec)
	for _, row := range []struct {
		name  string
		bytes int64
	}{{"arguments", r.Arguments}, {"temporaries", r.Temporaries}, {"outputs", r.Outputs}, {"of them in place of arguments", r.Aliases}, {"code", r.Code}} {
		fmt.Fprintf(w, "%s\t%.2f GB\t%d bytes per device\n", row.name, float64(row.bytes)/1e9, row.bytes)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Collectives)) {
		fmt.Fprintf(w, "%s\t%d\t\n", kind, r.Collectives[kind])
	}
	fmt.Fprintf(w, "loops\t%d\t\n", r.Whiles)
	w.Flush()
}
