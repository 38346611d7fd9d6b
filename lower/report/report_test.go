package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"ppc/internal/shared"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/mlir"
	"ppc/lower/flow"
	"ppc/lower/lint"
	"ppc/lower/report"
	"ppc/lower/stats"
	"ppc/passes"
	"ppc/passes/pass"
	"ppc/runtime"
)

// compiled is the facts of an example under settings, and its per-device program.
func compiled(t testing.TB, example string, set ...string) (*report.Facts, *ir.Module) {
	t.Helper()
	read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(shared.Root(t), name)) }
	p, err := lang.Load("examples/"+example+".pp", lang.Options{Set: set, Train: true, ReadFile: read})
	if err != nil {
		t.Fatal(err)
	}
	return factsOf(t, p.Module, "examples/"+example+".pp", set), p.Module
}

// factsOf lowers m and measures it.
func factsOf(t testing.TB, m *ir.Module, name string, set []string) *report.Facts {
	t.Helper()
	schedules, passed := report.Before(m), lint.Before(m)
	if !m.Form.Has(ir.Local) {
		if err := passes.Run(m, passes.Config{Warn: func(w *pass.Error) { passed.Warn(w) }}); err != nil {
			t.Fatal(err)
		}
	}
	found, err := lint.Of(m, passed)
	if err != nil {
		t.Fatal(err)
	}
	f, err := report.Of(m, name, set, schedules, found)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// small is configurations that run in a moment.
var small = []struct {
	example string
	set     []string
}{
	{"llama", []string{"axes.seq=16"}},
	{"llama", []string{"axes.seq=16", "pipeline.gather=per_repeat"}},
	{"llama", []string{"axes.seq=16", "pipeline.delay=2"}},
	{"llama_window", []string{"axes.seq=16"}},
	{"llama_gpipe", []string{"axes.seq=16"}},
	{"llama_moe", []string{"axes.seq=16"}},
	{"llama_tp", []string{"axes.seq=16"}},
	{"maxtext/train_mixtral", nil},
}

// Every figure of a report follows from the program.
func TestPrograms(t *testing.T) {
	for _, c := range small {
		t.Run(fmt.Sprint(c.example, c.set), func(t *testing.T) {
			f, m := compiled(t, c.example, c.set...)
			t.Run("schedule", func(t *testing.T) { iterates(t, f) })
			t.Run("counts", func(t *testing.T) { executes(t, f, m) })
			t.Run("memory", func(t *testing.T) { holds(t, f, m) })
			t.Run("page", func(t *testing.T) { says(t, f) })
		})
	}
}

// iterates demands that the grid is as long as the loops over iterations are,
// and the same backward.
func iterates(t *testing.T, f *report.Facts) {
	trips := make(map[string]int)
	forward, backward := 0, 0
	for _, l := range f.Loops {
		trips[l.Name] = *l.Trips
		last := l.Name[strings.LastIndex(l.Name, "/")+1:]
		n := *l.Trips
		if i := strings.LastIndex(l.Name, "/"); i >= 0 {
			n *= trips[l.Name[:i]]
		}
		switch last, _, _ = strings.Cut(last, "."); last {
		case "iterations":
			forward += n
		case "backward iterations":
			backward += n
		}
	}
	if want := f.Schedules[0].Iterations; forward != want || backward != want {
		t.Errorf("the grid has %d iterations, the loops %d forward and %d backward", want, forward, backward)
	}
}

// executes demands that counts are what the devices do: every collective as often
// as the runtime counts it, every gather of a weight among them.
func executes(t *testing.T, f *report.Facts, m *ir.Module) {
	trace := run(t, m)
	kinds := make(map[string]int)
	gathers := make(map[string]int)
	for _, x := range trace.Collectives {
		kinds[strings.TrimPrefix(x.Op.Name(), "stablehlo.")] += slices.Max(x.Times)
		if x.Op.Kind == ir.AllGather {
			gathers[stats.NameOf(x.Op)] += slices.Max(x.Times)
		}
	}
	for _, x := range f.Collectives {
		kinds[x.Kind] -= *x.Executions
	}
	for kind, n := range kinds {
		if n != 0 {
			t.Errorf("%s: a device executes %d more than the report says", kind, n)
		}
	}
	weights := make(map[string]int)
	for _, x := range f.Gathers {
		weights[x.Weight] += *x.Executions
	}
	for w, n := range weights {
		if strings.HasPrefix(w, "decoder.") && gathers[w] != n {
			t.Errorf("%s is gathered %d times, the report says %d", w, gathers[w], n)
		}
	}
}

// run executes a program once on zeros.
func run(t *testing.T, m *ir.Module) *runtime.Trace {
	t.Helper()
	exe, err := runtime.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	var zeros []*ir.Literal
	for _, p := range m.Main().Params() {
		zeros = append(zeros, &ir.Literal{Type: p.Type, Data: make([]byte, p.Type.Bytes())})
	}
	trace := new(runtime.Trace)
	if _, err := exe.Run(t.Context(), slices.Repeat([][]*ir.Literal{zeros}, exe.Devices()), runtime.WithTrace(trace)); err != nil {
		t.Fatal(err)
	}
	return trace
}

// holds demands that the memory is that of the plan, that owners and buffers make
// it up, and that the profile's highest point is the peak.
func holds(t *testing.T, f *report.Facts, m *ir.Module) {
	s, err := stats.Of(m)
	if err != nil {
		t.Fatal(err)
	}
	mem := &f.Memory
	owners, held, most := 0, mem.Rest, 0
	for _, o := range mem.Owners {
		owners += o.Bytes
	}
	for _, h := range mem.Holdings {
		held += h.Bytes
	}
	for _, p := range mem.Profile {
		most = max(most, p.Bytes)
		sum := 0
		for _, n := range p.Parts {
			sum += n
		}
		if sum != p.Bytes {
			t.Errorf("op %d: %d bytes, in parts %d", p.Number, p.Bytes, sum)
		}
	}
	if want := s.Memory.Peak; mem.Peak != want || owners != want || held != want || most != want {
		t.Errorf("peak %d, by owner %d, by buffer %d, in the plot %d, want %d", mem.Peak, owners, held, most, want)
	}
}

// What loops hold, save and carry is what the statistics of the program say, and
// the window of weights has as many copies as there are repeats at a time.
func TestLoopsOfProgram(t *testing.T) {
	f, m := compiled(t, "llama_window", "axes.seq=16")
	s, err := stats.Of(m)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range s.Loops {
		if x := f.Loops[i]; x.Name != l.Name || flow.Count(*x.Trips) != l.Trips || len(x.Carries) != len(l.Carries) || len(x.Closures) != len(l.Invariants) {
			t.Errorf("loop %d: %s with %d carries, %d closures, want %s with %d, %d", i, x.Name, len(x.Carries), len(x.Closures), l.Name, len(l.Carries), len(l.Invariants))
		}
	}
	for i, r := range s.Residuals {
		if x := f.Residuals[i]; x.Name != r.Name || x.Bytes != r.Bytes || x.Why != r.Why || x.Origin == "" {
			t.Errorf("residual %d: %v, want %s of %d bytes, %s", i, x, r.Name, r.Bytes, r.Why)
		}
	}
	var copies []string
	for _, w := range f.Windows {
		if w.Weight == "decoder.wq" && !strings.Contains(w.Loop, "backward") {
			copies = append(copies, fmt.Sprintf("%s %d %s", w.Loop, w.Copies, w.Type))
		}
	}
	want := []string{"iterations 1 f32[1,64,4,16]", "repeats 1 f32[1,64,4,16]", "repeats/iterations 1 f32[1,64,4,16]", "repeats/iterations.2 2 f32[1,64,4,16]", "iterations.2 1 f32[1,64,4,16]"}
	if !slices.Equal(copies, want) {
		t.Errorf("decoder.wq is held\n%s\nwant\n%s", strings.Join(copies, "\n"), strings.Join(want, "\n"))
	}
}

// says demands that the page says what JSON says: made of what JSON gives back it
// is the same page, and every name and number of the JSON stands in a cell of it.
func says(t *testing.T, f *report.Facts) {
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	back := new(report.Facts)
	if err := json.Unmarshal(data, back); err != nil {
		t.Fatal(err)
	}
	page := report.HTML([]*report.Facts{f})
	if report.HTML([]*report.Facts{back}) != page || report.Text([]*report.Facts{back}, false) != report.Text([]*report.Facts{f}, false) {
		t.Error("JSON does not give all that is printed")
	}
	missing(t, data, read(t, page))
}

// missing reports the leaves of JSON that no cell of a page has.
func missing(t *testing.T, data []byte, page *page) {
	t.Helper()
	var tree any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		text := ""
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(path+"."+k, x)
			}
		case []any:
			for _, x := range v {
				walk(path, x)
			}
		case string:
			text = v
		case json.Number:
			text = v.String()
		}
		if text == "" || page.cells[text] || strings.HasPrefix(path, ".schedules.grid") && strings.Contains(page.text, text) {
			return
		}
		if !strings.Contains(page.text, text) {
			t.Errorf("%s = %q stands nowhere on the page", path, text)
		}
	}
	walk("", tree)
}

