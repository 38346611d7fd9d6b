//go:build (linux || darwin) && (amd64 || arm64)

package pjrt

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Major and Minor are the version of the interface that is known here.
const (
	Major = 0
	Minor = 81

	// oldest is the first minor version whose table has all that is used.
	oldest = 54
)

// A Plugin is a loaded PJRT library. It stays loaded until the process ends, as
// plugins expect.
type Plugin struct {
	Path         string
	Major, Minor int

	api *apiHead
	has int // functions of the table
}

// Open loads the library at path and checks that it is a PJRT plugin whose
// interface is known.
func Open(path string) (*Plugin, error) {
	var missing *fs.PathError
	if info, err := os.Stat(path); errors.As(err, &missing) {
		return nil, fmt.Errorf("%s: %w", path, missing.Err)
	} else if err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a file", path)
	}
	if err := checkMachine(path); err != nil {
		return nil, err
	}
	file, err := filepath.Abs(path) // a name without a folder is looked for elsewhere
	if err != nil {
		return nil, err
	}
	lib, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be loaded: %w", path, err)
	}
	get, err := purego.Dlsym(lib, "GetPjrtApi")
	if err != nil {
		return nil, fmt.Errorf("%s: not a PJRT plugin: it has no function GetPjrtApi", path)
	}
	at, _, _ := purego.SyscallN(get)
	if at == 0 {
		return nil, fmt.Errorf("%s: GetPjrtApi returns nothing", path)
	}
	p := &Plugin{Path: path, api: (*apiHead)(pointer(at))}
	p.Major, p.Minor = int(p.api.version.major), int(p.api.version.minor)
	p.has = (int(p.api.size) - int(unsafe.Offsetof(p.api.functions))) / int(unsafe.Sizeof(uintptr(0)))
	if head := int(unsafe.Offsetof(p.api.functions)); int(p.api.size) < head {
		return nil, fmt.Errorf("%s: not a PJRT plugin: its table of functions has %d bytes, want more than %d", path, p.api.size, head)
	}
	if p.Major != Major || p.Minor < oldest {
		return nil, fmt.Errorf("%s: a plugin of PJRT %d.%d; versions %d.%d and later of %d are known: install a newer one", path, p.Major, p.Minor, Major, oldest, Major)
	}
	a := &base{}
	if err := p.call(pluginInitialize, unsafe.Pointer(a), unsafe.Sizeof(*a)); err != nil {
		return nil, err
	}
	return p, nil
}

// checkMachine refuses a library for another kind of machine, of which the system only
// says that it cannot be loaded. What is no such library is left to the system.
func checkMachine(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	machines := map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}
	name := machines[f.Machine]
	if name == "" {
		name = f.Machine.String()
	}
	if name != runtime.GOARCH {
		return fmt.Errorf("%s: a library for %s, this machine is %s: install the package for it", path, name, runtime.GOARCH)
	}
	return nil
}

// call calls f with the struct at args, which has size bytes and begins with a base.
func (p *Plugin) call(f function, args unsafe.Pointer, size uintptr) error {
	if int(f) >= p.has || p.api.functions[f] == 0 {
		return &Error{p.Path, names[f], 12, fmt.Sprintf("the plugin, of PJRT %d.%d, has no such function", p.Major, p.Minor)}
	}
	(*base)(args).size = size
	failed, _, _ := purego.SyscallN(p.api.functions[f], uintptr(args))
	runtime.KeepAlive(args)
	if failed == 0 {
		return nil
	}
	return p.failure(f, failed)
}

// failure reads and frees an error of the plugin.
func (p *Plugin) failure(f function, failed uintptr) error {
	m := &textArgs{handle: failed}
	m.size = unsafe.Sizeof(*m)
	purego.SyscallN(p.api.functions[errorMessage], uintptr(unsafe.Pointer(m)))
	c := &oneArgs{handle: failed}
	c.size = unsafe.Sizeof(*c)
	purego.SyscallN(p.api.functions[errorGetCode], uintptr(unsafe.Pointer(c)))
	e := &Error{p.Path, names[f], int(int32(c.out)), textAt(m.text, m.len)}
	runtime.KeepAlive(m)
	runtime.KeepAlive(c)
	p.free(errorDestroy, failed)
	return e
}

// free ends what a handle stands for.
func (p *Plugin) free(f function, handle uintptr) {
	if handle == 0 {
		return
	}
	a := &oneArgs{handle: handle}
	a.size = unsafe.Offsetof(a.out)
	purego.SyscallN(p.api.functions[f], uintptr(unsafe.Pointer(a)))
	runtime.KeepAlive(a)
}

// await waits for an event and frees it.
func (p *Plugin) await(event uintptr) error {
	if event == 0 {
		return nil
	}
	a := &oneArgs{handle: event}
	err := p.call(eventAwait, unsafe.Pointer(a), unsafe.Offsetof(a.out))
	p.free(eventDestroy, event)
	return err
}

// one calls f of one handle, which returns another word.
func (p *Plugin) one(f function, handle uintptr) (uintptr, error) {
	a := &oneArgs{handle: handle}
	err := p.call(f, unsafe.Pointer(a), unsafe.Sizeof(*a))
	return a.out, err
}

// text calls f of one handle, which returns text.
func (p *Plugin) text(f function, handle uintptr) (string, error) {
	a := &textArgs{handle: handle}
	if err := p.call(f, unsafe.Pointer(a), unsafe.Sizeof(*a)); err != nil {
		return "", err
	}
	return textAt(a.text, a.len), nil
}

// list calls f of one handle, which returns handles.
func (p *Plugin) list(f function, handle uintptr) ([]uintptr, error) {
	a := &listArgs{handle: handle}
	if err := p.call(f, unsafe.Pointer(a), unsafe.Sizeof(*a)); err != nil {
		return nil, err
	}
	if a.len == 0 {
		return nil, nil
	}
	return append([]uintptr(nil), unsafe.Slice((*uintptr)(pointer(a.list)), a.len)...), nil
}

// textAt is a copy of n bytes of the plugin's.
func textAt(at, n uintptr) string {
	if at == 0 || n == 0 {
		return ""
	}
	return string(unsafe.Slice((*byte)(pointer(at)), n))
}

// pointer is memory of the plugin's, which no garbage collector moves or frees.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// release calls a destructor that the plugin gave.
func (p *Plugin) release(f, of uintptr) {
	if f != 0 {
		purego.SyscallN(f, of)
	}
}
