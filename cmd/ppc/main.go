// Ppc compiles models into pipelined programs, one per device, and runs them.
//
//	ppc lower FILE     lower a program and print it
//	ppc run   FILE     lower a program and run it
//	ppc bench FILE     measure a program
//	ppc check FILE...  check programs
//	ppc lint  FILE...  find transfers and memory that programs need not pay for
//	ppc test  FILE...  run StableHLO programs that hold their own results
//	ppc import maxtext make a .pp program of a configuration of MaxText
//	ppc report FILE    print what a program does: schedule, memory, collectives
//	ppc view   FILE    write what each pass changed as a page
//	ppc diff   A [B]   print in what two programs differ
//	ppc export FILE    write parameters under their names in files
//	ppc fmt   FILE...  format .pp files
//	ppc compile FILE   compile a program ahead of time for devices that need not be there
//	ppc launch FILE    write a job that a cluster with JAX runs
//	ppc engines        list what programs can run on
//	ppc passes         print the pass table
//	ppc version        print the version
//
// This package has flags, output and exit codes; what they stand for is in
// package driver.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"ppc/driver"
	"ppc/internal/diag"
	"ppc/internal/heap"
	"ppc/runtime/pjrt"
)

func main() {
	pjrt.Serve()
	limit := heap.CollectFrom(64 << 20)
	ctx, saving := listen()
	p := &process{ctx, saving, os.Stdin, os.Stdout, os.Stderr, limit}
	os.Exit(p.run(os.Args[1:]))
}

// A process is what a command has of the system.
type process struct {
	ctx, saving    context.Context // the end of the command, and of what it saves then
	stdin          io.Reader
	stdout, stderr io.Writer
	heap           *heap.Limit // may be nil
}

func (p *process) run(args []string) int {
	started := time.Now()
	out := &sink{ctx: p.ctx, w: p.stdout, name: "standard output", needed: true}
	diagnostics := &sink{ctx: p.ctx, w: p.stderr, name: "standard error"}
	std := &streams{ctx: p.ctx, saving: p.saving, stdin: p.stdin, out: out, stdout: bufio.NewWriter(out), stderr: diagnostics, args: args, heap: p.heap, end: func() {}}
	if f, ok := p.stdout.(*os.File); ok {
		std.stdoutFile, _ = f.Stat()
	}
	err := std.run(started)
	defer std.end()
	flushed := std.stdout.Flush()
	if flushed != nil && !errors.Is(err, flushed) {
		err = errors.Join(err, flushed)
	}
	if errors.Is(flushed, syscall.EPIPE) { // as a process that SIGPIPE ends
		return exitPipe
	}
	if err != nil {
		std.report(err)
	}
	code := driver.ExitCode(err)
	if lost := diagnostics.end(); lost != nil && code == driver.ExitDone {
		code = driver.ExitInput
	}
	return code
}

const exitPipe = 128 + 13

// run parses the arguments and does what they say.
func (s *streams) run(started time.Time) (err error) {
	var cmds commands
	helped := false // the arguments ask for help, which has been printed
	parser := kong.Must(&cmds, kong.Name("ppc"), kong.Description("Compiles models into pipelined programs, one per device, and runs them."),
		kong.Writers(s.stdout, s.stderr), kong.Vars{"file": fileHelp}, kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Exit(func(int) { helped = true }))
	command, err := parser.Parse(gathered(parser.Model.Node, s.args))
	if helped {
		return nil
	}
	if err != nil {
		return &driver.UsageError{Msg: diag.Line(err.Error())}
	}
	s.ctx, s.end = cmds.Timeout.within(s.ctx, started)
	s.out.ctx, s.stderr.ctx = s.ctx, s.ctx
	s.startStatus(terminal(s.stderr.w))
	defer s.endStatus()
	return command.Run(s)
}