// A page is what a reader finds in HTML.
type page struct {
	cells map[string]bool // texts of cells and what data elements stand for
	tags  map[string]int
	text  string
	attrs []string // name=value
}

// read parses a page, which is well formed.
func read(t testing.TB, src string) *page {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(src))
	d.Entity = xml.HTMLEntity
	p := &page{cells: make(map[string]bool), tags: make(map[string]int)}
	var all, cell strings.Builder
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			p.tags[x.Name.Local]++
			for _, a := range x.Attr {
				p.attrs = append(p.attrs, a.Name.Local+"="+a.Value)
				if x.Name.Local == "data" {
					p.cells[a.Value] = true
				}
			}
			cell.Reset()
		case xml.CharData:
			all.Write(x)
			cell.Write(x)
		case xml.EndElement:
			p.cells[cell.String()] = true
			all.WriteByte('\n')
		}
	}
	p.text = all.String()
	return p
}

// Names that are markup, quotes, control characters or a megabyte long are text.
func TestHostileNames(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	src := fmt.Sprintf(`module @"<script>alert(1)</script>" {
  sdy.mesh @mesh = <["<b>\"'&"=2]>
  func.func @main(%%x: tensor<4xf32> {pp.kind = "param", pp.name = "</td><script>alert(2)</script>"}, %%y: tensor<4xf32> {pp.kind = "param", pp.name = "%s"}) -> tensor<8xf32> {
    %%z = stablehlo.add %%x, %%y : tensor<4xf32>
    %%w = "stablehlo.all_gather"(%%y) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "<b>\"'&">]>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
    return %%w : tensor<8xf32>
  }
}`, long)
	m, err := mlir.Parse("x.mlir", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	m.Form |= ir.Expanded | ir.Local
	name := "\x1b[2J<img src=x onerror=alert(3)>\u202e\".mlir" + long
	f := factsOf(t, m, name, []string{"a.b=<script>"})
	html, text := report.HTML([]*report.Facts{f, f}), report.Text([]*report.Facts{f, f}, false)
	if len(html) > 1<<20 || len(text) > 1<<20 {
		t.Errorf("the page has %d bytes, the text %d", len(html), len(text))
	}
	for _, out := range []string{html, text} {
		if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q is no printable character", out[i:i+1])
		}
	}
	p := read(t, html)
	for _, tag := range []string{"script", "img", "b", "link", "iframe"} {
		if p.tags[tag] > 0 {
			t.Errorf("a name has become a %s element", tag)
		}
	}
	for _, want := range []string{"</td><script>alert(2)</script>", `<b>"'&`, "<img src=x onerror=alert(3)>", "(1048576 characters)", "a.b=<script>"} {
		if !strings.Contains(p.text, want) {
			t.Errorf("%q is not in the text of the page", want)
		}
	}
}

