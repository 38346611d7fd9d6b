//go:build (linux || darwin) && (amd64 || arm64)

package pjrt

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"ppc/ir"
)

// A Client is the devices of a plugin that this process uses.
type Client struct {
	Platform string // cpu, cuda, tpu
	Version  string

	plugin  *Plugin
	handle  uintptr
	devices []uintptr
}

// Client makes the devices of the plugin.
func (p *Plugin) Client(o Options) (*Client, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	values := o.values(&pins)
	a := &clientCreateArgs{numOptions: uintptr(len(values))}
	if len(values) > 0 {
		pins.Pin(&values[0])
		a.options = unsafe.Pointer(&values[0])
	}
	if err := p.call(clientCreate, unsafe.Pointer(a), unsafe.Sizeof(*a)); err != nil {
		return nil, err
	}
	c := &Client{plugin: p, handle: a.client}
	var err error
	if c.Platform, err = p.text(clientPlatformName, c.handle); err != nil {
		return nil, err
	}
	if c.Version, err = p.text(clientPlatformVersion, c.handle); err != nil {
		return nil, err
	}
	if c.devices, err = p.list(clientAddressableDevices, c.handle); err != nil {
		return nil, err
	}
	return c, nil
}

// values are the options as the interface has them.
func (o Options) values(pins *runtime.Pinner) []namedValue {
	var out []namedValue
	for _, name := range sortedNames(o) {
		v := namedValue{name: bytesOf(pins, name), nameLen: uintptr(len(name)), len: 1}
		v.size = unsafe.Sizeof(v)
		switch x := o[name].(type) {
		case string:
			v.kind, v.value, v.len = stringValue, uintptr(bytesOf(pins, x)), uintptr(len(x))
		case int:
			v.kind, v.value = int64Value, uintptr(x)
		case bool:
			v.kind = boolValue
			if x {
				v.value = 1
			}
		}
		out = append(out, v)
	}
	return out
}

// bytesOf is text where the plugin can read it.
func bytesOf(pins *runtime.Pinner, text string) unsafe.Pointer {
	b := append([]byte(text), 0)
	pins.Pin(&b[0])
	return unsafe.Pointer(&b[0])
}

// NumDevices is how many devices the client has.
func (c *Client) NumDevices() int { return len(c.devices) }

// Kind is the vendor's name of the first device.
func (c *Client) Kind() string {
	if len(c.devices) == 0 {
		return ""
	}
	d, err := c.plugin.one(deviceGetDescription, c.devices[0])
	if err != nil {
		return ""
	}
	kind, _ := c.plugin.text(deviceDescriptionKind, d)
	return kind
}

// An Executable is a compiled program on the first devices of a client.
type Executable struct {
	client  *Client
	handle  uintptr
	inner   uintptr // without devices
	devices []uintptr
	results []*ir.Type // of one device
	running sync.Mutex
}

// Compile compiles StableHLO text whose main function returns results on each of n
// devices.
func (c *Client) Compile(text string, n int, o CompileOptions, results []*ir.Type) (*Executable, error) {
	if n > len(c.devices) {
		return nil, fmt.Errorf("%s: the program runs on %s, the plugin has %d", c.plugin.Path, ir.Counted(n, "device"), len(c.devices))
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	options := o.encode()
	a := &clientCompileArgs{client: c.handle, program: programOf(&pins, text), optionsLen: uintptr(len(options)), options: bytesOf(&pins, string(options))}
	if err := c.plugin.call(clientCompile, unsafe.Pointer(a), unsafe.Sizeof(*a)); err != nil {
		return nil, err
	}
	exe := &Executable{client: c, handle: a.executable, devices: c.devices[:n], results: results}
	var err error
	if exe.inner, err = c.plugin.one(loadedGetExecutable, exe.handle); err != nil {
		exe.Close()
		return nil, err
	}
	if got, err := c.plugin.one(executableNumOutputs, exe.inner); err != nil || int(got) != len(results) {
		exe.Close()
		return nil, errors.Join(err, fmt.Errorf("%s: the compiled program has %d results, want %d", c.plugin.Path, got, len(results)))
	}
	return exe, nil
}

// programOf is text as the interface takes programs.
func programOf(pins *runtime.Pinner, text string) unsafe.Pointer {
	const format = "mlir"
	p := &program{code: bytesOf(pins, text), codeLen: uintptr(len(text)), format: bytesOf(pins, format), formatLen: uintptr(len(format))}
	p.size = unsafe.Sizeof(*p)
	pins.Pin(p)
	return unsafe.Pointer(p)
}

// Close frees the executable.
func (exe *Executable) Close() {
	exe.client.plugin.free(executableDestroy, exe.inner)
	exe.client.plugin.free(loadedDestroy, exe.handle)
	exe.inner, exe.handle = 0, 0
}

// Stats is what the compiled program takes on each device, as its compiler counts.
func (exe *Executable) Stats() (*Stats, error) { return exe.client.plugin.stats(exe.inner) }

// step executes the program once. Argument i of device d is literal args[d][i], or,
// if that is negative, result -1-args[d][i] of before, counted over devices, which
// the program may use up. It returns the results on their devices, too; those that
// stay there alone.
func (exe *Executable) step(ctx context.Context, before *buffers, literals []*ir.Literal, args [][]int, stay func(i int) bool) (*buffers, [][]*ir.Literal, error) {
	exe.running.Lock()
	defer exe.running.Unlock()
	sent := newBuffers(exe.client.plugin)
	defer sent.free()
	in, err := sent.take(exe.client, exe.devices, literals, args, before)
	if err != nil {
		return sent, nil, err
	}
	if err := ctx.Err(); err != nil {
		return sent, nil, err
	}
	out, err := exe.execute(in)
	if err != nil {
		out.free()
		return out, nil, err
	}
	results, err := out.give(exe.results, stay)
	if err == nil {
		err = ctx.Err()
	}
	return out, results, err
}

// execute runs the program on buffers.
func (exe *Executable) execute(in [][]uintptr) (*buffers, error) {
	p := exe.client.plugin
	var pins runtime.Pinner
	defer pins.Unpin()
	n := len(exe.devices)
	out := newBuffers(p)
	out.of = make([][]uintptr, n)
	for d := range out.of {
		out.of[d] = make([]uintptr, len(exe.results))
	}
	complete := make([]uintptr, n)
	options := &executeOptions{}
	options.size = unsafe.Sizeof(*options)
	pins.Pin(options)
	pins.Pin(&complete[0])
	a := &executeArgs{
		executable: exe.handle, options: unsafe.Pointer(options), devices: uintptr(n), args: uintptr(len(in[0])),
		arguments: table(&pins, in), results: table(&pins, out.of), complete: unsafe.Pointer(&complete[0]),
	}
	if err := p.call(loadedExecute, unsafe.Pointer(a), unsafe.Sizeof(*a)); err != nil {
		return out, err
	}
	var errs []error
	for _, e := range complete {
		errs = append(errs, p.await(e))
	}
	return out, errors.Join(errs...)
}

// table is the rows as C has lists of lists.
func table(pins *runtime.Pinner, rows [][]uintptr) unsafe.Pointer {
	heads := make([]unsafe.Pointer, len(rows))
	pins.Pin(&heads[0])
	for i, row := range rows {
		if len(row) > 0 {
			pins.Pin(&row[0])
			heads[i] = unsafe.Pointer(&row[0])
		}
	}
	return unsafe.Pointer(&heads[0])
}
