//go:build (linux || darwin) && (amd64 || arm64)

package pjrt

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"ppc/ir"
)

// elements are the numbers of element types in the interface.
var elements = map[ir.DType]int32{
	ir.I1: 1, ir.I8: 2, ir.I16: 3, ir.I32: 4, ir.I64: 5, ir.UI8: 6, ir.UI16: 7, ir.UI32: 8, ir.UI64: 9,
	ir.F16: 10, ir.F32: 11, ir.F64: 12, ir.BF16: 13, ir.C64: 14, ir.C128: 15,
}

// Check reports whether arrays of type t go to and from a plugin.
func Check(t *ir.Type) error {
	if !t.IsTensor() || !t.IsStatic() {
		return fmt.Errorf("%s: a plugin takes arrays of a known shape", t)
	}
	if elements[t.Elem] == 0 {
		return fmt.Errorf("%s: elements of type %s do not go to a plugin", t, t.Elem)
	}
	return nil
}

// buffers are arrays on devices, [device][array].
type buffers struct {
	plugin *Plugin
	of     [][]uintptr
}

func newBuffers(p *Plugin) *buffers { return &buffers{plugin: p} }

func (b *buffers) free() {
	for _, row := range b.of {
		for _, h := range row {
			b.plugin.free(bufferDestroy, h)
		}
	}
	b.of = nil
}

// take copies what args says of literals to the devices, and returns the arguments of
// each device, results of before among them.
func (b *buffers) take(c *Client, devices []uintptr, literals []*ir.Literal, args [][]int, before *buffers) ([][]uintptr, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	var done []uintptr
	var errs []error
	in := make([][]uintptr, len(args))
	for d, list := range args {
		b.of = append(b.of, nil)
		for _, n := range list {
			if n < 0 {
				k := len(before.of[d])
				in[d] = append(in[d], before.of[(-1-n)/k][(-1-n)%k])
				continue
			}
			h, event, err := b.send(&pins, c, devices[d], literals[n])
			if err != nil {
				errs = append(errs, err)
				break
			}
			b.of[d], in[d] = append(b.of[d], h), append(in[d], h)
			done = append(done, event)
		}
	}
	for _, e := range done {
		errs = append(errs, b.plugin.await(e))
	}
	return in, errors.Join(errs...)
}

// send begins to copy l to a device.
func (b *buffers) send(pins *runtime.Pinner, c *Client, device uintptr, l *ir.Literal) (buffer, done uintptr, err error) {
	if err := Check(l.Type); err != nil {
		return 0, 0, err
	}
	dims := make([]int64, len(l.Type.Shape)+1)
	for i, n := range l.Type.Shape {
		dims[i] = int64(n)
	}
	data := l.Expand()
	a := &bufferFromHostArgs{client: c.handle, elem: elements[l.Type.Elem], numDims: uintptr(len(l.Type.Shape)), device: device, semantics: 1}
	pins.Pin(&dims[0])
	a.dims = unsafe.Pointer(&dims[0])
	if len(data) > 0 {
		pins.Pin(&data[0])
		a.data = unsafe.Pointer(&data[0])
	} else {
		a.data = unsafe.Pointer(&dims[0])
	}
	err = b.plugin.call(clientBufferFromHost, unsafe.Pointer(a), unsafe.Sizeof(*a))
	return a.buffer, a.done, err
}

// give copies the buffers, of the given types on each device, to the host, but for
// those that stay: of them there are the types alone.
func (b *buffers) give(types []*ir.Type, stay func(i int) bool) ([][]*ir.Literal, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	var done []uintptr
	var errs []error
	out := make([][]*ir.Literal, len(b.of))
	for d, row := range b.of {
		out[d] = make([]*ir.Literal, len(row))
		for i, h := range row {
			if stay(i) {
				out[d][i] = &ir.Literal{Type: types[i]}
				continue
			}
			data := make([]byte, max(types[i].Bytes(), 1))
			pins.Pin(&data[0])
			a := &toHostArgs{buffer: h, data: unsafe.Pointer(&data[0]), len: uintptr(types[i].Bytes())}
			errs = append(errs, b.plugin.call(bufferToHost, unsafe.Pointer(a), unsafe.Sizeof(*a)))
			done = append(done, a.done)
			out[d][i] = &ir.Literal{Type: types[i], Data: data[:types[i].Bytes()]}
		}
	}
	for _, e := range done {
		errs = append(errs, b.plugin.await(e))
	}
	return out, errors.Join(errs...)
}