// A page needs nothing beside itself: no address, no script, and whoever does not
// see a plot has a table and a description of it.
func TestSelfContained(t *testing.T) {
	f, _ := compiled(t, "llama_window", "axes.seq=16")
	p := read(t, report.HTML([]*report.Facts{f}))
	for _, a := range p.attrs {
		name, value, _ := strings.Cut(a, "=")
		if slices.Contains([]string{"src", "href", "action", "data"}, name) && !strings.HasPrefix(value, "#") || strings.HasPrefix(name, "on") {
			t.Errorf("the page has %s", a)
		}
	}
	if p.tags["svg"] != 3 {
		t.Errorf("%d plots, want the grid, the memory and the collectives", p.tags["svg"])
	}
	labels := 0
	for _, a := range p.attrs {
		if strings.HasPrefix(a, "aria-label=") && strings.Contains(a, "table") {
			labels++
		}
	}
	if labels < p.tags["svg"] {
		t.Errorf("%d descriptions for %d plots", labels, p.tags["svg"])
	}
}

// The report of a model at full size on 16,384 devices is small and takes less than
// two seconds, the best of three times, and devices are told by the axes of the mesh.
func TestFullSize(t *testing.T) {
	full := []string{"mesh.stage=4", "mesh.fsdp=4096", "axes.batch=2097152", "axes.layers=61", "pipeline.layers=60", "pipeline.repeats=15", "pipeline.microbatches=512"}
	var f *report.Facts
	page, took := "", time.Hour
	for range 3 {
		began := time.Now()
		f, _ = compiled(t, "llama2_7b", full...)
		page = report.HTML([]*report.Facts{f})
		if took = min(took, time.Since(began)); took < 2*time.Second {
			break
		}
	}
	if took > 2*time.Second {
		t.Errorf("the report takes %v", took)
	}
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(page) > 3<<20 || len(data) > 3<<20 {
		t.Errorf("the page has %d bytes, JSON %d", len(page), len(data))
	}
	s := f.Schedules[0]
	if f.Devices != 16384 || s.Layers != 60 || s.Iterations != 512*15+3 || s.Bubbles != 4*3 {
		t.Errorf("%d devices, %d layers, %d iterations, %d bubbles", f.Devices, s.Layers, s.Iterations, s.Bubbles)
	}
	if !read(t, page).cells[strconv.Itoa(f.Devices)] {
		t.Error("the page does not say how many devices there are")
	}
}
