package pjrt

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"ppc/internal/tail"
	"ppc/ir"
)

// workerEnv tells a process that it is a worker's child; see [Serve].
const workerEnv = "PPC_PJRT_WORKER"

// A Worker is a plugin in a child process: when the plugin crashes, that process
// ends and the caller gets an error. Its methods are called one at a time.
type Worker struct {
	Info Info

	cmd    *exec.Cmd
	to     io.WriteCloser
	send   *gob.Encoder
	from   *gob.Decoder
	said   *tail.Tail
	once   sync.Once
	ended  chan struct{}
	waited error
	broken error

	results int // of one device
	last    map[*ir.Literal]int
	left    *exchange // a run that its caller did not wait for
}

// An exchange is a request that was sent, and its reply once done is closed.
type exchange struct {
	done  chan struct{}
	reply reply
	err   error
}

// Start loads the plugin at path in a child process and makes its devices, or, with
// a topology, those of that name to compile for.
func Start(ctx context.Context, path, topology string, o Options) (*Worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &Worker{said: &tail.Tail{Lines: 5}, ended: make(chan struct{})}
	w.cmd = exec.Command(self)
	w.cmd.Env = append(os.Environ(), workerEnv+"=1")
	w.cmd.Stderr = w.said
	if w.to, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	isolate(w.cmd)
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	w.send, w.from = gob.NewEncoder(w.to), gob.NewDecoder(out)
	r, err := w.ask(ctx, &request{Open: &openRequest{path, o, topology}})
	if err != nil {
		w.Close()
		return nil, err
	}
	w.Info = r.Info
	return w, nil
}

// Close ends the child process.
func (w *Worker) Close() {
	if w.left != nil { // which it would end first
		w.cmd.Process.Kill()
	}
	w.to.Close()
	select {
	case <-w.wait():
	case <-time.After(2 * time.Second):
		w.cmd.Process.Kill()
		<-w.wait()
	}
}

// wait is closed when the child process has ended.
func (w *Worker) wait() chan struct{} {
	w.once.Do(func() {
		go func() {
			w.waited = w.cmd.Wait()
			close(w.ended)
		}()
	})
	return w.ended
}

// ask sends a request and waits for the reply. The end of ctx ends the child.
func (w *Worker) ask(ctx context.Context, q *request) (*reply, error) {
	if w.broken != nil {
		return nil, w.broken
	}
	return w.await(ctx, w.begin(q))
}

// begin sends a request.
func (w *Worker) begin(q *request) *exchange {
	x := &exchange{done: make(chan struct{})}
	go func() {
		defer close(x.done)
		if x.err = w.send.Encode(q); x.err == nil {
			x.err = w.from.Decode(&x.reply)
		}
	}()
	return x
}

// await waits for the reply of x. The end of ctx ends the child.
func (w *Worker) await(ctx context.Context, x *exchange) (*reply, error) {
	select {
	case <-x.done:
		return w.replied(x)
	case <-ctx.Done():
		w.cmd.Process.Kill()
		<-x.done
		w.broken = context.Cause(ctx)
		return nil, w.broken
	}
}

// awaitOrLeave waits for the reply of x. The end of ctx leaves x to itself, for
// [Remote.Finish].
func (w *Worker) awaitOrLeave(ctx context.Context, x *exchange) (*reply, error) {
	select {
	case <-x.done:
		return w.replied(x)
	case <-ctx.Done():
		w.left = x
		return nil, context.Cause(ctx)
	}
}

// replied is the reply of x, which is there, or the error that it is.
func (w *Worker) replied(x *exchange) (*reply, error) {
	switch r := &x.reply; {
	case x.err != nil:
		w.broken = w.crash(x.err)
		return nil, w.broken
	case r.Failed != nil:
		return nil, r.Failed
	case r.Other != "":
		return nil, errors.New(r.Other)
	default:
		return r, nil
	}
}

// crash is the error of a child that ended on its own.
func (w *Worker) crash(err error) error {
	select {
	case <-w.wait():
	case <-time.After(2 * time.Second):
		return err
	}
	how := "without an error"
	if w.waited != nil {
		how = w.waited.Error()
	}
	text := fmt.Sprintf("the plugin ended its process (%s)", how)
	if said := w.said.String(); said != "" {
		text += "; it said last:\n" + said
	}
	return errors.New(text)
}

