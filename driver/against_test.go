package driver

import (
	"context"
	"errors"
	"strings"
	"testing"

	"ppc/internal/shared"
	"ppc/ir"
)

// brokenEngine is goroutine devices that take a sine, of rope in a layer of the
// pipeline, for a cosine.
type brokenEngine struct{ goroutines }

func (e brokenEngine) load(ctx context.Context, m *ir.Module) (executable, error) {
	c := m.Clone()
	done := false
	c.Main().Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.Sine {
			op.Kind, done = ir.Cosine, true
		}
	})
	if !done {
		return nil, errors.New("there is no sine to take for a cosine")
	}
	return e.goroutines.load(ctx, c)
}

// againstEngine runs llama.pp in one step with a check against another engine.
func againstEngine(t *testing.T, other string, engines func(string) (engine, error)) error {
	t.Helper()
	one := 1
	r := &runner{src: &Source{File: "../examples/llama.pp", Set: []string{"axes.seq=16", "axes.mlp=32", "axes.vocab=64"}}, engines: engines,
		opts: RunOptions{Steps: &one, Check: true, Against: other}}
	_, err := r.run(t.Context())
	return err
}

// TestAgainst: engines that compute the same agree; of one that does not, the first value
// that differs is named, with its place in the source.
func TestAgainst(t *testing.T) {
	if err := againstEngine(t, Evaluator, nil); err != nil {
		t.Error(err)
	}
	err := againstEngine(t, "broken", func(name string) (engine, error) {
		if name == "broken" {
			return brokenEngine{}, nil
		}
		return openEngine(name, 0)
	})
	var differ *EnginesError
	if !errors.As(err, &differ) {
		t.Fatalf("%v, want that the engines differ", err)
	}
	text := err.Error()
	for _, part := range []string{"goroutines and broken differ", "loss differs by", "the first value that differs is by stablehlo.sine at ../examples/llama.pp:17:12 in layer decoder, in iteration 0 of the loop at ../examples/llama.pp:31:7, on", "device 0 (stage 0, fsdp 0)", "on goroutines"} {
		if !strings.Contains(text, part) {
			t.Errorf("%s\nwant %q", text, part)
		}
	}
}

func TestAgainstPlugin(t *testing.T) {
	if err := againstEngine(t, "pjrt:"+shared.CPUPlugin(t), nil); err != nil {
		t.Error(err)
	}
}
