package report_test

import (
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ppc/internal/browser"
	"ppc/internal/shared"
	"ppc/ir/facts"
	"ppc/ir/lang"
	"ppc/lower/report"
)

// A browser, on a desk and on a phone, light and dark, without network and script,
// shows a report as it was written: every name and number of the JSON, each cell of
// the grid where its stage and iteration meet, plots to the scale of their axes.
// PPC_BROWSER=all opens the reports of all examples.
func TestBrowser(t *testing.T) {
	b := browser.Start(t)
	names := []string{"llama_window", "llama2_7b"}
	if shared.Setting(t, "PPC_BROWSER") == "all" {
		names = examples(t)
	}
	page := b.Page()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			f, _ := compiled(t, name)
			path := saved(t, f)
			for _, screen := range browser.Screens {
				t.Run(screen.String(), func(t *testing.T) {
					page.On(screen)
					page.Open(path)
					looked(t, f, page, screen)
				})
			}
		})
	}
}

// saved writes the report of facts as a page.
func saved(t *testing.T, all ...*report.Facts) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, []byte(report.HTML(all)), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// examples are the examples that have a model.
func examples(t *testing.T) []string {
	t.Helper()
	dir := filepath.Join(shared.Root(t), "examples")
	var names []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if name, is := strings.CutSuffix(path, ".pp"); is && err == nil {
			if p, err := lang.Load(path, lang.Options{Library: true, Train: true}); err == nil && p.Module != nil {
				rel, _ := filepath.Rel(dir, name)
				names = append(names, rel)
			}
		}
		return err
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("no examples (%v)", err)
	}
	return names
}

// A sight is what a browser shows of a page.
type sight struct {
	Width, Wide int // of the window, of what is in it
	Back        string
	Text        string
	Cells       []string
	Plots       map[string][]*mark // by section
}

// A mark is one shape or text of a plot, and where it is on the page.
type mark struct {
	Tag, Class, Text, Fill string
	X, Y, W, H             float64
}

func (m *mark) middle() (x, y float64) { return m.X + m.W/2, m.Y + m.H/2 }

const look = `(() => {
  const plots = {};
  for (const svg of document.querySelectorAll('svg')) {
    plots[svg.closest('section').id] = [...svg.querySelectorAll('text, rect, path')].map(e => {
      const r = e.getBoundingClientRect();
      return {Tag: e.tagName, Class: e.getAttribute('class') || '', Text: e.textContent, Fill: getComputedStyle(e).fill, X: r.left + scrollX, Y: r.top + scrollY, W: r.width, H: r.height};
    });
  }
  const texts = (what, of) => [...document.querySelectorAll(what)].map(of);
  return {
    Width: innerWidth, Wide: document.documentElement.scrollWidth, Back: getComputedStyle(document.body).backgroundColor,
    Text: texts('h1, h2, p, th, td, caption, summary, text, svg title', e => e.textContent).join('\n'),
    Cells: [...texts('th, td', e => e.textContent), ...texts('data', e => e.value)], Plots: plots,
  };
})()`

// looked demands of an open page that it shows f.
func looked(t *testing.T, f *report.Facts, p *browser.Page, screen browser.Screen) {
	s := new(sight)
	p.Eval(look, s)
	if len(p.Requests) != 1 {
		t.Errorf("the page asks for %q", p.Requests[1:])
	}
	if s.Width != screen.Width || s.Wide > s.Width {
		t.Errorf("in a window of %d the page is %d wide", s.Width, s.Wide)
	}
	back := map[bool]color.RGBA{false: {0xff, 0xff, 0xff, 0xff}, true: {0x16, 0x18, 0x1b, 0xff}}[screen.Dark]
	if s.Back != css(back) {
		t.Errorf("the background is %s, want %s", s.Back, css(back))
	}
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	read := &page{cells: make(map[string]bool), text: s.Text}
	for _, c := range s.Cells {
		read.cells[c] = true
	}
	missing(t, data, read)
	painted := []*mark{{X: 1, Y: 1, Fill: css(back)}}
	for i, x := range f.Schedules {
		painted = append(painted, gridShown(t, x, s.Plots[fmt.Sprintf("schedule-%d", i)]))
	}
	memoryShown(t, &f.Memory, s.Plots["memory"])
	barsShown(t, f.Collectives, s.Plots["collectives"])
	for _, m := range painted {
		if m == nil {
			continue
		}
		img := p.Picture(image.Rect(int(m.X)+2, int(m.Y)+2, int(m.X)+4, int(m.Y)+4))
		r, g, b, _ := img.At(img.Bounds().Min.X, img.Bounds().Min.Y).RGBA()
		if c := css(color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0xff}); c != m.Fill {
			t.Errorf("at %g, %g the page has the colour %s, want %s", m.X, m.Y, c, m.Fill)
		}
	}
}

