package driver

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/lower/stats"
)

// A need is the memory that a run takes, in bytes. It leaves out what the
// system and a collection of garbage take on top: a run that does not fit by
// this count does not fit.
type need struct {
	devices   int // what all of them hold at their peak beside their arguments
	arguments int // of all devices, each part once, and as they were read
}

// needed is what a run of r takes, by the static measure of its program.
func (r *runner) needed() (*need, error) {
	s, err := measured(r.p.m)
	if err != nil {
		return nil, err
	}
	group := 1 // of devices that share what they gather, at the most
	for _, c := range s.Collectives {
		if c.Op.Kind == ir.AllGather {
			group = max(group, c.Group)
		}
	}
	parts, devices := &s.Memory.Parts, len(r.machine.args)
	own := s.Memory.Peak - parts[stats.Parameters] - parts[stats.OptimizerState] - parts[stats.GatheredWeights]
	n := &need{devices: devices*(own+s.Memory.Host) + max(1, devices/group)*parts[stats.GatheredWeights]}
	whole := make(map[string]bool)
	for _, p := range r.machine.params {
		if p.mesh != nil || p.kind == "state" { // else all devices use what was read
			n.arguments += p.global.Bytes()
		}
		if p.kind != "state" && !whole[p.name] {
			whole[p.name] = true
			n.arguments += p.whole.Bytes()
		}
	}
	return n, nil
}

// fits refuses to run what takes more memory than there is.
func (r *runner) fits() error {
	have := r.opts.Memory
	if have == 0 {
		have = availableMemory(os.DirFS("/"))
	}
	n, err := r.needed()
	if err != nil || n.devices+n.arguments <= have {
		return err
	}
	cure := "a smaller program fits"
	if r.p.named {
		cure = "smaller sizes fit (--set axes.NAME=…)"
	}
	return fmt.Errorf("%s: a run takes %s of memory, %s is available: %s at the peak of %d devices and %s of arguments; %s, and ppc lower --stats says what takes it",
		r.src.name(), sizeText(n.devices+n.arguments), sizeText(have), sizeText(n.devices), len(r.machine.args), sizeText(n.arguments), cure)
}

func sizeText(n int) string { return strings.TrimSpace(stats.SizeText(n)) }

// availableMemory is how many bytes can be had without swapping, by what Linux
// says under /proc and what the control groups around this process allow; no
// limit is known of other systems.
func availableMemory(root fs.FS) int {
	least := math.MaxInt
	if n, ok := field(root, "proc/meminfo", "MemAvailable:"); ok {
		least = n << 10
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

// hierarchies are the two versions of control groups: where they stand, what
// names them in a process' list, and which files and fields say what a group
// may take and what it has taken for good.
var hierarchies = [...]struct{ root, controller, limit, used string }{
	{"sys/fs/cgroup", "", "memory.max", "anon"},
	{"sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", "total_rss"},
}

// field is the number that follows name at the beginning of a line of a file.
func field(root fs.FS, file, name string) (int, bool) {
	data, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			n, err := strconv.Atoi(words[1])
			return n, err == nil
		}
	}
	return 0, false
}
