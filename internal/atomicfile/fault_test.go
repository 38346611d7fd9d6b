package atomicfile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// A faulty disk has a fault at its n-th step, counted from 1.
type faulty struct {
	system
	n     *int
	fault func(step string) error
}

func (d faulty) step(name string) error {
	if *d.n--; *d.n == 0 {
		return d.fault(name)
	}
	return nil
}

func (d faulty) create(name string, mode fs.FileMode) (file, error) {
	if err := d.step("create"); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f, err := d.system.create(name, mode)
	return faultyFile{f, d}, err
}

func (d faulty) lock(f file) (bool, error) {
	if err := d.step("lock"); err != nil {
		return false, err
	}
	return d.system.lock(f.(faultyFile).file)
}

func (d faulty) rename(from, to string) error {
	if err := d.step("rename"); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	if err := d.system.rename(from, to); err != nil {
		return err
	}
	return d.step("renamed")
}

func (d faulty) remove(name string) error {
	if err := d.step("remove"); err != nil {
		return err
	}
	return d.system.remove(name)
}

type faultyFile struct {
	file
	d faulty
}

// Write writes half of the data where it fails.
func (f faultyFile) Write(data []byte) (int, error) {
	if err := f.d.step("write"); err != nil {
		n, _ := f.file.Write(data[:len(data)/2])
		return n, err
	}
	return f.file.Write(data)
}

func (f faultyFile) Chmod(mode fs.FileMode) error {
	if err := f.d.step("chmod"); err != nil {
		return err
	}
	return f.file.Chmod(mode)
}

func (f faultyFile) Sync() error {
	if err := f.d.step("sync"); err != nil {
		return err
	}
	return f.file.Sync()
}

var oldContent, newContent = bytes.Repeat([]byte("old"), chunk), bytes.Repeat([]byte("new!"), chunk)

// save writes in several parts, on a disk with a fault at step n.
func save(name string, n int, fault func(step string) error) error {
	return writeOn(context.Background(), faulty{n: &n, fault: fault}, name, func(w io.Writer) error {
		for part := range slices.Chunk(newContent, chunk+1) {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		return nil
	})
}

var errFull = errors.New("no space left on device")

// A save that fails at any step leaves the old file and nothing else.
func TestEveryStepFails(t *testing.T) {
	seen := make(map[string]bool)
	for n := 1; ; n++ {
		dir := t.TempDir()
		name := filepath.Join(dir, "f")
		if err := os.WriteFile(name, oldContent, 0o644); err != nil {
			t.Fatal(err)
		}
		failed := ""
		err := save(name, n, func(step string) error {
			failed = step
			return errFull
		})
		if failed == "" {
			break
		}
		seen[failed] = true
		want := oldContent
		switch failed {
		case "lock": // a file system without locks does as well
			want = newContent
		case "renamed": // the system's word for failure may come too late
			want = newContent
			fallthrough
		default:
			if !errors.Is(err, errFull) {
				t.Errorf("%s fails: error %v", failed, err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s fails: the file is not what it should be (%v)", failed, err)
		}
		if left := entries(t, dir); len(left) != 1 {
			t.Errorf("%s fails: the folder has %v", failed, left)
		}
	}
	for _, step := range []string{"create", "lock", "write", "chmod", "sync", "rename"} {
		if !seen[step] {
			t.Errorf("no save failed at %s", step)
		}
	}
}

const (
	killFile = "ATOMICFILE_TEST_FILE" // what the process saves
	killStep = "ATOMICFILE_TEST_STEP" // where it is killed, 0 for nowhere: it saves again and again
)

// TestMain is also the process that is killed.
func TestMain(m *testing.M) {
	name := os.Getenv(killFile)
	if name == "" {
		os.Exit(m.Run())
	}
	n, _ := strconv.Atoi(os.Getenv(killStep))
	for {
		err := save(name, n, func(string) error {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill()
			}
			time.Sleep(time.Minute)
			return err
		})
		if err != nil {
			os.Exit(1)
		}
		if n > 0 {
			os.Exit(0)
		}
	}
}

func killed(t *testing.T, name string, step int) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe)
	c.Env = append(os.Environ(), killFile+"="+name, killStep+"="+strconv.Itoa(step))
	return c
}

// complete demands that a killed writer has left the old file or the new one, and
// that the next save leaves that alone.
func full(t *testing.T, when, name string) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(got, oldContent) && !bytes.Equal(got, newContent) {
		t.Errorf("%s: %d bytes that are neither old nor new (%v)", when, len(got), err)
	}
	if err := WriteBytes(t.Context(), name, oldContent); err != nil {
		t.Error(err)
	}
	if left := entries(t, filepath.Dir(name)); locks && len(left) != 1 {
		t.Errorf("%s: after the next save the folder has %v", when, left)
	}
}

// A writer that is killed at any step leaves the old file or the new one, and
// the next save removes what else it left.
func TestKilledAtEveryStep(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, oldContent, 0o644); err != nil {
		t.Fatal(err)
	}
	for n := 1; ; n++ {
		err := killed(t, name, n).Run()
		full(t, "step "+strconv.Itoa(n), name)
		if err == nil { // it had fewer steps
			if n < 8 {
				t.Errorf("a save has %d steps", n-1)
			}
			break
		}
	}
}

// The same at any time.
func TestKilledAtRandom(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, oldContent, 0o644); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		c := killed(t, name, 0)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		wait := time.Duration(5+rand.IntN(60)) * time.Millisecond
		time.Sleep(wait)
		c.Process.Kill()
		c.Wait()
		full(t, wait.String(), name)
	}
}