// streams is where a command reads from and writes to, and what ends it.
type streams struct {
	ctx, saving context.Context
	end         context.CancelFunc // of ctx
	stdin       io.Reader
	out         *sink
	stdout      *bufio.Writer // to out
	stdoutFile  fs.FileInfo   // nil where it is no file
	stderr      *sink
	args        []string
	heap        *heap.Limit // may be nil
}

type commands struct {
	Timeout *limit `placeholder:"DURATION" help:"Stop after so long, such as 90s or 2h, as Ctrl-C does, with exit status 124."`

	Lower   lowerCmd   `cmd:"" help:"Lower a program and print it."`
	Run     runCmd     `cmd:"" help:"Lower a program, run it and print its results."`
	Bench   benchCmd   `cmd:"" help:"Measure a program: time to compile and per step, operations per second, memory."`
	Check   checkCmd   `cmd:"" help:"Parse, type-check and validate every setting; find what would not run."`
	Lint    lintCmd    `cmd:"" help:"Find transfers and memory that programs need not pay for; exit 1 if there are findings."`
	Test    testCmd    `cmd:"" help:"Run StableHLO programs that hold their own results by check.expect_*, or expect errors; exit 1 if one does not hold."`
	Import  importCmd  `cmd:"" help:"Make a .pp program of another system's configuration."`
	Report  reportCmd  `cmd:"" help:"Show what a program does before it runs: schedule, gathers, memory, collectives, residuals, findings."`
	View    viewCmd    `cmd:"" help:"Write a page of the IR through the passes: what each changed, with links to the source."`
	Diff    diffCmd    `cmd:"" help:"Show in what two programs differ, or one under two choices of settings; exit 1 if in anything."`
	Export  exportCmd  `cmd:"" help:"Write parameters under their names in files."`
	Fmt     fmtCmd     `cmd:"" help:"Format .pp files; a formatted file stays as it is."`
	Compile compileCmd `cmd:"" help:"Compile a program ahead of time by a PJRT plugin, for devices that need not be there: bytes per device, collectives."`
	Launch  launchCmd  `cmd:"" help:"Write a job that a cluster with JAX runs: the program, its parameters, a script."`
	Engines enginesCmd `cmd:"" help:"List what programs can run on here: goroutines, PJRT plugins and JAX, with versions and devices, or why not."`
	Passes  passesCmd  `cmd:"" help:"Print the pass table: name, requires, ensures."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// settings are the flags that say how a program is read.
type settings struct {
	Set     []string `sep:"none" placeholder:"block.key=value" help:"Override a setting of a .pp file, such as pipeline.rotate=slice_pad."`
	Devices count    `placeholder:"N" help:"Number of devices, for a mesh axis of size -1."`
	Lang    string   `enum:",pp,mlir,hlo" default:"" help:"Language of the program: pp, mlir or hlo, where the extension does not say."`
	Include []string `name:"include-dir" sep:"none" placeholder:"DIR" help:"A folder that .pp files may include from, beside that of the program."`
	Strict  bool     `help:"Refuse a program that calls the host, instead of leaving such calls out with a warning."`
}

// A count is a number of devices that a flag gives; 0 is none given.
type count int

var errCount = fmt.Errorf("want a number from 1 to %d", math.MaxInt32)

func (c *count) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 || n > math.MaxInt32 {
		return errCount
	}
	*c = count(n)
	return nil
}

func (s *settings) source(file string, std *streams) *driver.Source {
	return &driver.Source{File: file, Lang: s.Lang, Set: s.Set, Devices: int(s.Devices), Strict: s.Strict, Stdin: std.stdin, Stdout: std.stdoutFile, Warn: std.warn, IncludeDirs: s.Include, Reading: std.heap.Read}
}

const fileHelp = "A .pp, .mlir or .hlo file; - is standard input."

type lowerCmd struct {
	settings
	File     string `arg:"" help:"${file}"`
	DumpHLO  bool   `name:"dump-hlo" help:"Print HLO text: --emit=hlo."`
	Emit     string `enum:",ir,stablehlo,hlo" default:"" help:"What to print: ir (MLIR text of any form, the default), stablehlo or hlo (the default with -o FILE.hlo)."`
	Platform string `enum:",cpu,cuda,tpu" default:"" help:"With StableHLO or HLO: whose compiler it is for. XLA's for cpu takes no ragged-dot, which becomes a masked dot; that for tpu takes those of two dimensions."`
	Stats    bool   `help:"Print what the per-device program does in a step: loops, collectives, residuals, memory at the peak."`
	JSON     bool   `name:"json" help:"With --stats: one JSON object per line."`
	After    string `placeholder:"PASS" help:"Stop after this pass."`
	DumpTo   string `placeholder:"DIR" help:"Write one numbered file per pass that changed something."`
	Out      string `short:"o" placeholder:"FILE" help:"Write to a file instead of standard output: HLO text to an .hlo file."`
}

// Validate makes the flags for one kind of text the general one.
func (c *lowerCmd) Validate() error {
	if c.JSON && !c.Stats {
		return errors.New("--json prints statistics: it goes with --stats")
	}
	for _, f := range []struct {
		given      bool
		flag, emit string
	}{{c.DumpHLO, "--dump-hlo", "hlo"}, {c.Stats && !c.JSON, "--stats", "stats"}, {c.Stats && c.JSON, "--stats", "stats-json"}} {
		if !f.given {
			continue
		}
		if c.Emit != "" && c.Emit != f.emit {
			return fmt.Errorf("%s and --emit=%s ask for different text", f.flag, c.Emit)
		}
		c.Emit = f.emit
	}
	if c.Platform != "" && c.Emit != "stablehlo" && cmp.Or(c.Emit, driver.EmitFor(c.Out)) != "hlo" {
		return errors.New("--platform says whose compiler text is for: it goes with --emit=stablehlo or --emit=hlo")
	}
	return nil
}

func (c *lowerCmd) Run(std *streams) error {
	text, err := driver.Lower(std.ctx, c.source(c.File, std), driver.LowerOptions{Emit: c.Emit, After: c.After, DumpTo: c.DumpTo, Out: c.Out, Platform: c.Platform})
	if err != nil {
		return err
	}
	return std.print(c.Out, text)
}

type runCmd struct {
	settings
	File      string  `arg:"" help:"${file}"`
	Args      string  `placeholder:"FILE" help:"Arguments: .npz, .safetensors or .safetensors.index.json. What it does not have is made up: parameters by their initialisers, inputs from the seed."`
	Out       string  `placeholder:"FILE" help:"Write the results: .npz or .safetensors."`
	Steps     *int    `placeholder:"N" help:"Steps of training, in place of the program's own number; 0 computes the loss alone."`
	Grad      bool    `help:"The gradients of the loss for every parameter and floating-point input, without an update."`
	Seed      *uint64 `placeholder:"N" help:"Seed of what is made up; the program's own by default."`
	Engine    string  `default:"goroutines" placeholder:"ENGINE" help:"What the devices are: goroutines (the default), cpu, cuda or tpu by a PJRT plugin that is found, pjrt:PATH, or jax."`
	Processes *int    `placeholder:"N" help:"Processes of --engine=jax, which share the devices (1)."`
	Check     bool    `help:"Compare with the layers in sequence, in float64, on the reference evaluator."`
	Against   string  `placeholder:"ENGINE" help:"With --check: run on another engine, too, or on the evaluator, and compare; name the first value that differs."`
	Trace     string  `placeholder:"FILE" help:"Write what each device did when, and what it waited for: a trace in JSON that Perfetto opens."`
	Shards    string  `placeholder:"DIR" help:"Write each device's arguments and results: args.npz, results.npz."`
	JSON      bool    `name:"json" help:"One JSON object per line, nothing else on standard output."`
	Quiet     bool    `help:"No remarks and no summary."`
}

func (c *runCmd) Run(std *streams) error {
	processes, err := processesOf(c.Processes)
	if err != nil {
		return err
	}
	opts := driver.RunOptions{Args: c.Args, Out: c.Out, Shards: c.Shards, Trace: c.Trace, Seed: c.Seed, Steps: c.Steps, Grad: c.Grad, Check: c.Check, Engine: c.Engine, Against: c.Against, Processes: processes, Saving: std.saving}
	if !c.Quiet {
		opts.Note, opts.Step = std.note, std.step
	}
	if c.JSON {
		opts.Step = std.jsonStep
	}
	if c.JSON || !c.Quiet {
		if err := std.out.check(); err != nil {
			return err
		}
	}
	result, err := driver.Run(std.ctx, c.source(c.File, std), opts)
	std.endStatus()
	if result != nil {
		c.print(std, result)
	}
	return err
}

// processesOf is what --processes says, 0 where it is left out.
func processesOf(n *int) (int, error) {
	switch {
	case n == nil:
		return 0, nil
	case *n < 1:
		return 0, &driver.UsageError{Msg: fmt.Sprintf("--processes %d: want 1 or more", *n)}
	}
	return *n, nil
}

func (c *runCmd) print(std *streams, result *driver.RunResult) {
	switch {
	case c.JSON:
		std.jsonResult(result)
	case !c.Quiet:
		std.textResult(result)
	}
}

type benchCmd struct {
	settings
	File       string  `arg:"" help:"${file}"`
	Steps      int     `default:"5" placeholder:"N" help:"Steps to time, after one that warms up (${default})."`
	Seed       *uint64 `placeholder:"N" help:"Seed of arguments; the program's own by default."`
	JSON       bool    `name:"json" help:"One JSON object, nothing else on standard output."`
	Engine     string  `default:"goroutines" placeholder:"ENGINE" help:"What the devices are, as for run."`
	Processes  *int    `placeholder:"N" help:"Processes of --engine=jax, which share the devices (1)."`
	CPUProfile string  `name:"cpuprofile" placeholder:"FILE" help:"Write a profile of the timed steps, for go tool pprof."`
}

func (c *benchCmd) Run(std *streams) error {
	processes, err := processesOf(c.Processes)
	if err != nil {
		return err
	}
	result, err := driver.Bench(std.ctx, c.source(c.File, std), driver.BenchOptions{Steps: c.Steps, Seed: c.Seed, CPUProfile: c.CPUProfile, Engine: c.Engine, Processes: processes})
	if err != nil {
		return err
	}
	if c.JSON {
		std.json(result)
	} else {
		std.benchText(result)
	}
	return nil
}

type compileCmd struct {
	settings
	File     string `arg:"" help:"${file}"`
	Topology string `required:"" placeholder:"NAME" help:"Devices to compile for: v5p-8, v5e-256 and their like, or what the plugin calls one, such as v5:2x2x1."`
	Engine   string `placeholder:"ENGINE" help:"The plugin: tpu, cuda, cpu or pjrt:PATH; that of the topology by default."`
	Loss     bool   `help:"Compile the loss alone where the program trains."`
	Save     string `placeholder:"FILE" help:"Write the compiled program as the plugin loads it."`
	JSON     bool   `name:"json" help:"One JSON object, nothing else on standard output."`
}

func (c *compileCmd) Run(std *streams) error {
	r, err := driver.Ahead(std.ctx, c.source(c.File, std), driver.AheadOptions{Topology: c.Topology, Engine: c.Engine, Save: c.Save, Train: !c.Loss})
	if err != nil {
		return err
	}
	if c.JSON {
		std.json(r)
	} else {
		std.aheadText(r)
	}
	return nil
}

type launchCmd struct {
	settings
	File  string  `arg:"" help:"${file}"`
	Out   string  `short:"o" required:"" placeholder:"DIR" help:"The folder of the job."`
	Hosts int     `placeholder:"N" help:"Hosts that the templates for clusters ask for (1)."`
	Steps *int    `placeholder:"N" help:"Steps of training, in place of the program's own number; 0 computes the loss alone."`
	Seed  *uint64 `placeholder:"N" help:"Seed of what is made up; the program's own by default."`
}

func (c *launchCmd) Run(std *streams) error {
	return driver.Launch(std.ctx, c.source(c.File, std), driver.LaunchOptions{Dir: c.Out, Hosts: c.Hosts, Seed: c.Seed, Steps: c.Steps})
}

type enginesCmd struct {
	JSON bool `name:"json" help:"One JSON object per line."`
}

func (c *enginesCmd) Run(std *streams) error {
	engines := driver.Engines(std.ctx)
	if c.JSON {
		for _, e := range engines {
			std.json(e)
		}
		return nil
	}
	std.enginesText(engines)
	return nil
}

type checkCmd struct {
	settings
	Files []string `arg:"" name:"file" help:"${file}"`
}

func (c *checkCmd) Run(std *streams) error {
	var srcs []*driver.Source
	for _, f := range c.Files {
		srcs = append(srcs, c.source(f, std))
	}
	return driver.Check(std.ctx, srcs)
}

type lintCmd struct {
	settings
	JSON     bool     `name:"json" help:"One JSON object per line."`
	Skip     []string `placeholder:"NAME" help:"Leave out a lint."`
	Severity string   `enum:"note,warning" default:"note" help:"The least severity to report: note (the default) or warning."`
	List     bool     `help:"Print the table of lints."`
	Explain  string   `placeholder:"NAME" help:"Print what a lint finds, what that costs and when it is right."`
	Files    []string `arg:"" optional:"" name:"file" help:"${file}"`
}

func (c *lintCmd) Validate() error {
	if len(c.Files) == 0 && !c.List && c.Explain == "" {
		return errors.New("expected \"<file> ...\"")
	}
	return nil
}

func (c *lintCmd) Run(std *streams) error {
	switch {
	case c.List:
		std.lintTable(driver.Lints())
		return nil
	case c.Explain != "":
		text, err := driver.ExplainLint(c.Explain)
		if err != nil {
			return err
		}
		return std.print("", text)
	}
	var failed failures
	for _, file := range c.Files {
		found, err := driver.Lint(std.ctx, c.source(file, std), driver.LintOptions{Skip: c.Skip, Severity: c.Severity})
		std.findings(found, c.JSON)
		if len(found) > 0 {
			err = errFound
		}
		failed.add(err)
		if driver.Stopped(err) {
			break
		}
	}
	return failed.err()
}

type fmtCmd struct {
	Write bool     `short:"w" help:"Write the result to the file instead of standard output."`
	Diff  bool     `short:"d" help:"Print what would change; exit 1 if anything would."`
	Files []string `arg:"" name:"file" help:"A .pp file; - is standard input."`
}

func (c *fmtCmd) Run(std *streams) error {
	var failed failures
	for _, file := range c.Files {
		f, err := driver.Format(std.ctx, &driver.Source{File: file, Stdin: std.stdin, Stdout: std.stdoutFile})
		if err == nil {
			err = c.one(std, f)
		}
		failed.add(err)
		if driver.Stopped(err) {
			break
		}
	}
	return failed.err()
}

func (c *fmtCmd) one(std *streams, f *driver.Formatted) error {
	if c.Write {
		if err := f.Write(std.ctx); err != nil {
			return err
		}
	}
	if c.Diff {
		if d := f.Diff(); d != nil {
			std.stdout.Write(d)
			return errDiffers
		}
		return nil
	}
	if !c.Write {
		std.stdout.Write(f.New)
	}
	return nil
}

type passesCmd struct{}

func (passesCmd) Run(std *streams) error {
	std.passTable(driver.Passes())
	return nil
}

type versionCmd struct{}

func (versionCmd) Run(std *streams) error {
	_, err := fmt.Fprintln(std.stdout, driver.Version())
	return err
}