func css(c color.RGBA) string { return fmt.Sprintf("rgb(%d, %d, %d)", c.R, c.G, c.B) }

var repeatColours = []color.RGBA{{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0xf0, 0xe4, 0x42, 0xff}, {0xcc, 0x79, 0xa7, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xd5, 0x5e, 0x00, 0xff}}

// An axis is where on the page the numbers of an axis are.
type axis struct{ at map[int]float64 }

// number is what stands at a place of the axis, in between of two others too.
func (a *axis) number(at float64) int {
	lo, hi := math.MaxInt, math.MinInt
	for n := range a.at {
		lo, hi = min(lo, n), max(hi, n)
	}
	if lo >= hi {
		return lo
	}
	return lo + int(math.Round((at-a.at[lo])/(a.at[hi]-a.at[lo])*float64(hi-lo)))
}

// gridShown demands that the grid has a box for each microbatch of each stage, in
// the colour of its repeat, and returns the first.
func gridShown(t *testing.T, s *report.Schedule, marks []*mark) *mark {
	t.Helper()
	iterations, stages := &axis{make(map[int]float64)}, &axis{make(map[int]float64)}
	var boxes []*mark
	numbers := make(map[[2]float64]string) // by the middle
	for _, m := range marks {
		x, y := m.middle()
		var n int
		switch {
		case m.Tag == "rect" && strings.HasPrefix(m.Class, "cells"):
			boxes = append(boxes, m)
		case m.Class == "on cell":
			numbers[[2]float64{math.Round(x), math.Floor(y / 8)}] = m.Text
		case m.Class != "quiet":
		case strings.HasPrefix(m.Text, "stage "):
			fmt.Sscanf(m.Text, "stage %d", &n)
			stages.at[n] = y
		default:
			fmt.Sscanf(m.Text, "%d", &n)
			iterations.at[n] = x
		}
	}
	if len(stages.at) == 0 || len(iterations.at) < min(s.Iterations, 2) {
		t.Errorf("the axes of the grid are %v, %v", stages.at, iterations.at)
		return nil
	}
	step := boxes[0].W
	detailed := len(numbers) > 0
	seen := make(map[[2]int]bool)
	schedule := facts.Schedule{S: s.Stages, M: s.Microbatches, R: s.Repeats, L: s.LayersPerStage, D: s.Delay}
	for _, b := range boxes {
		_, y := b.middle()
		stage, n := stages.number(y), 1
		from := iterations.number(b.X + step/2)
		if !detailed {
			unit := (iterations.at[maxKey(iterations.at)] - iterations.at[0]) / float64(maxKey(iterations.at))
			from, n = iterations.number(b.X+unit/2), int(math.Round(b.W/unit))
		}
		for i := from; i < from+n; i++ {
			micro, repeat, works := schedule.At(stage, i)
			if !works || seen[[2]int{stage, i}] {
				t.Errorf("stage %d, iteration %d: a box where a bubble is, or the second", stage, i)
			}
			seen[[2]int{stage, i}] = true
			if want := css(repeatColours[repeat%len(repeatColours)]); b.Fill != want {
				t.Errorf("stage %d, iteration %d: repeat %d has the colour %s, want %s", stage, i, repeat, b.Fill, want)
			}
			if detailed {
				numberShown(t, s, numbers, b, stage, i, micro, repeat)
			}
		}
	}
	if s.Left == 0 && len(seen) != s.Work {
		t.Errorf("the grid has %d cells, want %d", len(seen), s.Work)
	}
	return boxes[0]
}

func numberShown(t *testing.T, s *report.Schedule, numbers map[[2]float64]string, b *mark, stage, iteration, micro, repeat int) {
	t.Helper()
	want := fmt.Sprint(micro)
	if s.Repeats > 1 {
		want = fmt.Sprintf("%c%d", 'a'+repeat, micro)
	}
	x, y := b.middle()
	for _, dx := range []float64{-1, 0, 1} {
		for _, dy := range []float64{-1, 0, 1} {
			if numbers[[2]float64{math.Round(x) + dx, math.Floor(y/8) + dy}] == want {
				return
			}
		}
	}
	t.Errorf("stage %d, iteration %d: no %s", stage, iteration, want)
}

