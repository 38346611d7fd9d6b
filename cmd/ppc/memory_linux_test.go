package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// writeChain writes a program of n ops, each of two values before it, that begins with a
// line and has attributes of every op, and returns the length of its text. The text is
// never in memory: what a command takes at most is no less than what its parent has.
func writeChain(t *testing.T, file string, n int, line, attrs string) int {
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := bufio.NewWriter(f)
	b.WriteString(line + "func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {\n")
	last, before := "%b", "%a"
	for i := range n {
		fmt.Fprintf(b, "    %%%d = stablehlo.%s %s, %s%s : tensor<4xf32>\n", i, []string{"add", "multiply", "maximum"}[i%3], last, before, attrs)
		last, before = fmt.Sprintf("%%%d", i), last
	}
	fmt.Fprintf(b, "    return %s : tensor<4xf32>\n}\n", last)
	if err := b.Flush(); err != nil {
		t.Fatal(err)
	}
	length, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		t.Fatal(err)
	}
	return int(length)
}

// A command takes no more memory than so many times the text of a large program, the 20 MB
// of ppc itself included, which are one time for a text of this size.
func TestMemoryOfCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a large program")
	}
	type bound struct {
		command string
		times   int
	}
	for _, c := range []struct {
		name, line, attrs string
		bounds            []bound
	}{
		{"a chain of ops", "", "", []bound{{"check", 11}, {"lower", 13}, {"run", 15}}},
		{"a chain of ops with shardings", "sdy.mesh @mesh = <[\"x\"=2]>\n", ` {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}`,
			[]bound{{"check", 14}, {"lower", 15}}},
	} {
		dir := t.TempDir()
		length := writeChain(t, filepath.Join(dir, "large.mlir"), 300_000, c.line, c.attrs)
		for _, b := range c.bounds {
			cmd := ppc(t, dir, b.command, "large.mlir")
			cmd.Stdout = io.Discard
			if code, _, diagnostics := exitOf(t, cmd); code != 0 {
				t.Fatalf("ppc %s: exit status %d: %s", b.command, code, diagnostics)
			}
			most := int(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) << 10
			t.Logf("ppc %s takes %d MiB for %d MiB of %s, %.1f times as much", b.command, most>>20, length>>20, c.name, float64(most)/float64(length))
			if most > b.times*length {
				t.Errorf("ppc %s takes %d MiB for %s, a text of %d, want at most %d times as much", b.command, most>>20, c.name, length, b.times)
			}
		}
	}
}
