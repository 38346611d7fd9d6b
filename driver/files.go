package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ppc/internal/atomicfile"
	"ppc/ir/lang/syntax"
)

// maxText is how many bytes of a program in MLIR or HLO are read; a .pp file
// has its own limit.
const maxText = 1 << 30

// A claim is a file that a command reads or writes, and what for.
type claim struct {
	name, what string
	path       string      // absolute
	info       fs.FileInfo // nil where the file is not there yet
}

func newClaim(name, what string) claim {
	c := claim{name: name, what: what}
	c.path, _ = filepath.Abs(name)
	if info, err := os.Stat(name); err == nil {
		c.info = info
	}
	return c
}

// same reports whether both are one regular file, by whatever names.
func (c *claim) same(d *claim) bool {
	if c.info != nil && d.info != nil {
		return c.info.Mode().IsRegular() && os.SameFile(c.info, d.info)
	}
	return c.info == nil && d.info == nil && c.path == d.path
}

// claims are the files of one command.
type claims []claim

// reads notes a file that is read.
func (cs *claims) reads(c claim) {
	if !slices.ContainsFunc(*cs, func(d claim) bool { return d.path == c.path && d.what == c.what }) {
		*cs = append(*cs, c)
	}
}

// writes notes a file that is to be written, and refuses one that the command
// reads or writes already: what that holds would be lost.
func (cs *claims) writes(name, what string) error {
	c := newClaim(name, what)
	for i := range *cs {
		d := &(*cs)[i]
		if !c.same(d) {
			continue
		}
		is := ""
		if d.name != name {
			is = " (the same file as " + filepath.ToSlash(d.name) + ")"
		}
		return fmt.Errorf("%s%s is %s and would be overwritten as %s: name another file", filepath.ToSlash(name), is, d.what, what)
	}
	*cs = append(*cs, c)
	return nil
}

// writable is writes for a file that is written at the end of the command:
// where that cannot be, the command need not begin.
func (cs *claims) writable(name, what string) error {
	if err := cs.writes(name, what); err != nil {
		return err
	}
	return writeError(name, atomicfile.Check(name))
}

// read reads a file that the program consists of, as far as the limit of its
// language.
func (s *Source) read(name string) ([]byte, error) {
	if name == stdinName && s.File == "-" {
		return s.readStdin()
	}
	f, err := openInput(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := newClaim(name, "a file of the program")
	if name == s.File {
		c.what = "the program"
	}
	if err := s.noteInput(c); err != nil {
		return nil, err
	}
	data, err := s.readAll(f)
	if err != nil {
		return nil, inputError(name, err)
	}
	return data, nil
}

// inputError is an error of reading a file by name.
func inputError(name string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return err
	}
	return &fs.PathError{Op: "read", Path: name, Err: err}
}

func (s *Source) readStdin() ([]byte, error) {
	if s.stdin != nil {
		return s.stdin, nil
	}
	if f, ok := s.Stdin.(*os.File); ok {
		c := claim{name: stdinName, what: "the program"}
		if info, err := f.Stat(); err == nil {
			c.info = info
		}
		if err := s.noteInput(c); err != nil {
			return nil, err
		}
	}
	data, err := s.readAll(s.Stdin)
	if err != nil {
		return nil, inputError(stdinName, err)
	}
	s.stdin = append([]byte{}, data...)
	return s.stdin, nil
}

// noteInput notes a file of the program, and refuses one that standard output
// goes to.
func (s *Source) noteInput(c claim) error {
	s.files.reads(c)
	out := claim{info: s.Stdout}
	if c.info != nil && s.Stdout != nil && c.same(&out) {
		return inputError(c.name, errors.New("it is standard output as well, which would overwrite it"))
	}
	return nil
}

