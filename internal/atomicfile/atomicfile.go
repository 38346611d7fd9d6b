// Package atomicfile writes files whole or not at all: who reads the name sees
// the old content or the new, also when the writer is killed in the middle.
package atomicfile

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write makes name hold what write writes. It writes to a new file in the same
// folder and renames that, so the old content stays until the new one is
// complete. What is no regular file, such as a pipe or a terminal, is written
// to directly; a symbolic link stays one.
func Write(name string, write func(io.Writer) error) error {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		if !info.Mode().IsRegular() {
			return writeThrough(name, write)
		}
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return about(name, err)
	}
	err = fill(f, mode, write)
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return about(name, err)
}

// about makes an error of the file system speak of name, not of the file that
// is to become it.
func about(name string, err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return &fs.PathError{Op: "write", Path: name, Err: path.Err}
	case errors.As(err, &link):
		return &fs.PathError{Op: "write", Path: name, Err: link.Err}
	}
	return err
}

// WriteBytes makes name hold data.
func WriteBytes(name string, data []byte) error {
	return Write(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

func writeThrough(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return finish(f, write, func() error { return nil })
}

// fill writes f, makes it last on the disk and closes it.
func fill(f *os.File, mode fs.FileMode, write func(io.Writer) error) error {
	return finish(f, write, func() error {
		if err := f.Chmod(mode); err != nil {
			return err
		}
		return f.Sync()
	})
}

func finish(f *os.File, write func(io.Writer) error, last func() error) error {
	w := bufio.NewWriterSize(f, 1<<16)
	err := write(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = last()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
