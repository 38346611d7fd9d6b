package stats

import (
	"bytes"
	"encoding/json"
)

// JSON is s for programs: one object per line. The first key of each is its kind:
// memory, loop, collective (each op by itself) or residual. What cannot be read off
// the program is null; loops are named by their path, "" is none.
func (s *Stats) JSON() string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	run := s.Run.Peak
	if run == s.Memory.Peak {
		run = 0
	}
	rows := []any{jsonMemory(&s.Memory, run, len(s.Loops))}
	for _, l := range s.Loops {
		rows = append(rows, loopRow{l.Name, countJSON(l.Trips), jsonArrays(l.Carries), jsonArrays(l.Invariants)})
	}
	for _, c := range s.Collectives {
		rows = append(rows, collectiveRow{c.Kind, c.Name, c.Loop, c.Axes, c.Group, several(c.Slices), c.Bytes, c.Moved, countJSON(c.Executions), c.Beside})
	}
	for _, r := range s.Residuals {
		rows = append(rows, residualRow{r.Name, r.Loop, TypeText(r.Type), r.Bytes, r.Why})
	}
	for _, row := range rows {
		if err := e.Encode(row); err != nil {
			panic(err) // strings and integers always have a form
		}
	}
	return b.String()
}

type memoryRow struct {
	Memory      int    `json:"memory"`
	Run         int    `json:"run,omitempty"` // where that is less
	Parameters  int    `json:"parameters"`
	State       int    `json:"optimizer_state"`
	Gathered    int    `json:"gathered_weights"`
	Residuals   int    `json:"residuals"`
	LoopBuffers int    `json:"loop_buffers"`
	Temporaries int    `json:"temporaries"`
	Host        int    `json:"host,omitempty"`
	At          string `json:"at"`
	Loop        string `json:"in"`
	Loops       int    `json:"loops"`
}

func jsonMemory(m *Memory, run, loops int) memoryRow {
	p := m.Parts
	return memoryRow{m.Peak, run, p[Parameters], p[OptimizerState], p[GatheredWeights], p[ResidualStacks], p[LoopBuffers], p[Temporaries], m.Host, m.At, m.Loop, loops}
}

type loopRow struct {
	Loop       string     `json:"loop"`
	Trips      *int       `json:"trips"`
	Carries    []arrayRow `json:"carries"`
	Invariants []arrayRow `json:"invariants"`
}

type arrayRow struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Bytes int    `json:"bytes"`
}

func jsonArray(a Array) arrayRow { return arrayRow{a.Name, TypeText(a.Type), a.Bytes} }

func jsonArrays(as []Array) []arrayRow {
	rows := make([]arrayRow, len(as))
	for i, a := range as {
		rows[i] = jsonArray(a)
	}
	return rows
}

// several is n, or nothing where it is one.
func several(n int) int {
	if n == 1 {
		return 0
	}
	return n
}

type collectiveRow struct {
	Collective string `json:"collective"`
	Name       string `json:"name"`
	Loop       string `json:"in"`
	Axes       string `json:"axes"`
	Group      int    `json:"group"`
	Slices     int    `json:"slices,omitempty"`
	Bytes      int    `json:"bytes"`
	Moved      int    `json:"moved"`
	Executions *int   `json:"executions"`
	Beside     int    `json:"products_beside,omitempty"`
}

type residualRow struct {
	Residual string `json:"residual"`
	Loop     string `json:"in"`
	Type     string `json:"type"`
	Bytes    int    `json:"bytes"`
	Why      string `json:"why"`
}

func countJSON(c Count) *int {
	if c == Unknown {
		return nil
	}
	n := int(c)
	return &n
}
