package driver

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"ppc/driver/binding"
	"ppc/ir"
	"ppc/lower/stats"
	"ppc/lower/strips"
	"ppc/runtime/kernel"
)

// A need is the memory that a run takes, in bytes. It leaves out what the
// system and a collection of garbage take on top: a run that does not fit by
// this count does not fit.
type need struct {
	devices   int // what all of them hold at their peak beside their arguments
	arguments int // of all devices, each part once, and as they were read
	constants int // of which all devices share each
}

func (n *need) all() int { return plus(plus(n.devices, n.arguments), n.constants) }

// plus and times are the sum and the product of sizes; what is more than can be
// counted is the largest number.
func plus(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

func times(a, b int) int {
	if b > 0 && a > math.MaxInt/b {
		return math.MaxInt
	}
	return a * b
}

// needed is what a run of r takes, by the static measure of its program.
func (r *runner) needed() (*need, error) {
	m := strips.Of(r.p.m)
	s, err := measured(m)
	if err != nil {
		return nil, err
	}
	group := 1 // of devices that share what they gather, at the most
	for _, c := range s.Collectives {
		if c.Op.Kind == ir.AllGather {
			group = max(group, c.Group)
		}
	}
	parts, devices := &s.Memory.Parts, len(r.machine.Args)
	own := s.Memory.Peak - parts[stats.Parameters] - parts[stats.OptimizerState] - parts[stats.GatheredWeights]
	own += scratch(m)
	n := &need{devices: plus(times(devices, own+s.Memory.Host), times(max(1, devices/group), parts[stats.GatheredWeights])), constants: constants(m)}
	full := make(map[string]bool)
	for _, p := range r.machine.Params {
		if p.Mesh != nil || p.Kind == "state" { // else all devices use what was read
			n.arguments = plus(n.arguments, p.Global.Bytes())
		}
		if p.Kind != "state" && !full[p.Name] {
			full[p.Name] = true
			n.arguments = plus(n.arguments, p.InFile.Bytes())
		}
	}
	return n, nil
}

// scratch is what a device takes for the op that needs the most memory besides its
// operands and results.
func scratch(m *ir.Module) int {
	n := 0
	for _, f := range m.Funcs {
		if f.Body != nil {
			f.Body.Walk(func(op *ir.Op) { n = max(n, kernel.Scratch(op)) })
		}
	}
	return n
}

// constants is what the constants of m take, all elements of each.
func constants(m *ir.Module) int {
	n := 0
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		f.Body.Walk(func(op *ir.Op) {
			if op.Kind == ir.Constant && op.Result().Type.IsTensor() {
				n = plus(n, op.Result().Type.Bytes())
			}
		})
	}
	return n
}

// largest is the size of the largest value of m. Where it alone is too large,
// nothing more needs to be counted, nor could be.
func largest(m *ir.Module) int {
	n := 0
	see := func(vs []*ir.Value) {
		for _, v := range vs {
			if v.Type.IsTensor() && v.Type.IsStatic() {
				n = max(n, v.Type.Bytes())
			}
		}
	}
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		see(f.Params())
		f.Body.Walk(func(op *ir.Op) {
			see(op.Results)
			for _, r := range op.Regions {
				see(r.Args)
			}
		})
	}
	return n
}

// uncountable is a size from which on sums of sizes may be more than an int has.
const uncountable = 1 << 50

// memory is how many bytes a run may take.
func (r *runner) memory() int { return cmp.Or(r.opts.Memory, availableMemory(os.DirFS("/"))) }

// fits refuses to run what takes more memory than there is.
func (r *runner) fits() error {
	have := r.memory()
	n := &need{devices: largest(r.p.m)}
	if n.devices < uncountable {
		var err error
		if n, err = r.needed(); err != nil {
			return err
		}
	}
	if n.all() <= have {
		return nil
	}
	cure := "a smaller program fits"
	if r.p.naming == binding.ByName {
		cure = "smaller sizes fit (--set axes.NAME=…)"
	}
	constants := ""
	if n.constants > 0 {
		constants = fmt.Sprintf(", %s of constants", sizeText(n.constants))
	}
	return fmt.Errorf("%s: a run takes %s of memory, %s is available: %s at the peak of %s%s and %s of arguments; %s, and ppc lower --stats says what takes it",
		r.src.name(), sizeText(n.all()), sizeText(have), sizeText(n.devices), ir.Counted(len(r.machine.Args), "device"), constants, sizeText(n.arguments), cure)
}

func sizeText(n int) string { return strings.TrimSpace(stats.SizeText(n)) }

// availableMemory is how many bytes can be had without swapping, by what Linux
// says under /proc, the limits of the process and what the control groups around
// it allow; no limit is known of other systems.
func availableMemory(root fs.FS) int {
	least := math.MaxInt
	if n, ok := field(root, "proc/meminfo", "MemAvailable:"); ok {
		least = n << 10
	}
	for _, l := range limits {
		limit, ok := field(root, "proc/self/limits", l.name)
		used, _ := field(root, "proc/self/status", l.used)
		if ok {
			least = min(least, max(0, limit-used<<10))
		}
	}
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for _, h := range hierarchies {
			if len(parts) < 3 || !slices.Contains(strings.Split(parts[1], ","), h.controller) {
				continue
			}
			for dir := path.Join(h.root, parts[2]); strings.HasPrefix(dir, h.root); dir = path.Dir(dir) {
				data, err := fs.ReadFile(root, path.Join(dir, h.limit))
				limit, bad := strconv.Atoi(strings.TrimSpace(string(data)))
				if err != nil || bad != nil { // there is none: max
					continue
				}
				used, _ := field(root, path.Join(dir, "memory.stat"), h.used)
				least = min(least, max(0, limit-used))
			}
		}
	}
	return least
}

// limits are those of the process, as ulimit sets them: what each is called, and
// the field that says how many KiB are in use of it.
var limits = [...]struct{ name, used string }{
	{"Max address space", "VmSize:"},
	{"Max data size", "VmData:"},
}

// hierarchies are the two versions of control groups: where they are mounted, the
// controller's name in a process' list, and the files and fields with a group's
// limit and its unreclaimable use.
var hierarchies = [...]struct{ root, controller, limit, used string }{
	{"sys/fs/cgroup", "", "memory.max", "anon"},
	{"sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", "total_rss"},
}

// field is the number that follows name at the beginning of a line of a file; not
// ok where none does, as in "unlimited".
func field(root fs.FS, file, name string) (int, bool) {
	data, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		rest, ok := strings.CutPrefix(line, name)
		if words := strings.Fields(rest); ok && len(words) > 0 && strings.ContainsAny(rest[:1], " \t") {
			n, err := strconv.Atoi(words[0])
			return n, err == nil
		}
	}
	return 0, false
}
