//go:build (linux || darwin) && (amd64 || arm64)

package pjrt

import (
	"context"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"

	"ppc/internal/cputime"
	"ppc/ir"
)

// isolate keeps signals of the terminal from the child: the parent says when it ends.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Serve does the work of a worker's child and does not return, where this process
// is one; otherwise it does nothing. A main function calls it first.
func Serve() {
	if os.Getenv(workerEnv) == "" {
		return
	}
	out := os.Stdout
	os.Stdout = os.Stderr // what a plugin prints is no reply
	s := &server{to: gob.NewEncoder(out)}
	for q := range requests(os.Stdin) {
		r, begin := new(reply), cputime.Now()
		if err := s.answer(q, r); err != nil {
			r = &reply{Other: err.Error()}
			errors.As(err, &r.Failed)
		}
		r.CPU = cputime.Now() - begin
		if err := s.to.Encode(r); err != nil {
			os.Exit(1)
		}
	}
}

// requests are those that the parent sends. Without a parent the process ends, also while
// it works on one: nobody waits for the reply.
func requests(from io.Reader) <-chan *request {
	qs := make(chan *request) // never closed
	go func() {
		d := gob.NewDecoder(from)
		for {
			q := new(request)
			if err := d.Decode(q); errors.Is(err, io.EOF) {
				os.Exit(0)
			} else if err != nil {
				os.Exit(1)
			}
			qs <- q
		}
	}()
	return qs
}

// A server is the child's side of a worker.
type server struct {
	to *gob.Encoder

	plugin   *Plugin
	client   *Client
	topology *Topology
	exe      *Executable
	results  *buffers // of the run before
}

func (s *server) answer(q *request, r *reply) error {
	switch {
	case q.Open != nil:
		return s.open(q.Open, r)
	case q.Compile != nil && s.topology != nil:
		return s.ahead(q.Compile, r)
	case q.Compile != nil:
		return s.compile(q.Compile, r)
	}
	if q.Fetch != nil {
		return s.fetch(q.Fetch, r)
	}
	return s.run(q.Run, r)
}

func (s *server) open(q *openRequest, r *reply) error {
	var err error
	if s.plugin, err = Open(q.Path); err != nil {
		return err
	}
	r.Info = Info{Path: q.Path, Major: s.plugin.Major, Minor: s.plugin.Minor}
	if q.Topology != "" {
		if s.topology, err = s.plugin.Topology(q.Topology, q.Options); err != nil {
			return err
		}
		r.Info.Devices = s.topology.NumDevices()
		return nil
	}
	if s.client, err = s.plugin.Client(q.Options); err != nil {
		return err
	}
	r.Info.Platform, r.Info.Version, r.Info.Kind, r.Info.Devices = s.client.Platform, s.client.Version, s.client.Kind(), s.client.NumDevices()
	return nil
}

func (s *server) compile(q *compileRequest, r *reply) error {
	var types []*ir.Type
	for _, a := range q.Results {
		types = append(types, a.typ())
	}
	s.forget()
	if s.exe != nil {
		s.exe.Close()
	}
	var err error
	if s.exe, err = s.client.Compile(q.Text, q.Devices, q.Options, types); err != nil {
		return err
	}
	r.Stats, _ = s.exe.Stats() // not every plugin counts
	return nil
}

func (s *server) ahead(q *compileRequest, r *reply) error {
	c, err := s.topology.Compile(q.Text, q.Options)
	if err != nil {
		return err
	}
	defer c.Close()
	if r.Stats, err = c.Stats(); err != nil {
		return err
	}
	if r.HLO, err = c.Optimized(); err != nil {
		return err
	}
	if q.Save {
		r.Saved, err = c.Serialize()
	}
	return err
}

// forget frees the results of the run before.
func (s *server) forget() {
	if s.results != nil {
		s.results.free()
		s.results = nil
	}
}

func (s *server) run(q *runRequest, r *reply) error {
	if s.exe == nil {
		return errors.New("nothing is compiled")
	}
	literals := make([]*ir.Literal, len(q.Arrays))
	for i, a := range q.Arrays {
		literals[i] = a.literal()
	}
	out, results, err := s.exe.step(context.Background(), s.results, literals, q.Args, func(i int) bool { return q.Keep != nil && q.Keep[i] })
	if err != nil {
		return err
	}
	s.forget()
	s.results = out
	r.put(results)
	return nil
}

// fetch replies with what stayed on the devices.
func (s *server) fetch(q *fetchRequest, r *reply) error {
	if s.results == nil {
		return errors.New("nothing has run")
	}
	results, err := s.results.give(s.exe.results, func(i int) bool { return !q.Keep[i] })
	r.put(results)
	return err
}

func (r *reply) put(results [][]*ir.Literal) {
	for d, list := range results {
		r.Results = append(r.Results, nil)
		for _, l := range list {
			r.Results[d] = append(r.Results[d], arrayOf(l))
		}
	}
}
