package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
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
		if err := WriteBytes(name, []byte(text)); err != nil {
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
	if err := WriteBytes(name, []byte("old")); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	err := Write(name, func(w io.Writer) error {
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
	if err := WriteBytes(file, []byte("old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	if err := WriteBytes(link, []byte("new")); err != nil {
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
	if err := WriteBytes(name, nil); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), name+":") {
		t.Errorf("error %v, want one that says %s is not there", err, name)
	}
}
