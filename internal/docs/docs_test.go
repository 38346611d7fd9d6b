// Package docs holds the tests of the documents in docs.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ppc/internal/shared"
)

// An excerpt is a block of Go code whose introduction names a source file and
// ends with a colon.
var excerpt = regexp.MustCompile("(?m)`([^`\n]+\\.go)`:\n\n```go\n((?s:.*?))```")

// Every excerpt in a document stands, word for word, in the file that the
// sentence before it names.
func TestExcerpts(t *testing.T) {
	root := shared.Root(t)
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no documents (%v)", err)
	}
	for _, path := range paths {
		doc, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range excerpt.FindAllStringSubmatch(string(doc), -1) {
			source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m[1])))
			if err != nil {
				t.Errorf("%s: %v", filepath.Base(path), err)
				continue
			}
			if !strings.Contains(string(source), m[2]) {
				t.Errorf("%s: this is not in %s:\n%s", filepath.Base(path), m[1], m[2])
			}
		}
	}
}

// Whoever adds an op can trust all of the code that is shown.
func TestAddingAnOp(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(shared.Root(t), "docs", "adding-an-op.md"))
	if err != nil {
		t.Fatal(err)
	}
	if blocks, checked := strings.Count(string(doc), "```go\n"), len(excerpt.FindAll(doc, -1)); blocks != checked || blocks == 0 {
		t.Errorf("%d blocks of code, %d of them say where they stand", blocks, checked)
	}
}

// Every Go file that a document names exists.
func TestFileNames(t *testing.T) {
	root := shared.Root(t)
	name := regexp.MustCompile("`([a-z_/]+/[a-z_]+\\.go)`")
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		doc, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range name.FindAllStringSubmatch(string(doc), -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s, which is not there", filepath.Base(path), m[1])
			}
		}
	}
}
