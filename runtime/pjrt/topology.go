//go:build (linux || darwin) && (amd64 || arm64)

package pjrt

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"
)

// A Topology is devices that are not here: programs are compiled for them.
type Topology struct {
	plugin  *Plugin
	handle  uintptr
	devices int
}

// Topology is the devices of the given name, such as v5p-8 or v5e:2x4, for a plugin
// that compiles ahead of time.
func (p *Plugin) Topology(name string, o Options) (*Topology, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	values := o.values(&pins)
	a := &topologyArgs{name: bytesOf(&pins, name), nameLen: uintptr(len(name)), numOptions: uintptr(len(values))}
	if len(values) > 0 {
		pins.Pin(&values[0])
		a.options = unsafe.Pointer(&values[0])
	}
	if err := p.call(topologyCreate, unsafe.Pointer(a), unsafe.Sizeof(*a)); err != nil {
		return nil, err
	}
	t := &Topology{plugin: p, handle: a.topology}
	list, err := p.list(topologyDescriptions, t.handle)
	t.devices = len(list)
	return t, err
}

// NumDevices is how many devices the topology has.
func (t *Topology) NumDevices() int { return t.devices }

// Compiled is a program that was compiled ahead of time.
type Compiled struct {
	plugin *Plugin
	handle uintptr
}

// Compile compiles StableHLO text for the devices of t.
func (t *Topology) Compile(text string, o CompileOptions) (*Compiled, error) {
	if n := o.Replicas * o.Partitions; n > t.devices {
		return nil, fmt.Errorf("%s: the program runs on %d devices, the topology has %d", t.plugin.Path, n, t.devices)
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	options := o.encode()
	a := &compileArgs{topology: t.handle, program: programOf(&pins, text), optionsLen: uintptr(len(options)), options: bytesOf(&pins, string(options))}
	if err := t.plugin.call(compile, unsafe.Pointer(a), unsafe.Sizeof(*a)); err != nil {
		return nil, err
	}
	return &Compiled{t.plugin, a.executable}, nil
}

// Close frees the compiled program.
func (c *Compiled) Close() { c.plugin.free(executableDestroy, c.handle) }

// Stats is what the program takes on each device, as its compiler counts.
func (c *Compiled) Stats() (*Stats, error) { return c.plugin.stats(c.handle) }

// Serialize is the compiled program as the plugin loads it again.
func (c *Compiled) Serialize() ([]byte, error) {
	a := &serializeArgs{executable: c.handle}
	if err := c.plugin.call(executableSerialize, unsafe.Pointer(a), unsafe.Sizeof(*a)); err != nil {
		return nil, err
	}
	out := []byte(textAt(a.bytes, a.len))
	c.plugin.release(a.release, a.owner)
	return out, nil
}

// Optimized is the program that the compiler made, a HloModuleProtoWithConfig in
// the wire form of protocol buffers.
func (c *Compiled) Optimized() ([]byte, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	q := &program{}
	q.size = unsafe.Sizeof(*q)
	pins.Pin(q)
	a := &optimizedArgs{executable: c.handle, program: unsafe.Pointer(q)}
	if err := c.plugin.call(executableOptimizedProgram, unsafe.Pointer(a), unsafe.Sizeof(*a)); err != nil {
		return nil, err
	}
	code := make([]byte, q.codeLen+1)
	pins.Pin(&code[0])
	q.code = unsafe.Pointer(&code[0])
	err := c.plugin.call(executableOptimizedProgram, unsafe.Pointer(a), unsafe.Sizeof(*a))
	return code[:q.codeLen], err
}

// stats reads the memory and the costs of an executable.
func (p *Plugin) stats(executable uintptr) (*Stats, error) {
	a := &memoryStatsArgs{executable: executable}
	if err := p.call(executableMemoryStats, unsafe.Pointer(a), unsafe.Sizeof(*a)); err != nil {
		return nil, err
	}
	s := &Stats{Code: a.code, Arguments: a.arguments, Outputs: a.outputs, Aliases: a.aliases, Temporaries: a.temporaries, Peak: a.peak}
	c := &costArgs{executable: executable}
	if err := p.call(executableCostAnalysis, unsafe.Pointer(c), unsafe.Sizeof(*c)); err != nil {
		return s, nil // not every plugin counts
	}
	for _, v := range unsafe.Slice((*namedValue)(pointer(c.values)), c.len) {
		if v.kind != floatValue {
			continue
		}
		x := float64(math.Float32frombits(uint32(v.value)))
		switch textAt(uintptr(v.name), v.nameLen) {
		case "flops":
			s.Flops = x
		case "bytes accessed":
			s.Bytes = x
		}
	}
	return s, nil
}
