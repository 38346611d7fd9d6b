package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// chain is a program of n ops, each of two values before it.
func chain(n int) string {
	var b strings.Builder
	b.WriteString("func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {\n")
	last, before := "%b", "%a"
	for i := range n {
		fmt.Fprintf(&b, "    %%%d = stablehlo.%s %s, %s : tensor<4xf32>\n", i, []string{"add", "multiply", "maximum"}[i%3], last, before)
		last, before = fmt.Sprintf("%%%d", i), last
	}
	fmt.Fprintf(&b, "    return %s : tensor<4xf32>\n}\n", last)
	return b.String()
}

// A command takes no more memory than so many times the text of a large program, the 20 MB
// of ppc itself included, which are one time for a text of this size.
func TestMemoryOfCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a large program")
	}
	dir := t.TempDir()
	text := chain(300_000)
	if err := os.WriteFile(filepath.Join(dir, "large.mlir"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		times   int
	}{{"check", 11}, {"lower", 13}, {"run", 15}} {
		cmd := ppc(t, dir, c.command, "large.mlir")
		cmd.Stdout = io.Discard
		if code, _, diagnostics := exitOf(t, cmd); code != 0 {
			t.Fatalf("ppc %s: exit status %d: %s", c.command, code, diagnostics)
		}
		most := int(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) << 10
		t.Logf("ppc %s takes %d MiB for %d MiB of text, %.1f times as much", c.command, most>>20, len(text)>>20, float64(most)/float64(len(text)))
		if most > c.times*len(text) {
			t.Errorf("ppc %s takes %d MiB for a text of %d, want at most %d times as much", c.command, most>>20, len(text)>>20, c.times)
		}
	}
}
