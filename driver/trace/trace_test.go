package trace_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"ppc/driver/trace"
	"ppc/internal/paired"
	"ppc/internal/shared"
	"ppc/ir"
	"ppc/ir/facts"
	"ppc/ir/lang"
	"ppc/ir/mlir"
	"ppc/passes"
	"ppc/runtime"
)

// An event is an object of a trace.
type event struct {
	Name string
	Cat  string
	Ph   string
	PID  int
	TID  int
	TS   float64
	Dur  float64
	Args map[string]any
}

func (e *event) end() float64 { return e.TS + e.Dur }

// program is an example: how it was read, its per-device program, arguments for it
// and the schedule of its pipeline.
func program(t testing.TB, example string, set ...string) (*trace.Recording, *runtime.Executable, [][]*ir.Literal, facts.Schedule) {
	t.Helper()
	read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(shared.Root(t), name)) }
	p, err := lang.Load("examples/"+example+".pp", lang.Options{Set: set, Train: true, ReadFile: read})
	if err != nil {
		t.Fatal(err)
	}
	var schedule facts.Schedule
	p.Module.Main().Body.Walk(func(op *ir.Op) {
		if d, ok := op.Attrs.Get("config").(ir.Dict); ok && op.Kind == ir.PPPipeline {
			schedule = facts.ReadConfig(d).Schedule
		}
	})
	r := trace.New(p.Module)
	if err := passes.Run(p.Module, passes.Config{}); err != nil {
		t.Fatal(err)
	}
	exe, err := runtime.Load(p.Module)
	if err != nil {
		t.Fatal(err)
	}
	var zeros []*ir.Literal
	for _, p := range p.Module.Main().Params() {
		zeros = append(zeros, &ir.Literal{Type: p.Type, Data: make([]byte, p.Type.Bytes())})
	}
	return r, exe, slices.Repeat([][]*ir.Literal{zeros}, exe.Devices()), schedule
}

