package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A List is the units that are known to fail for one runner, each with the
// reason.
type List struct {
	File    string
	Reasons map[Place]string
}

// A Place is where a unit is found.
type Place struct {
	Path    string
	Segment int
}

// Place is where u is found.
func (u Unit) Place() Place { return Place{u.Path, u.Segment} }

// onSomeMachines begins the reason of a unit that passes on other machines:
// processors that fuse a multiplication with an addition round once where others
// round twice, and some units allow for neither.
const onSomeMachines = "on some machines: "

const listHeader = "path\tsegment\treason\n"

// ReadList reads a list: rows of path, segment and reason, with tabs between
// them. A file that is not there is an empty list.
func ReadList(file string) (*List, error) {
	l := &List{File: file, Reasons: make(map[Place]string)}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	rows, ok := strings.CutPrefix(string(data), listHeader)
	if !ok {
		return nil, fmt.Errorf("%s:1: want the columns path, segment, reason", file)
	}
	n := 1
	for line := range strings.Lines(rows) {
		n++
		c := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(c) != 3 || strings.TrimSpace(c[2]) == "" {
			return nil, fmt.Errorf("%s:%d: want a path, a segment and a reason", file, n)
		}
		segment, err := strconv.Atoi(c[1])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %q is no segment", file, n, c[1])
		}
		p := Place{c[0], segment}
		if l.Reasons[p] != "" {
			return nil, fmt.Errorf("%s:%d: %s#%d is listed twice", file, n, p.Path, p.Segment)
		}
		l.Reasons[p] = c[2]
	}
	return l, nil
}

// Update makes the list that of what o found: units that pass leave it, and
// those that fail and are not in it come with their error as the reason. What o
// has not run stays.
func (l *List) Update(o *Outcome) {
	for _, r := range o.Results {
		switch {
		case r.Err == nil && strings.HasPrefix(r.Reason, onSomeMachines):
		case r.Err == nil:
			delete(l.Reasons, r.Unit.Place())
		case l.Reasons[r.Unit.Place()] == "":
			l.Reasons[r.Unit.Place()] = r.Reason
		}
	}
}

// Text is the list as its file holds it, in order.
func (l *List) Text() string {
	var b strings.Builder
	b.WriteString(listHeader)
	for _, p := range slices.SortedFunc(maps.Keys(l.Reasons), comparePlaces) {
		fmt.Fprintf(&b, "%s\t%d\t%s\n", p.Path, p.Segment, l.Reasons[p])
	}
	return b.String()
}

func comparePlaces(a, b Place) int {
	if c := strings.Compare(a.Path, b.Path); c != 0 {
		return c
	}
	return a.Segment - b.Segment
}
