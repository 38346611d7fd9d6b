package driver_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ppc/driver"
	"ppc/internal/diag"
	"ppc/internal/golden"
)

var meshLine = regexp.MustCompile(`(?m)^mesh \{ (.*) \}$`)

// Every command of MaxText that is collected becomes a program that loads, or is
// refused by the names of its keys. Of every sixth a step of training is lowered,
// with CI=true of all.
func TestImportCommands(t *testing.T) {
	path := filepath.Join("..", "testdata", "maxtext", "commands.txt")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	commands := 0
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if strings.HasPrefix(line, "> ") {
			continue
		}
		out = append(out, line)
		if line != "" && line[0] != '#' {
			commands++
			lower := commands%6 == 0 || os.Getenv("CI") == "true"
			out = append(out, outcome(t, strings.Fields(strings.ReplaceAll(line, "'", "")), lower)...)
		}
	}
	if commands < 50 {
		t.Errorf("%d commands", commands)
	}
	got := strings.Join(out, "\n") + "\n"
	if golden.Updating() {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(string(text), got); diff != "" {
		t.Errorf("%s (-file +now):\n%s", path, diff)
	}
}

// outcome is what becomes of a command, in lines.
func outcome(t *testing.T, set []string, lower bool) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "imported.pp")
	devices := 8
	for _, s := range set {
		if strings.HasPrefix(s, "compile_topology=") {
			devices = 0
		}
	}
	r, err := driver.Import(t.Context(), driver.ImportOptions{Set: set, Devices: devices})
	var list diag.List
	if errors.As(err, &list) {
		var out []string
		for _, d := range list {
			line := "> refused: " + d.Msg
			if d.Hint != "" {
				line += " (" + d.Hint + ")"
			}
			out = append(out, line)
		}
		return out
	} else if err != nil {
		t.Errorf("%v: %v", set, err)
		return nil
	}
	if lower {
		if err := os.WriteFile(file, []byte(r.Text), 0o666); err != nil {
			t.Fatal(err)
		}
		src := &driver.Source{File: file}
		if strings.Contains(r.Text, "scan_layers = false") { // as long as there are layers
			src.Set = []string{"pipeline.scan_layers=true"}
		}
		if _, err := driver.Lower(t.Context(), src, driver.LowerOptions{}); err != nil {
			t.Errorf("%v: %v", set, err)
		}
	}
	mesh := "one device"
	if m := meshLine.FindStringSubmatch(r.Text); m != nil {
		mesh = m[1]
	}
	out := []string{fmt.Sprintf("> %s", mesh)}
	for _, w := range r.Warnings {
		out = append(out, "> warning: "+w.Msg+" ["+w.Warning+"]")
	}
	return out
}

// A configuration is not overwritten by its program, and what is not there is named.
func TestImportFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "base.yml")
	if err := os.WriteFile(file, []byte("steps: 3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		opts driver.ImportOptions
		want string
	}{
		{driver.ImportOptions{Files: []string{file}, Out: file, Devices: 8}, "is a configuration and would be overwritten as the program: name another file"},
		{driver.ImportOptions{Files: []string{file + ".yml"}, Devices: 8}, "base.yml.yml: cannot be read: no such file or directory"},
		{driver.ImportOptions{Files: []string{filepath.Dir(file)}, Devices: 8}, "cannot be read: it is a folder, want a regular file"},
	} {
		if _, err := driver.Import(t.Context(), c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.opts, err, c.want)
		}
	}
}