// Compile compiles StableHLO text whose main function returns results on each of n
// devices.
func (w *Worker) Compile(ctx context.Context, text string, n int, o CompileOptions, results []*ir.Type) (*Remote, error) {
	q := &compileRequest{Text: text, Devices: n, Options: o}
	for _, t := range results {
		q.Results = append(q.Results, typeOf(t))
	}
	r, err := w.ask(ctx, &request{Compile: q})
	if err != nil {
		return nil, err
	}
	w.results, w.last = len(results), nil
	return &Remote{worker: w, devices: n, Stats: r.Stats, CPU: r.CPU}, nil
}

// Ahead compiles StableHLO text for the worker's topology; save asks for the
// compiled program, too. It returns what the program takes, the compiled program,
// and what the compiler made of it, a HloModuleProtoWithConfig.
func (w *Worker) Ahead(ctx context.Context, text string, o CompileOptions, save bool) (stats *Stats, saved, hlo []byte, err error) {
	r, err := w.ask(ctx, &request{Compile: &compileRequest{Text: text, Options: o, Save: save}})
	if err != nil {
		return nil, nil, nil, err
	}
	return r.Stats, r.Saved, r.HLO, nil
}

// A Remote is a program that a worker has compiled.
type Remote struct {
	Stats *Stats        // nil where the plugin does not count
	CPU   time.Duration // of all cores, in the last run or, before one, to compile

	// Keep says which results of each device stay there: what [Remote.Run] returns of
	// them has no data until [Remote.Fetch]. A run whose context ends goes on, for
	// what it takes the place of is used up; [Remote.Finish] waits for it.
	Keep []bool

	worker  *Worker
	devices int
}

// Devices is on how many devices the program runs.
func (r *Remote) Devices() int { return r.devices }

// Run executes the program with args[device][parameter] and returns
// results[device][result]. Arguments that are results of the run before stay on
// their devices.
func (r *Remote) Run(ctx context.Context, args [][]*ir.Literal) ([][]*ir.Literal, error) {
	w := r.worker
	if w.broken != nil {
		return nil, w.broken
	}
	q := &runRequest{Args: make([][]int, len(args)), Keep: r.Keep}
	known := make(map[*ir.Literal]int)
	for d, list := range args {
		q.Args[d] = make([]int, len(list))
		for i, l := range list {
			at, ok := w.last[l]
			if ok && at/max(w.results, 1) == d {
				q.Args[d][i] = -1 - at
				continue
			}
			n, ok := known[l]
			if !ok {
				n = len(q.Arrays)
				known[l] = n
				q.Arrays = append(q.Arrays, arrayOf(l))
			}
			q.Args[d][i] = n
		}
	}
	await := w.await
	if r.Keep != nil {
		await = w.awaitOrLeave
	}
	reply, err := await(ctx, w.begin(&request{Run: q}))
	if err != nil {
		return nil, err
	}
	return r.ran(reply), nil
}

// ran is the results of a run, which the next one may take.
func (r *Remote) ran(reply *reply) [][]*ir.Literal {
	w := r.worker
	r.CPU = reply.CPU
	out := make([][]*ir.Literal, len(reply.Results))
	w.last = make(map[*ir.Literal]int)
	for d, list := range reply.Results {
		out[d] = make([]*ir.Literal, len(list))
		for i, a := range list {
			out[d][i] = a.literal()
			w.last[out[d][i]] = d*w.results + i
		}
	}
	return out
}

// Finish waits for the run that was at work when its context ended, and returns its
// results; nil where there is none.
func (r *Remote) Finish(ctx context.Context) ([][]*ir.Literal, error) {
	w := r.worker
	x := w.left
	if x == nil {
		return nil, nil
	}
	w.left = nil
	reply, err := w.await(ctx, x)
	if err != nil {
		return nil, err
	}
	return r.ran(reply), nil
}

// Fetch sets the data of those results of the last run that stayed on their devices.
func (r *Remote) Fetch(ctx context.Context, out [][]*ir.Literal) error {
	if r.Keep == nil {
		return nil
	}
	reply, err := r.worker.ask(ctx, &request{Fetch: &fetchRequest{r.Keep}})
	if err != nil {
		return err
	}
	for d, list := range reply.Results {
		for i, a := range list {
			if r.Keep[i] {
				out[d][i].Data = a.Data
			}
		}
	}
	return nil
}
