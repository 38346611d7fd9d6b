// Package atomicfile writes files whole or not at all: who reads the name sees
// the old content or the new, also when the writer is killed in the middle.
//
// The new content is written to a temporary file in the same folder, .NAME.N.ppc
// for a number N, which is renamed when it is complete. The writer holds a lock
// on its temporary file, which the system gives up with the process: a temporary
// file without a lock belongs to a writer that was killed, and the next writer
// of NAME removes it.
package atomicfile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write makes name hold what write writes, or leaves it as it is and returns an
// error. A file that may not be written to is not replaced. What is no regular
// file, such as a pipe or a terminal, is written to directly; a symbolic link
// stays one. The end of ctx stops the writing.
func Write(ctx context.Context, name string, write func(io.Writer) error) error {
	return writeOn(ctx, system{}, name, write)
}

// WriteBytes makes name hold data.
func WriteBytes(ctx context.Context, name string, data []byte) error {
	return Write(ctx, name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Check reports why name cannot be written, as far as that shows before: its
// folder is missing or takes no new files, or name is there and may not be
// written to.
func Check(name string) error {
	name, mode, regular, err := target(name)
	if err != nil || !regular {
		return err
	}
	f, err := create(system{}, name, mode)
	if err != nil {
		return about(name, err)
	}
	f.Close()
	return about(name, os.Remove(f.Name()))
}

// target follows name to the file that is to be replaced and returns its
// permissions, 0 where it is to be made. regular is false where there is
// something else by that name.
func target(name string) (file string, mode fs.FileMode, regular bool, err error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return linked(name), 0, true, nil
	case err != nil:
		return name, 0, false, about(name, err)
	case info.IsDir():
		return name, 0, false, &fs.PathError{Op: "write", Path: name, Err: errors.New("is a folder")}
	case !info.Mode().IsRegular():
		return name, 0, false, nil
	}
	// Renaming would replace a file that is protected from being written.
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return name, 0, true, about(name, err)
	}
	f.Close()
	if file, err = filepath.EvalSymlinks(name); err != nil {
		return name, 0, true, about(name, err)
	}
	return file, info.Mode().Perm(), true, nil
}

// linked is where a symbolic link points to that points to nothing yet; what is
// no link stays.
func linked(name string) string {
	for range 40 {
		to, err := os.Readlink(name)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(name), to)
		}
		name = to
	}
	return name
}

func writeOn(ctx context.Context, d disk, name string, write func(io.Writer) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name, mode, regular, err := target(name)
	if err != nil {
		return err
	}
	if !regular {
		return writeThrough(ctx, name, write)
	}
	removeStale(name)
	f, err := create(d, name, mode)
	if err != nil {
		return about(name, err)
	}
	err = fill(ctx, f, mode, write)
	if err == nil {
		err = ctx.Err()
	}
	if !locks {
		f.Close() // some systems do not rename an open file
	}
	if err == nil {
		err = d.rename(f.Name(), name)
	}
	f.Close() // gives up the lock, which was held until the file had its name
	if err != nil {
		d.remove(f.Name())
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

// fill writes f, gives it the permissions of the file that it replaces, if there
// is one, and makes it last on the disk.
func fill(ctx context.Context, f file, mode fs.FileMode, write func(io.Writer) error) error {
	if err := write(&stoppable{ctx, f}); err != nil {
		return err
	}
	if mode != 0 {
		if err := f.Chmod(mode); err != nil {
			return err
		}
	}
	return f.Sync()
}

// chunk is how much is written between two looks at the context.
const chunk = 1 << 20

// A stoppable writer ends with its context.
type stoppable struct {
	ctx context.Context
	w   io.Writer
}

func (s *stoppable) Write(data []byte) (int, error) {
	done := 0
	for {
		if err := s.ctx.Err(); err != nil {
			return done, err
		}
		n, err := s.w.Write(data[done:min(len(data), done+chunk)])
		if done += n; err != nil || done == len(data) {
			return done, err
		}
	}
}

// writeThrough writes to a pipe or device, which may block for as long as
// nobody reads: the end of ctx leaves the write where it is.
func writeThrough(ctx context.Context, name string, write func(io.Writer) error) error {
	done := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err == nil {
			err = write(&stoppable{ctx, f})
			err = errors.Join(err, f.Close())
		}
		done <- err
	}()
	select {
	case err := <-done:
		return about(name, err)
	case <-ctx.Done():
		return ctx.Err()
	}
}