func maxKey(m map[int]float64) int {
	n := 0
	for k := range m {
		n = max(n, k)
	}
	return n
}

// memoryShown demands that the plot of memory has the peak where its axis says,
// begins with the first op and ends with the last, and names every owner.
func memoryShown(t *testing.T, m *report.Memory, marks []*mark) {
	t.Helper()
	scale := make(map[float64]float64) // bytes by y
	top, highest := math.Inf(1), 0.0
	var zero float64
	var texts []string
	for _, x := range marks {
		_, y := x.middle()
		if x.Tag == "path" {
			top = min(top, x.Y)
			continue
		}
		texts = append(texts, x.Text)
		if bytes, is := bytesIn(x.Text); is && x.Class == "quiet" {
			scale[y] = bytes
			highest = max(highest, bytes)
			if bytes == 0 {
				zero = y
			}
		}
	}
	for y, bytes := range scale {
		if bytes == highest && highest > 0 {
			shown := (zero - 1 - top) / (zero - y) * highest // texts stand a little below their lines
			if math.Abs(shown-float64(m.Peak)) > 0.03*highest {
				t.Errorf("by its axis the plot of memory ends at %g, want %d", shown, m.Peak)
			}
		}
	}
	if len(scale) < 3 {
		t.Errorf("the axis of memory has %d numbers", len(scale))
	}
	want := []string{"op 1", fmt.Sprintf("op %d", m.Moments), "0 B"}
	for _, text := range want {
		if !slices.Contains(texts, text) {
			t.Errorf("no axis says %q", text)
		}
	}
	for _, o := range m.Owners {
		if !slices.ContainsFunc(texts, func(s string) bool { return strings.HasPrefix(s, o.Owner+", ") }) {
			t.Errorf("the plot does not name %s", o.Owner)
		}
	}
}

// bytesIn reads a size: 1.5 MiB.
func bytesIn(text string) (float64, bool) {
	var n float64
	var unit string
	if k, _ := fmt.Sscanf(text, "%g %s", &n, &unit); k != 2 {
		return 0, false
	}
	i := slices.Index([]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}, unit)
	return n * math.Pow(1024, float64(i)), i >= 0
}

// barsShown demands that bars are as long as what is received is large.
func barsShown(t *testing.T, cs []report.Collective, marks []*mark) {
	t.Helper()
	var bars []*mark
	longest := 0.0
	for _, m := range marks {
		if m.Tag == "rect" {
			bars = append(bars, m)
			longest = max(longest, m.W)
		}
	}
	most := 0
	for _, c := range cs {
		if c.Received != nil {
			most = max(most, *c.Received)
		}
	}
	if most == 0 {
		return
	}
	if len(bars) != min(len(cs), 60) {
		t.Fatalf("%d bars for %d collectives", len(bars), len(cs))
	}
	for i, b := range bars {
		c := cs[i]
		if c.Received == nil {
			continue
		}
		if want := longest * float64(*c.Received) / float64(most); math.Abs(b.W-want) > 1 {
			t.Errorf("%s in %q: a bar of %g, want %g", c.Kind, c.Loop, b.W, want)
		}
	}
}

// The pictures in docs are those of reports; PPC_UPDATE=1 makes them again.
func TestPictures(t *testing.T) {
	var p *browser.Page
	if shared.Setting(t, "PPC_UPDATE") == "1" {
		p = browser.Start(t).Page()
	}
	for _, c := range []struct{ example, picture string }{{"llama_window", "report-window.png"}, {"llama_moe", "report-moe.png"}, {"llama2_7b", "report-7b.png"}} {
		path := filepath.Join(shared.Root(t), "docs", c.picture)
		if p != nil {
			f, _ := compiled(t, c.example)
			p.On(browser.Screen{Width: 1100, Height: 900})
			p.Open(saved(t, f))
			if err := os.WriteFile(path, p.PNG(image.Rect(0, 0, 1100, 900)), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(file)
		file.Close()
		if err != nil || img.Bounds().Dx() != 1100 {
			t.Errorf("%s is no picture of a report (%v)", path, err)
		}
	}
}
