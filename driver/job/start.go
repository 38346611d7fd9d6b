package job

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"ppc/internal/tail"
	"ppc/ir"
)

// Options says how a job runs on this machine.
type Options struct {
	Python    string
	Processes int
	Flags     []string // of run.py, beside those that follow from the rest
}

// A Line is what a job says of a step.
type Line struct {
	Step    int
	Scalars map[string]float64 // the results that are single numbers
}

// A Running is a job at work on this machine.
type Running struct {
	job   *Job
	dir   string
	procs []*process
	lines chan Line // closed when process 0 says no more
	ended chan struct{}
	err   error // of the first process that failed, once ended is closed
}

type process struct {
	cmd  *exec.Cmd
	said tail.Tail
}

// grace is how long the others may take to say why they cannot go on after one
// process has failed, until they are ended.
const grace = 5 * time.Second

// Start starts the job in dir in several processes, with its devices in equal
// shares. The end of ctx ends them at once.
func (j *Job) Start(ctx context.Context, dir string, o Options) (*Running, error) {
	if o.Processes < 1 || j.Devices%o.Processes != 0 {
		return nil, fmt.Errorf("%d devices do not divide among %d processes", j.Devices, o.Processes)
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	r := &Running{job: j, dir: dir, lines: make(chan Line, 16), ended: make(chan struct{})}
	for i := range o.Processes {
		args := []string{filepath.Join(dir, "run.py"), "--devices", strconv.Itoa(j.Devices / o.Processes), "--processes", strconv.Itoa(o.Processes), "--out", dir}
		if o.Processes > 1 {
			args = append(args, "--coordinator", address, "--process", strconv.Itoa(i))
		}
		p := &process{cmd: exec.CommandContext(ctx, o.Python, append(args, o.Flags...)...)}
		p.said.Lines = 8
		p.cmd.Stderr, p.cmd.WaitDelay = &p.said, time.Second
		isolate(p.cmd)
		r.procs = append(r.procs, p)
	}
	if err := r.start(); err != nil {
		return nil, err
	}
	return r, nil
}

// freeAddress is an address of this machine that nobody listens at.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (r *Running) start() error {
	first := r.procs[0].cmd
	said, err := first.StdoutPipe()
	if err != nil {
		return err
	}
	for i, p := range r.procs {
		if err := p.cmd.Start(); err != nil {
			for _, q := range r.procs[:i] {
				q.cmd.Process.Kill()
				q.cmd.Wait()
			}
			return err
		}
	}
	var readers sync.WaitGroup
	readers.Go(func() {
		defer close(r.lines)
		for s := bufio.NewScanner(said); s.Scan(); {
			if l, ok := parseLine(s.Bytes()); ok {
				r.lines <- l
			}
		}
	})
	go r.wait(&readers)
	return nil
}

// parseLine reads a line of metrics; others may print lines too.
func parseLine(text []byte) (Line, bool) {
	var fields map[string]any
	if json.Unmarshal(text, &fields) != nil {
		return Line{}, false
	}
	step, ok := fields["step"].(float64)
	l := Line{Step: int(step), Scalars: make(map[string]float64)}
	for name, v := range fields {
		switch v := v.(type) {
		case float64:
			l.Scalars[name] = v
		case bool:
			if v {
				l.Scalars[name] = 1
			}
		case string:
			if x, err := strconv.ParseFloat(v, 64); err == nil {
				l.Scalars[name] = x
			}
		}
	}
	return l, ok
}

// wait waits for all processes; when one fails, the others get a little time to say
// why they cannot go on.
func (r *Running) wait(readers *sync.WaitGroup) {
	type exit struct {
		process int
		err     error
	}
	exits := make(chan exit, len(r.procs))
	for i, p := range r.procs {
		go func() {
			if i == 0 {
				readers.Wait() // before which the pipe must stay open
			}
			exits <- exit{i, p.cmd.Wait()}
		}()
	}
	var kill <-chan time.Time
	for left := len(r.procs); left > 0; {
		select {
		case e := <-exits:
			left--
			if e.err != nil && r.err == nil {
				r.err = r.failure(e.process, e.err)
				kill = time.After(grace)
			}
		case <-kill:
			r.each(func(p *os.Process) { p.Kill() })
		}
	}
	close(r.ended)
}

// failure is what a process said before it failed.
func (r *Running) failure(i int, err error) error {
	text := fmt.Sprintf("process %d of %d: %v", i, len(r.procs), err)
	if said := r.procs[i].said.String(); said != "" {
		text += "; it said last:\n" + said
	}
	return errors.New(text)
}

// Lines are the steps as they are done; the channel is closed when the job is.
func (r *Running) Lines() <-chan Line { return r.lines }

// Wait waits until the job has ended, and returns why it failed.
func (r *Running) Wait() error {
	<-r.ended
	return r.err
}

// Stop asks the job to end after the step at work.
func (r *Running) Stop() { r.each(func(p *os.Process) { terminate(p) }) }

// Kill ends the job at once.
func (r *Running) Kill() { r.each(func(p *os.Process) { p.Kill() }) }

func (r *Running) each(do func(p *os.Process)) {
	for _, p := range r.procs {
		do(p.cmd.Process)
	}
}

// Result is the value of result i after the last step of a job that has ended.
func (r *Running) Result(i int, t *ir.Type) (*ir.Literal, error) {
	l := &ir.Literal{Type: t}
	if t.Bytes() == 0 {
		return l, nil
	}
	path := filepath.Join(r.dir, fmt.Sprintf("out%d.bin", i))
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) != t.Bytes() {
		return nil, fmt.Errorf("%s: %d bytes, want %d", path, len(data), t.Bytes())
	}
	l.Data = data
	return l, nil
}
