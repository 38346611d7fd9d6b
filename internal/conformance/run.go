package conformance

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// A Runner does what the kind of a unit asks for, and says what does not hold.
type Runner struct {
	Name  string
	Kinds []Kind
	Limit time.Duration // for one unit
}

// A Kind is one kind of unit and how a Runner runs it.
type Kind struct {
	Name string
	Run  func(context.Context, Unit) error
}

// A Result is what became of a unit.
type Result struct {
	Unit   Unit
	Err    error  // nil if it passes
	Reason string // why it fails: the listed reason, or the first line of Err without its place
	Listed bool
	Broken bool // it panics or does not end, which no list excuses
}

// An Outcome is what became of all units of a manifest that a Runner runs, in
// the order of its kinds and of the manifest.
type Outcome struct {
	Runner  *Runner
	List    *List
	Results []Result
}

// Run runs the units that r has a kind for, several at a time.
func (r *Runner) Run(units []Unit, list *List) *Outcome {
	o := &Outcome{Runner: r, List: list}
	var runs []func(context.Context, Unit) error
	for _, k := range r.Kinds {
		for _, u := range units {
			if u.Kind == k.Name {
				o.Results = append(o.Results, Result{Unit: u})
				runs = append(runs, k.Run)
			}
		}
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				o.Results[i].run(runs[i], r.Limit, list)
			}
		})
	}
	for i := range o.Results {
		next <- i
	}
	close(next)
	wg.Wait()
	return o
}

func (r *Result) run(f func(context.Context, Unit) error, limit time.Duration, list *List) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	type end struct {
		err    error
		broken bool
	}
	ended := make(chan end, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				ended <- end{fmt.Errorf("panics: %v\n%s", p, debug.Stack()), true}
			}
		}()
		ended <- end{err: f(ctx, r.Unit)}
	}()
	select {
	case e := <-ended:
		r.Err, r.Broken = e.err, e.broken
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		r.Err, r.Broken = fmt.Errorf("does not end within %s", limit), true
	}
	r.Reason, r.Listed = list.Reasons[r.Unit.Place()], list.Reasons[r.Unit.Place()] != ""
	if r.Err != nil && (r.Broken || !r.Listed) {
		r.Reason = reasonOf(r.Err)
	}
}

var place = regexp.MustCompile(`\S+:\d+:\d+: |in @("[^"]*"|\S+): `)

// reasonOf is the first line of an error, without places in the source.
func reasonOf(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	line = place.ReplaceAllString(line, "")
	return strings.Join(strings.Fields(line), " ")
}

// Faults are what a test has to report: units that fail and are not listed,
// that are listed and pass, and that panic or do not end.
func (o *Outcome) Faults() []string {
	var faults []string
	for _, r := range o.Results {
		switch {
		case r.Broken:
			faults = append(faults, fmt.Sprintf("%s %s %v", o.Runner.Name, r.Unit.Name(), r.Err))
		case r.Err != nil && !r.Listed:
			faults = append(faults, fmt.Sprintf("%s %s fails and is not listed in %s: %v", o.Runner.Name, r.Unit.Name(), o.List.File, r.Err))
		case r.Err == nil && r.Listed && !strings.HasPrefix(r.Reason, onSomeMachines):
			faults = append(faults, fmt.Sprintf("%s %s is listed in %s but passes: remove it (%s)", o.Runner.Name, r.Unit.Name(), o.List.File, r.Reason))
		}
	}
	return faults
}

// Table renders outcomes: of each runner and kind the units, how many of them
// passed and how many failed, and then every unit that failed, by its reason.
func Table(os ...*Outcome) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "runner\tkind\tunits\tpassed\tfailed\tnot listed\t")
	for _, o := range os {
		for _, k := range o.Runner.Kinds {
			var units, failed, unlisted int
			for _, r := range o.Results {
				if r.Unit.Kind != k.Name {
					continue
				}
				units++
				if r.Err != nil {
					failed++
					if !r.Listed {
						unlisted++
					}
				}
			}
			if units == 0 {
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t\n", o.Runner.Name, k.Name, units, units-failed, failed, unlisted)
		}
	}
	w.Flush()
	for _, o := range os {
		o.failures(&b)
	}
	return b.String()
}

// failures writes the units that failed under their reasons, in the order in
// which they first appear.
func (o *Outcome) failures(b *strings.Builder) {
	var reasons []string
	by := make(map[string][]string)
	for _, r := range o.Results {
		if r.Err == nil {
			continue
		}
		reason := r.Reason
		if !r.Listed {
			reason += " (not listed)"
		}
		if by[reason] == nil {
			reasons = append(reasons, reason)
		}
		by[reason] = append(by[reason], r.Unit.Name())
	}
	for _, reason := range reasons {
		fmt.Fprintf(b, "\n%s, %d: %s\n", o.Runner.Name, len(by[reason]), reason)
		for _, name := range by[reason] {
			fmt.Fprintf(b, "  %s\n", name)
		}
	}
}
