package main

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"ppc/driver"
	"ppc/internal/shared"
	"ppc/internal/tensorfile"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ppc": main})
}

// TestScript runs the archives of testdata/script: commands, and the files
// that they work on. PPC_UPDATE=1 rewrites what they are compared with.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata/script",
		UpdateScripts:       shared.Setting(t, "PPC_UPDATE") == "1",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"arrays": arrays,
			"halve":  halve,
		},
		Setup: func(env *testscript.Env) error {
			root, err := filepath.Abs("../..")
			env.Setenv("ROOT", root)
			env.Setenv("TMPDIR", env.WorkDir)
			return err
		},
	})
}

// exits runs a command and demands an exit status: exits 1 ppc check a.pp.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

var arrayArg = regexp.MustCompile(`^(.+)=([a-z0-9]+)\[([0-9,]*)\]$`)

// arrays writes arrays of zeros: arrays FILE name=f32[2,3] ….
func arrays(ts *testscript.TestScript, _ bool, args []string) {
	sizes := map[string]int{"f64": 8, "f32": 4, "bf16": 2, "i64": 8, "i32": 4, "i8": 1}
	var named []tensorfile.Named
	for _, arg := range args[1:] {
		m := arrayArg.FindStringSubmatch(arg)
		if m == nil || sizes[m[2]] == 0 {
			ts.Fatalf("%q is no array, such as x=f32[2,3]", arg)
		}
		n, shape := sizes[m[2]], []int{}
		for field := range strings.SplitSeq(m[3], ",") {
			if field == "" {
				continue
			}
			d, err := strconv.Atoi(field)
			ts.Check(err)
			shape, n = append(shape, d), n*d
		}
		named = append(named, tensorfile.Named{Name: m[1], Array: tensorfile.Array{DType: m[2], Shape: shape, Data: make([]byte, n)}})
	}
	file, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(tensorfile.Write(file, args[0], named))
	ts.Check(file.Close())
}

// halve cuts files in the middle.
func halve(ts *testscript.TestScript, _ bool, args []string) {
	for _, file := range args {
		info, err := os.Stat(ts.MkAbs(file))
		ts.Check(err)
		ts.Check(os.Truncate(ts.MkAbs(file), info.Size()/2))
	}
}

// Every command is in the scripts, and every exit status.
func TestScriptsAreComplete(t *testing.T) {
	files, err := filepath.Glob("../../testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts")
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, want := range []string{"ppc lower", "ppc run", "ppc check", "ppc lint", "ppc test", "ppc report", "ppc diff", "ppc view", "ppc fmt", "ppc passes", "ppc version", "exits 1 ", "exits 2 "} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no script has %q", want)
		}
	}
}

func TestPaint(t *testing.T) {
	text := "a.pp:1:2: wrong\n  x = y\n      ^ cure"
	if got := paint(text, false); got != text {
		t.Errorf("without colour: %q", got)
	}
	want := bold + "a.pp:1:2: wrong" + plain + "\n  x = y\n" + red + "      ^ cure" + plain
	if got := paint(text, true); got != want {
		t.Errorf("with colour: %q, want %q", got, want)
	}
}

func TestNumbersAsJSON(t *testing.T) {
	for v, want := range map[float64]string{1.5: "1.5", 1e300: "1e+300"} {
		if got, err := number(v).MarshalJSON(); err != nil || string(got) != want {
			t.Errorf("%g is %s (%v), want %s", v, got, err, want)
		}
	}
	inf := number(math.Inf(1))
	if got, err := inf.MarshalJSON(); err != nil || string(got) != `"+Inf"` {
		t.Errorf("infinity is %s (%v)", got, err)
	}
}

// A failing standard output is an error, not silence.
func TestFullDisk(t *testing.T) {
	var stderr strings.Builder
	code := run(context.Background(), []string{"version"}, strings.NewReader(""), full{}, &stderr)
	if code != 1 || !strings.Contains(stderr.String(), "disk full") {
		t.Errorf("exit status %d, %q", code, stderr.String())
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// A run that would never end stops within a second of the interrupt.
func TestInterrupt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "forever.mlir")
	if err := os.WriteFile(file, []byte(forever), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	start := time.Now()
	var stdout, stderr strings.Builder
	code := run(ctx, []string{"run", file}, strings.NewReader(""), &stdout, &stderr)
	if code != driver.ExitInterrupted {
		t.Errorf("exit status %d, want %d: %s", code, driver.ExitInterrupted, stderr.String())
	}
	if took := time.Since(start); took > 1200*time.Millisecond {
		t.Errorf("it took %s", took)
	}
}

const forever = `
func.func @main(%arg0: tensor<i32>) -> tensor<i32> {
  %c = stablehlo.constant dense<2> : tensor<i32>
  %0 = stablehlo.while(%i = %arg0) : tensor<i32>
  cond {
    %1 = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.minimum %i, %arg0 : tensor<i32>
    stablehlo.return %2 : tensor<i32>
  }
  return %0 : tensor<i32>
}
`

// run is the program without the process: it returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &process{ctx, context.WithoutCancel(ctx), stdin, stdout, stderr, nil}
	return p.run(args)
}