// traced runs exe twice and reads the trace.
func traced(t *testing.T, r *trace.Recording, exe *runtime.Executable, args [][]*ir.Literal) []event {
	t.Helper()
	for range 2 {
		if _, err := r.Run(t.Context(), exe, args); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	var file struct{ TraceEvents []event }
	if err := json.Unmarshal(b.Bytes(), &file); err != nil {
		t.Fatal(err)
	}
	return file.TraceEvents
}

// A trace has each step's every op on the track of its device, inside of the
// iteration of the pipeline that it belongs to, and that says what the schedule says.
func TestTrace(t *testing.T) {
	for _, c := range []struct {
		example string
		set     []string
	}{
		{"llama", []string{"axes.seq=16"}},
		{"llama_window", []string{"axes.seq=16", "pipeline.microbatches=4"}},
		{"llama_gpipe", []string{"axes.seq=16", "mesh.fsdp=1", "pipeline.delay=2"}},
		{"llama", []string{"axes.seq=16", "mesh.fsdp=1", "pipeline.microbatches=4", "pipeline.skip_bubbles=true"}},
	} {
		t.Run(fmt.Sprint(c.example, c.set), func(t *testing.T) {
			r, exe, args, schedule := program(t, c.example, c.set...)
			events := traced(t, r, exe, args)
			counts := new(runtime.Trace)
			if _, err := exe.Run(t.Context(), args, runtime.WithTrace(counts)); err != nil {
				t.Fatal(err)
			}
			names := make(map[string]int)
			for _, e := range events {
				if e.Name == "thread_name" {
					names[e.Args["name"].(string)]++
				}
			}
			for d := range exe.Devices() {
				own := ofDevice(events, d)
				nests(t, own)
				stage := stageOf(t, names, d)
				iterations(t, own, schedule, stage)
				collectives(t, own, counts, d)
			}
			meetings(t, events, counts)
		})
	}
}

func ofDevice(events []event, d int) []event {
	var out []event
	for _, e := range events {
		if e.Ph == "X" && e.PID == 1 && e.TID == d+1 {
			out = append(out, e)
		}
	}
	return out
}

// nests demands that of two slices of a track one contains the other, or neither
// any of it.
func nests(t *testing.T, events []event) {
	t.Helper()
	sorted := slices.Clone(events)
	slices.SortStableFunc(sorted, func(a, b event) int {
		switch {
		case a.TS != b.TS:
			if a.TS < b.TS {
				return -1
			}
			return 1
		case a.Dur != b.Dur:
			if a.Dur > b.Dur {
				return -1
			}
			return 1
		}
		return 0
	})
	const rounding = 0.0015
	var stack []event
	for _, e := range sorted {
		for len(stack) > 0 && stack[len(stack)-1].end() <= e.TS+rounding {
			stack = stack[:len(stack)-1]
		}
		if n := len(stack); n > 0 && e.end() > stack[n-1].end()+rounding {
			t.Fatalf("%s (%g to %g) begins in %s (%g to %g) and ends after it", e.Name, e.TS, e.end(), stack[n-1].Name, stack[n-1].TS, stack[n-1].end())
		}
		stack = append(stack, e)
	}
}

// stageOf is the stage in the name of a device's track.
func stageOf(t *testing.T, names map[string]int, d int) int {
	t.Helper()
	for name := range names {
		var device, stage int
		if n, _ := fmt.Sscanf(name, "device %d: stage %d", &device, &stage); n == 2 && device == d {
			return stage
		}
	}
	t.Fatalf("no track is called after device %d", d)
	return 0
}

// iterations demands one slice for every iteration of both passes and steps, which
// says what the stage does in it.
func iterations(t *testing.T, events []event, s facts.Schedule, stage int) {
	t.Helper()
	seen := make(map[string]int)
	next := map[bool]int{false: 0, true: s.Iterations() - 1} // by direction
	for _, e := range events {
		if e.Cat != "microbatch" && e.Cat != "bubble" {
			continue
		}
		at, backward := int(e.Args["iteration"].(float64)), strings.HasPrefix(e.Name, "backward ")
		if at != next[backward] {
			t.Errorf("stage %d: iteration %d where %d is next, backward = %v", stage, at, next[backward], backward)
		}
		if next[backward] = (at + 1) % s.Iterations(); backward {
			next[backward] = (at - 1 + s.Iterations()) % s.Iterations()
		}
		micro, repeat, work := s.At(stage, at)
		want := fmt.Sprintf("microbatch %d, repeat %d", micro, repeat)
		if !work {
			want = fmt.Sprintf("bubble, iteration %d", at)
		}
		if strings.TrimPrefix(e.Name, "backward ") != want {
			t.Errorf("stage %d, iteration %d: %q, want %q", stage, at, e.Name, want)
		}
		seen[fmt.Sprint(backward, at)]++
	}
	if len(seen) != 2*s.Iterations() {
		t.Errorf("stage %d: %d iterations, want %d forward and as many backward", stage, len(seen), s.Iterations())
	}
	for at, n := range seen {
		if n != 2 {
			t.Errorf("stage %d: backward and iteration %s %d times, want one in each of 2 steps", stage, at, n)
		}
	}
}

// collectives demands that a device is at each kind as often as the runtime counts,
// and that every wait is inside of one and says on whom.
func collectives(t *testing.T, events []event, counts *runtime.Trace, d int) {
	t.Helper()
	want := make(map[string]int)
	for _, c := range counts.Collectives {
		want[strings.TrimPrefix(c.Op.Name(), "stablehlo.")] += 2 * c.Times[d]
	}
	var met []event
	for _, e := range events {
		if _, collective := want[e.Cat]; collective {
			want[e.Cat]--
			met = append(met, e)
		}
	}
	for _, e := range events {
		if e.Cat != "wait" {
			continue
		}
		if on, other := e.Args["on"].(float64); other && int(on) == d {
			t.Errorf("device %d waits for itself", d)
		}
		inside := slices.ContainsFunc(met, func(o event) bool {
			return o.TS <= e.TS+0.0015 && e.end() <= o.end()+0.0015
		})
		if !inside {
			t.Errorf("device %d waits outside of a collective: %s at %g", d, e.Name, e.TS)
		}
	}
	for kind, n := range want {
		if n != 0 {
			t.Errorf("device %d: %s %d times more than in the trace", d, kind, n)
		}
	}
}

// meetings demands that every group has one slice for each time that it met.
func meetings(t *testing.T, events []event, counts *runtime.Trace) {
	t.Helper()
	want := 0
	for _, c := range counts.Collectives {
		if c.Op.Kind == ir.CollectivePermute {
			continue
		}
		for d, times := range c.Times {
			if c.Meets[d] > 1 {
				want += 2 * times * 5040 / c.Meets[d] // 5040: divisible by sizes of groups
			}
		}
	}
	have := 0
	for _, e := range events {
		if e.PID == 2 && e.Ph == "X" && e.Cat != "collective_permute" {
			have += 5040
			if last, _ := e.Args["last to come"].(string); !strings.HasPrefix(last, "device ") {
				t.Errorf("%s does not say who came last", e.Name)
			}
		}
	}
	if have != want {
		t.Errorf("groups met %d times, want %d", have/5040, want/5040)
	}
}

// Names that are markup, control characters or a megabyte long are text of a trace,
// and a long one does not make it long.
func TestHostileNames(t *testing.T) {
	const src = `module @m {
  sdy.mesh @mesh = <["<b>\22\1B[2J"=2]>
  func.func @main(%x: tensor<4xf32>) -> tensor<8xf32> {
    %y = stablehlo.add %x, %x : tensor<4xf32>
    %w = "stablehlo.all_gather"(%y) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "<b>\22\1B[2J">]>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
    return %w : tensor<8xf32>
  }
}`
	m, err := mlir.Parse("</script><script>\x1b[2J"+strings.Repeat("a", 1<<20), []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	r := trace.New(m)
	exe, err := runtime.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	zeros := []*ir.Literal{{Type: ir.Tensor(ir.F32, 4), Data: make([]byte, 16)}}
	if _, err := r.Run(t.Context(), exe, [][]*ir.Literal{zeros, zeros}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b.Bytes()) || b.Len() > 1<<16 {
		t.Errorf("%d bytes of JSON, valid = %v", b.Len(), json.Valid(b.Bytes()))
	}
	if i := bytes.IndexFunc(b.Bytes(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 || bytes.Contains(b.Bytes(), []byte(`\u001b`)) {
		t.Errorf("the trace has control characters")
	}
	for _, want := range []string{`</script><script>\\x1b[2Ja`, "(1048", `<b>\"\\x1b[2J 1`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the trace does not have %s", want)
		}
	}
}

// BenchmarkCost is what a trace adds to the time of a run.
func BenchmarkCost(b *testing.B) {
	for _, example := range []string{"llama", "simple"} {
		b.Run(example, func(b *testing.B) {
			_, exe, args, _ := program(b, example)
			run := func(opts ...runtime.Option) error {
				_, err := exe.Run(b.Context(), args, opts...)
				return err
			}
			paired.Cost(b, func() error { return run() }, func() error { return run(runtime.WithTimeline(new(runtime.Timeline))) })
		})
	}
}
