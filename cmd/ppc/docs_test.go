package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ppc/internal/shared"
)

var console = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// Every command that a document shows prints what the document shows: blocks
// marked console, where a line that starts with "$ " is a command run at the
// module's root, and a line … stands for any number of lines.
func TestDocuments(t *testing.T) {
	t.Chdir(shared.Root(t))
	paths, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, path := range append(paths, "README.md") {
		doc, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range console.FindAllSubmatch(doc, -1) {
			for _, c := range commandsIn(string(block[1])) {
				shown++
				t.Run(path+"/"+c.line, func(t *testing.T) { c.check(t) })
			}
		}
	}
	if shown == 0 {
		t.Error("the documents show no command")
	}
}

// A shownCommand is a command and what it prints.
type shownCommand struct {
	line string
	want string
}

func commandsIn(block string) []shownCommand {
	var cs []shownCommand
	for line := range strings.Lines(block) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			cs = append(cs, shownCommand{line: strings.TrimSpace(command)})
			continue
		}
		if len(cs) > 0 {
			cs[len(cs)-1].want += line
		}
	}
	return cs
}

func (c shownCommand) check(t *testing.T) {
	line := strings.TrimPrefix(strings.TrimPrefix(c.line, "go run ./cmd/"), "ppc ")
	if line == c.line {
		if c.line == "go test ./..." {
			return // this is it
		}
		t.Fatalf("a document shows %q, which is no command of ppc", c.line)
	}
	line, _, _ = strings.Cut(line, "  #")
	var stdout, stderr bytes.Buffer
	run(t.Context(), strings.Fields(line), strings.NewReader(""), &stdout, &stderr)
	got := stdout.String() + stderr.String()
	var pattern strings.Builder
	pattern.WriteString("(?s)^")
	for line := range strings.Lines(c.want) {
		if strings.TrimSpace(line) == "…" {
			pattern.WriteString(".*?")
			continue
		}
		text := strings.TrimRight(line, "\n")
		for i, part := range strings.Split(text, "…") { // … inside of a line: the rest of it, or a part
			if i > 0 {
				pattern.WriteString("[^\n]*?")
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		pattern.WriteString("\n")
	}
	pattern.WriteString("$")
	if !regexp.MustCompile(pattern.String()).MatchString(got) {
		t.Errorf("$ %s\nprints\n%s\nthe document shows\n%s", c.line, got, c.want)
	}
}
