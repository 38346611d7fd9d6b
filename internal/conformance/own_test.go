package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ppc/internal/golden"
)

// What the runners say of a manifest of the module's own: units that pass and
// fail, are listed and are not, and whose ops, types or files are unknown.
func TestOwnManifest(t *testing.T) {
	units, err := Read(filepath.Join("testdata", "manifest.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []*Outcome
	var b strings.Builder
	places := new(places)
	for _, r := range runners(places) {
		list, err := ReadList(filepath.Join("testdata", "listed.tsv"))
		if err != nil {
			t.Fatal(err)
		}
		list.File = "listed.tsv"
		outcomes = append(outcomes, r.Run(units, list))
	}
	fmt.Fprintf(&b, "%s\n%s\n", places, Table(outcomes...))
	for _, o := range outcomes {
		for _, fault := range o.Faults() {
			b.WriteString(strings.ReplaceAll(fault, "\n", "\n  ") + "\n")
		}
	}
	for _, o := range outcomes {
		o.List.Update(o)
		fmt.Fprintf(&b, "\n%s, updated:\n%s", o.Runner.Name, o.List.Text())
		if again := o.Runner.Run(units, o.List); len(again.Faults()) > 0 {
			t.Errorf("%s: with the updated list there are faults: %q", o.Runner.Name, again.Faults())
		}
	}
	file := filepath.Join("testdata", "own.golden")
	if golden.Updating() {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// No list excuses a unit that panics or does not end.
func TestBrokenRunner(t *testing.T) {
	units := []Unit{{Path: "panics", Kind: "k"}, {Path: "hangs", Kind: "k"}, {Path: "waits", Kind: "k"}, {Path: "fails", Kind: "k"}}
	forever := make(chan bool)
	r := &Runner{Name: "r", Limit: 50 * time.Millisecond, Kinds: []Kind{{"k", func(ctx context.Context, u Unit) error {
		switch u.Path {
		case "panics":
			panic("at the disco")
		case "hangs":
			<-forever
		case "waits":
			<-ctx.Done()
			return ctx.Err()
		}
		return errors.New("as listed")
	}}}}
	list := &List{File: "f.tsv", Reasons: make(map[Place]string)}
	for _, u := range units {
		list.Reasons[u.Place()] = "known"
	}
	faults := r.Run(units, list).Faults()
	wants := []string{"r panics#0 panics: at the disco", "r hangs#0 does not end within 50ms", "r waits#0 does not end within 50ms"}
	if len(faults) != len(wants) {
		t.Fatalf("got %q", faults)
	}
	for i, want := range wants {
		if !strings.HasPrefix(faults[i], want) {
			t.Errorf("got %q, want %q", faults[i], want)
		}
	}
}

// A manifest or a list that cannot be read says where.
func TestBadTables(t *testing.T) {
	for text, want := range map[string]string{
		"path\tsegment\tkind\tnotes\na\t0\tk\t\na\t0\tl\t\n":   ":3: there are two rows for a#0",
		"path\tsegment\tnotes\n":                               ":1: there is no column kind among path, segment, notes",
		"path\tsegment\tkind\tnotes\na\t0\tk\n":                ":2: 3 columns, want 4",
		"path\tsegment\tkind\tnotes\na\t0\tk\t\n\na\tx\tk\t\n": `:4: "x" is no segment`,
		"path\tsegment\tkind\tnotes\n":                         ": there are no units",
	} {
		file := filepath.Join(t.TempDir(), "manifest.tsv")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(file); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"a\t0\treason\n":                            ":1: want the columns path, segment, reason",
		listHeader + "a\t0\n":                       ":2: want a path, a segment and a reason",
		listHeader + "a\t0\t \n":                    ":2: want a path, a segment and a reason",
		listHeader + "a\tx\treason\n":               `:2: "x" is no segment`,
		listHeader + "a\t0\treason\na\t0\treason\n": ":3: a#0 is listed twice",
	} {
		file := filepath.Join(t.TempDir(), "list.tsv")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadList(file); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
