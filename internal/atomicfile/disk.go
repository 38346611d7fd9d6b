package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// A disk is what a save does to the file system, step by step; tests have one
// that fails at a step, or ends the process there.
type disk interface {
	create(name string, mode fs.FileMode) (file, error) // a new file
	lock(f file) (bool, error)                          // false where another process has it
	rename(from, to string) error
	remove(name string) error
}

// A file is a temporary file that is being written.
type file interface {
	io.WriteCloser
	Name() string
	Chmod(mode fs.FileMode) error
	Sync() error
}

// The system is the disk of the operating system.
type system struct{}

func (system) create(name string, mode fs.FileMode) (file, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (system) lock(f file) (bool, error)    { return lock(f.(*os.File)) }
func (system) rename(from, to string) error { return os.Rename(from, to) }
func (system) remove(name string) error     { return os.Remove(name) }

// create makes a new temporary file for name and locks it. Between the two
// steps another writer of name may take it for one that was left behind: then
// it is gone, and another one is made. What is to replace a file of permissions
// mode is its owner's alone until it is complete. Where the file system has no
// locks, nothing is ever taken for left behind.
func create(d disk, name string, mode fs.FileMode) (file, error) {
	perm := fs.FileMode(0o644)
	if mode != 0 {
		perm = 0o600
	}
	for range 1000 {
		f, err := d.create(temporary(name, fmt.Sprint(rand.Uint32())), perm)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		mine, err := d.lock(f)
		if err != nil || mine && exists(f.Name()) {
			return f, nil
		}
		f.Close()
	}
	return nil, &fs.PathError{Op: "create", Path: name, Err: errors.New("no temporary file stays in its folder")}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

const suffix = ".ppc"

// temporary is the name of the n-th temporary file for name. File systems want
// names of at most 255 bytes: those for long names begin alike.
func temporary(name, n string) string {
	base := filepath.Base(name)
	base = strings.ToValidUTF8(base[:min(len(base), 200)], "")
	return filepath.Join(filepath.Dir(name), "."+base+"."+n+suffix)
}

// removeStale removes the temporary files for name that a killed writer has
// left: those that nobody has locked.
func removeStale(name string) {
	head := strings.TrimSuffix(filepath.Base(temporary(name, "")), suffix)
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil {
		return
	}
	for _, e := range entries {
		n, ok := strings.CutPrefix(e.Name(), head)
		n, is := strings.CutSuffix(n, suffix)
		if !ok || !is || n == "" || strings.Trim(n, "0123456789") != "" || !e.Type().IsRegular() {
			continue
		}
		stale := filepath.Join(filepath.Dir(name), e.Name())
		f, err := os.OpenFile(stale, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if mine, err := lock(f); err == nil && mine && locks {
			os.Remove(stale)
		}
		f.Close()
	}
}
