package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ppc/internal/shared"
	"ppc/runtime/pjrt"
)

// aheadRows are the rows of the table of bytes in docs/rationale.md, and the settings that they are
// of.
var aheadRows = map[string][]string{
	"`per_iteration`":       nil,
	"`once`":                {"pipeline.gather=once"},
	"`per_repeat`, `head`":  {"pipeline.gather=per_repeat"},
	"`per_repeat`, `ahead`": {"pipeline.gather=per_repeat", "pipeline.prefetch=ahead"},
	"`per_iteration`, 4 layers per stage, 4 repeats":              {"pipeline.repeats=4", "pipeline.layers_per_stage=4"},
	"`per_iteration`, 16 layers per stage, no repeats":            {"pipeline.repeats=1", "pipeline.layers_per_stage=16"},
	"`once`, data = 2 in place of fsdp, state sharded along data": nil, // is another program
}

// TestAhead: a step of Llama 2 7B takes the bytes that the documents say, as the compiler for TPUs
// counts them; collectives and loops are found in what it made, and the saved program is there.
func TestAhead(t *testing.T) {
	if shared.Setting(t, "PPC_ENGINES") != "all" || len(pjrt.PlatformOf("tpu").Find()) == 0 {
		t.Skip("PPC_ENGINES is not all, or there is no libtpu")
	}
	text, err := os.ReadFile(filepath.Join(shared.Root(t), "docs", "rationale.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (.*per_iteration.*|.*per_repeat.*|.*once.*) \| ([\d.]+) \| ([\d.]+) \| [\d.]+ \|$`).FindAllStringSubmatch(string(text), -1)
	if len(rows) < 4 {
		t.Fatalf("docs/rationale.md has %d rows of bytes", len(rows))
	}
	for i, row := range rows {
		set, known := aheadRows[row[1]]
		if !known {
			t.Errorf("docs/rationale.md has bytes of %s, which has no settings here", row[1])
		}
		if set == nil && i > 0 {
			continue
		}
		t.Run(row[1], func(t *testing.T) {
			saved := ""
			if i == 0 {
				saved = filepath.Join(t.TempDir(), "saved")
			}
			r, err := Ahead(t.Context(), &Source{File: "../examples/llama2_7b.pp", Set: set}, AheadOptions{Topology: "v5p-8", Train: true, Save: saved})
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%.2f %.2f", float64(r.Arguments)/1e9, float64(r.Temporaries)/1e9)
			if want := strings.Join(row[2:4], " "); got != want {
				t.Errorf("arguments and temporaries are %s GB, the document says %s", got, want)
			}
			if r.Devices != 4 || r.Whiles == 0 || r.Collectives["all-gather"] == 0 || r.Collectives["collective-permute"] == 0 || r.Flops == 0 {
				t.Errorf("%+v, want 4 devices, loops, collectives and operations", r)
			}
			if info, err := os.Stat(saved); saved != "" && (err != nil || info.Size() == 0) {
				t.Errorf("the saved program: %v", err)
			}
		})
	}
}

// TestAheadTopologies: a program that shards more examples over more devices takes the same bytes
// of each, whatever the topology; a topology that is too small is refused with one that is not.
func TestAheadTopologies(t *testing.T) {
	if shared.Setting(t, "PPC_ENGINES") != "all" || len(pjrt.PlatformOf("tpu").Find()) == 0 {
		t.Skip("PPC_ENGINES is not all, or there is no libtpu")
	}
	compile := func(topology string, data int) (*AheadResult, error) {
		set := []string{fmt.Sprint("mesh.data=", data), fmt.Sprint("axes.batch=", 8*data)}
		return Ahead(t.Context(), &Source{File: "../examples/simple.pp", Set: set}, AheadOptions{Topology: topology})
	}
	bytes := ""
	for _, row := range []struct {
		topology        string
		data, available int
	}{{"v5p-16", 2, 8}, {"v5p-32", 2, 16}, {"v5p-256", 32, 128}} {
		r, err := compile(row.topology, row.data)
		if err != nil {
			t.Fatal(err)
		}
		if r.Devices != 4*row.data || r.Available != row.available || r.Whiles != 1 || r.Collectives["collective-permute"] != 2 {
			t.Errorf("%s: %+v, want %d of %d devices, one loop, two permutes", row.topology, r, 4*row.data, row.available)
		}
		got := fmt.Sprint(r.Arguments, r.Outputs, r.Temporaries)
		if bytes == "" {
			bytes = got
		}
		if got != bytes || r.Arguments == 0 {
			t.Errorf("%s: %s bytes of arguments, results and temporaries, want %s", row.topology, got, bytes)
		}
	}
	if _, err := compile("v5:2x2x1", 16); err == nil || !strings.Contains(err.Error(), "runs on 64 devices, the topology has 4; --topology v5p-128 has 64") {
		t.Errorf("a program for 64 devices on 4: %v", err)
	}
}

// TestTopologyDevices: a name counts devices, or cores, of which a v5p has two.
func TestTopologyDevices(t *testing.T) {
	for _, top := range topologies {
		kind, count, _ := strings.Cut(top.name, "-")
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Fatal(err)
		}
		if kind == "v5p" {
			n /= 2
		}
		if top.devices() != n {
			t.Errorf("%s is %s, %d devices, want %d", top.name, top.spec, top.devices(), n)
		}
	}
	for _, row := range []struct {
		topology topology
		want     int
		cure     string
	}{
		{topologies[0], 8, "--topology v5p-16 has 8"},
		{topology{spec: "v6e:2x2"}, 5, "--topology v6e-16 has 16"},
		{topologies[0], 257, "another mesh"},
		{topology{spec: "v9:2"}, 8, "another mesh"},
	} {
		if err := row.topology.tooSmall(row.want, 4); !strings.HasSuffix(err.Error(), "; "+row.cure) {
			t.Errorf("%d devices on %s: %v, want %s", row.want, row.topology.spec, err, row.cure)
		}
	}
}
