package atomicfile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWriteReplaces(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"first", "second"} {
		if err := WriteBytes(t.Context(), name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := read(t, name); got != text {
			t.Fatalf("holds %q, want %q", got, text)
		}
	}
}

func TestFailureLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	if err := WriteBytes(t.Context(), name, []byte("old")); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	err := Write(t.Context(), name, func(w io.Writer) error {
		io.WriteString(w, "half")
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatalf("error %v, want %v", err, boom)
	}
	if got := read(t, name); got != "old" {
		t.Errorf("holds %q, want the old content", got)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("%d files are left, want 1", len(files))
	}
}

func TestSymlinkStays(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := WriteBytes(t.Context(), file, []byte("old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	if err := WriteBytes(t.Context(), link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
	if got := read(t, file); got != "new" {
		t.Errorf("the target holds %q, want the new content", got)
	}
}

func TestMissingFolder(t *testing.T) {
	name := filepath.Join(t.TempDir(), "no", "f")
	if err := WriteBytes(t.Context(), name, nil); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), name+":") {
		t.Errorf("error %v, want one that says %s is not there", err, name)
	}
}

func TestDanglingSymlinkStays(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.Symlink("file", link); err != nil {
		t.Skip(err)
	}
	if err := WriteBytes(t.Context(), link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
	if got := read(t, file); got != "new" {
		t.Errorf("the target holds %q, want the new content", got)
	}
}

func TestPermissions(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := WriteBytes(t.Context(), name, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(name); info.Mode().Perm() != 0o640 {
		t.Errorf("permissions %o, want those of the file before", info.Mode().Perm())
	}
	if os.Getuid() == 0 {
		return // who may write to everything
	}
	if err := os.Chmod(name, 0o440); err != nil {
		t.Fatal(err)
	}
	if err := WriteBytes(t.Context(), name, []byte("newer")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error %v, want one of a file that may not be written to", err)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	if err := Check(filepath.Join(dir, "f")); err != nil {
		t.Error(err)
	}
	if left := entries(t, dir); len(left) > 0 {
		t.Errorf("checking left %v", left)
	}
	for _, name := range []string{dir, filepath.Join(dir, "no", "f")} {
		if err := Check(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// The end of the context stops the writing, in the middle of one large write
// too, and of one that blocks.
func TestStop(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	if err := WriteBytes(t.Context(), name, []byte("old")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := Write(ctx, name, func(w io.Writer) error {
		cancel()
		n, err := w.Write(make([]byte, 10*chunk))
		if n > 0 {
			t.Errorf("%d bytes were written after the end of the context", n)
		}
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if got, left := read(t, name), entries(t, dir); got != "old" || len(left) != 1 {
		t.Errorf("holds %q, the folder %v", got, left)
	}
	if err := WriteBytes(ctx, filepath.Join(dir, "g"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// What a killed writer has left is removed by the next writer of the same
// name, unless a process has it locked; other names are let be.
func TestStale(t *testing.T) {
	if !locks {
		t.Skip("there are no locks")
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	keep := []string{".f.live.ppc", ".f.12", ".f.1.2.ppc", ".g.12.ppc", "f.12.ppc"}
	for _, file := range append(keep, ".f.12.ppc", ".f.4294967295.ppc", ".f.7.ppc") {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	live, err := os.Open(filepath.Join(dir, ".f.7.ppc"))
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if mine, err := lock(live); !mine || err != nil {
		t.Fatal(mine, err)
	}
	if err := WriteBytes(t.Context(), name, nil); err != nil {
		t.Fatal(err)
	}
	want := append(keep, ".f.7.ppc", "f")
	slices.Sort(want)
	if got := entries(t, dir); !slices.Equal(got, want) {
		t.Errorf("the folder has %v, want %v", got, want)
	}
}

func TestLongNames(t *testing.T) {
	dir := t.TempDir()
	name := strings.Repeat("ü", 127)
	if err := WriteBytes(t.Context(), filepath.Join(dir, name), nil); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, dir); !slices.Equal(got, []string{name}) {
		t.Errorf("the folder has %q", got)
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}