// readAll reads r up to the limit of the program's language.
func (s *Source) readAll(r io.Reader) ([]byte, error) {
	limit, kind := maxText, "a program in MLIR or HLO"
	if s.inPP() {
		limit, kind = syntax.MaxSource, "a .pp file"
	}
	tooLong := fmt.Errorf("it has more than %d bytes, the most that is read of %s", limit, kind)
	var data bytes.Buffer
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			if info.Size() > int64(limit) {
				return nil, tooLong
			}
			data.Grow(int(info.Size()) + bytes.MinRead) // so that it need not grow
		}
	}
	if !s.inPP() {
		r = text{r}
	}
	_, err := data.ReadFrom(io.LimitReader(r, int64(limit)+1))
	if err == nil && data.Len() > limit {
		return nil, tooLong
	}
	return data.Bytes(), err
}

// A text is read up to the first byte that no text has: what is none, such as
// the content of a device, ends there.
type text struct{ io.Reader }

func (t text) Read(b []byte) (int, error) {
	n, err := t.Reader.Read(b)
	if bytes.IndexByte(b[:n], 0) >= 0 {
		return n, errors.New("it is no text: it has a byte 0x00")
	}
	return n, err
}

// inPP reports whether the program is a .pp file.
func (s *Source) inPP() bool {
	if s.Lang != "" || s.File == "-" {
		return s.Lang == "pp" || s.Lang == ""
	}
	return strings.EqualFold(filepath.Ext(s.File), ".pp")
}

// openInput opens a file of a program: a regular file, or what the process was
// started with, by the name of its descriptor. Others, such as devices and
// named pipes, may never end or never begin.
func openInput(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if kind := special(info.Mode()); kind != "" && (info.IsDir() || !descriptor(name)) {
		return nil, inputError(name, fmt.Errorf("it is %s, want a regular file; - is standard input", kind))
	}
	return os.Open(name)
}

// special says what is no regular file; "" where it is one.
func special(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "no file with content"
}

// descriptor reports whether name is that of an open file of this process, as
// a shell's <(…) has it.
func descriptor(name string) bool {
	name = filepath.Clean(name)
	return name == "/dev/stdin" || strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/proc/self/fd/")
}

// include reads a file that a .pp file includes: a regular .pp file in the
// folder of the program or below it, or in one of the include folders or below
// that, wherever symbolic links lead.
func (s *Source) include(name string) ([]byte, error) {
	real, err := resolved(name)
	if err != nil {
		return nil, err
	}
	for _, n := range []string{name, real} {
		if !strings.EqualFold(filepath.Ext(n), ".pp") {
			return nil, fmt.Errorf("%s is no .pp file", filepath.ToSlash(n))
		}
	}
	root := "."
	if s.File != "-" {
		root = filepath.Dir(s.File)
	}
	if !slices.ContainsFunc(append([]string{root}, s.IncludeDirs...), func(dir string) bool { return below(real, dir) }) {
		return nil, fmt.Errorf("it is outside of the folder of the program, %s; --include-dir %s admits it", filepath.ToSlash(root), filepath.ToSlash(filepath.Dir(real)))
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, err
	}
	if kind := special(info.Mode()); kind != "" {
		return nil, fmt.Errorf("it is %s, want a regular file", kind)
	}
	return s.read(name)
}

// below reports whether the file is in dir or below it, wherever symbolic links
// lead.
func below(file, dir string) bool {
	file, err := resolved(file)
	if err != nil {
		return false
	}
	if dir, err = resolved(dir); err != nil {
		return false
	}
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel)
}

// resolved is the one absolute name of a file that has no symbolic link in it.
func resolved(name string) (string, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(name)
}

// checkIncludeDirs finds include folders that are none.
func (s *Source) checkIncludeDirs() error {
	for _, dir := range s.IncludeDirs {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = errors.New("is no folder")
		}
		if err != nil {
			return fmt.Errorf("--include-dir %w", fileError(writeError(dir, err)))
		}
	}
	return nil
}

// WriteFile makes the file hold data, whole or not at all.
func WriteFile(ctx context.Context, path string, data []byte) error {
	return orStopped(ctx, writeError(path, atomicfile.WriteBytes(ctx, path, data)))
}
