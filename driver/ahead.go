package driver

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"ppc/driver/binding"
	"ppc/internal/atomicfile"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/lower"
	"ppc/runtime/pjrt"
)

// AheadOptions says for what a program is compiled ahead of time.
type AheadOptions struct {
	Topology string // v5p-8, or what the plugin calls one
	Engine   string // the plugin, as RunOptions has it; "" for that of the topology
	Save     string // a file for the compiled program; "" for none
	Train    bool   // a step of training, where the program trains
}

// An AheadResult is what a compiler says of a program: bytes are those of one
// device.
type AheadResult struct {
	Program     string         `json:"program"`
	Topology    string         `json:"topology"`
	Devices     int            `json:"devices"`          // that the program runs on
	Available   int            `json:"topology_devices"` // that the topology has
	CompileSec  float64        `json:"compile_s"`
	Arguments   int64          `json:"argument_bytes"`
	Outputs     int64          `json:"output_bytes"`
	Aliases     int64          `json:"alias_bytes"`
	Temporaries int64          `json:"temp_bytes"`
	Code        int64          `json:"code_bytes"`
	Flops       float64        `json:"flops"`          // of one device in one execution; a loop's body counts once
	Bytes       float64        `json:"accessed_bytes"` // likewise
	Whiles      int            `json:"whiles"`
	Collectives map[string]int `json:"collectives"` // instructions of the compiled program
}

// A topology is the name that users have for devices, and the plugin's.
type topology struct{ name, platform, spec string }

var topologies = []topology{
	{"v5p-8", "tpu", "v5:2x2x1"}, {"v5p-16", "tpu", "v5:2x2x2"}, {"v5p-32", "tpu", "v5:2x2x4"}, {"v5p-64", "tpu", "v5:2x4x4"},
	{"v5p-128", "tpu", "v5:4x4x4"}, {"v5p-256", "tpu", "v5:4x4x8"}, {"v5p-512", "tpu", "v5:4x8x8"},
	{"v5e-16", "tpu", "v5e:4x4"}, {"v5e-64", "tpu", "v5e:8x8"}, {"v5e-256", "tpu", "v5e:16x16"},
	{"v6e-16", "tpu", "v6e:4x4"}, {"v6e-64", "tpu", "v6e:8x8"}, {"v6e-256", "tpu", "v6e:16x16"},
}

// devices is how many devices the topology has, for those that have names: the
// product of its sides.
func (t topology) devices() int {
	_, sides, _ := strings.Cut(t.spec, ":")
	n := 1
	for side := range strings.SplitSeq(sides, "x") {
		k, err := strconv.Atoi(side)
		if err != nil {
			return 0
		}
		n *= k
	}
	return n
}

// tooSmall is the error of a topology that has fewer devices than the program runs on. It
// names the smallest of the same kind that has enough.
func (t topology) tooSmall(want, have int) error {
	kind, _, _ := strings.Cut(t.spec, ":")
	cure := "another mesh"
	for _, u := range topologies {
		if k, _, _ := strings.Cut(u.spec, ":"); k == kind && u.devices() >= want {
			cure = fmt.Sprintf("--topology %s has %d", u.name, u.devices())
			break
		}
	}
	return fmt.Errorf("the program runs on %d devices, the topology has %d; %s", want, have, cure)
}

// TopologyNames are the topologies that have names of their own.
func TopologyNames() []string {
	var names []string
	for _, t := range topologies {
		names = append(names, t.name)
	}
	return names
}

// Ahead compiles the program for devices that need not be there.
func Ahead(ctx context.Context, src *Source, opts AheadOptions) (*AheadResult, error) {
	t := topology{opts.Topology, "tpu", opts.Topology}
	if i := slices.IndexFunc(topologies, func(t topology) bool { return t.name == opts.Topology }); i >= 0 {
		t = topologies[i]
	} else if !strings.Contains(opts.Topology, ":") {
		return nil, usage("--topology %s: want %s, or what the plugin calls one, such as v5:2x2x1", opts.Topology, strings.Join(TopologyNames(), ", "))
	}
	name := opts.Engine
	if name == "" {
		name = t.platform
	}
	e, err := openEngine(name, 0)
	if err != nil {
		return nil, err
	}
	defer e.close()
	p, ok := e.(*plugin)
	if !ok {
		return nil, usage("--engine=%s: %s compiles nothing ahead of time; want cpu, cuda, tpu or pjrt:PATH", name, name)
	}
	prog, err := src.load(ctx, lang.Options{Train: opts.Train})
	if err != nil {
		return nil, err
	}
	prog.sayWarnings()
	if err := prog.compile(ctx, "", ""); err != nil {
		return nil, err
	}
	return p.ahead(ctx, prog.m, src.name(), t, opts)
}

// ahead compiles m, a program for one device, for the topology t.
func (p *plugin) ahead(ctx context.Context, m *ir.Module, file string, t topology, opts AheadOptions) (*AheadResult, error) {
	fail := func(err error) error { return fmt.Errorf("--engine=%s, --topology %s: %w", p.name, t.name, err) }
	for k, v := range map[string]string{"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "TPU_WORKER_HOSTNAMES": "localhost", "TPU_ACCELERATOR_TYPE": t.name} {
		if t.platform == "tpu" && os.Getenv(k) == "" {
			os.Setenv(k, v) // libtpu asks the machine otherwise, which need not be one with TPUs
		}
	}
	var err error
	if p.worker, err = pjrt.Start(ctx, p.path, t.spec, nil); err != nil {
		return nil, fail(err)
	}
	n, have := max(binding.NumDevices(m), 1), p.worker.Info.Devices
	if n > have {
		return nil, fail(t.tooSmall(n, have))
	}
	text, err := lower.Replicas(forPlatform(m, cmp.Or(p.worker.Info.Platform, t.platform)))
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	stats, saved, hlo, err := p.worker.Ahead(ctx, text, pjrt.CompileOptions{Replicas: n, Partitions: 1}, opts.Save != "")
	if err != nil {
		return nil, fail(err)
	}
	r := &AheadResult{
		Program: file, Topology: t.name, Devices: n, Available: have, CompileSec: time.Since(begin).Seconds(),
		Arguments: stats.Arguments, Outputs: stats.Outputs, Aliases: stats.Aliases, Temporaries: stats.Temporaries, Code: stats.Code,
		Flops: stats.Flops, Bytes: stats.Bytes, Collectives: make(map[string]int),
	}
	counts, err := pjrt.Opcodes(hlo)
	if err != nil {
		return nil, fail(err)
	}
	r.Whiles = counts["while"]
	for _, kind := range []string{"all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute"} {
		r.Collectives[kind] = counts[kind] + counts[kind+"-start"]
	}
	if opts.Save != "" {
		if err := atomicfile.WriteBytes(ctx, opts.Save, saved); err != nil {
			return nil, writeError(opts.Save, err)
		}
	}
	return r, nil
}
