package report_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"testing"

	"ppc/internal/browser"
)

// linear is a colour by the light of red, green and blue.
type linear [3]float64

// colours are those of the style sheet that pattern matches, by its first group.
func colours(t *testing.T, pattern string) map[string]linear {
	t.Helper()
	sheet, err := os.ReadFile("report.css")
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]linear)
	for _, m := range regexp.MustCompile(pattern+`#([0-9a-f]{6})`).FindAllStringSubmatch(string(sheet), -1) {
		var c [3]int
		fmt.Sscanf(m[2], "%02x%02x%02x", &c[0], &c[1], &c[2])
		var l linear
		for i, v := range c {
			x := float64(v) / 255
			if x <= 0.04045 {
				l[i] = x / 12.92
			} else {
				l[i] = math.Pow((x+0.055)/1.055, 2.4)
			}
		}
		name := m[1]
		for out[name] != (linear{}) {
			name += " dark"
		}
		out[name] = l
	}
	return out
}

func (c linear) luminance() float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }

// contrast is that of WCAG.
func contrast(a, b linear) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// lab is c in CIELAB, where distances are about those that people see.
func (c linear) lab() [3]float64 {
	xyz := [3]float64{
		(0.4124564*c[0] + 0.3575761*c[1] + 0.1804375*c[2]) / 0.95047,
		c.luminance(),
		(0.0193339*c[0] + 0.1191920*c[1] + 0.9503041*c[2]) / 1.08883,
	}
	for i, v := range xyz {
		if v > 0.008856 {
			xyz[i] = math.Cbrt(v)
		} else {
			xyz[i] = 7.787*v + 16.0/116
		}
	}
	return [3]float64{116*xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])}
}

func distance(a, b linear) float64 {
	x, y := a.lab(), b.lab()
	return math.Sqrt(math.Pow(x[0]-y[0], 2) + math.Pow(x[1]-y[1], 2) + math.Pow(x[2]-y[2], 2))
}

// sights are what people see who have all cones, or lack one kind (Machado, Oliveira
// and Fernandes 2009).
var sights = map[string][3][3]float64{
	"all cones":    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

func (c linear) seen(m [3][3]float64) linear {
	var out linear
	for i, row := range m {
		out[i] = min(max(row[0]*c[0]+row[1]*c[1]+row[2]*c[2], 0), 1)
	}
	return out
}

// People tell the colours of repeats apart, and those of owners, who lack one kind
// of cone too.
func TestColoursApart(t *testing.T) {
	const apart = 10 // 2.3 is just noticeable
	for _, kind := range []string{"c", "k"} {
		all := colours(t, `\.(`+kind+`\d) \{ fill: `)
		names := slices.Sorted(maps.Keys(all))
		if len(names) < 6 {
			t.Fatalf("%d colours %s", len(names), kind)
		}
		for sight, m := range sights {
			for i, a := range names {
				for _, b := range names[:i] {
					if d := distance(all[a].seen(m), all[b].seen(m)); d < apart {
						t.Errorf("%s: %s and %s are %.1f apart", sight, a, b, d)
					}
				}
			}
		}
	}
}

// Text has the contrast that WCAG asks for (4.5), light and dark, and the numbers
// in the grid on the colour of every repeat.
func TestContrast(t *testing.T) {
	vars := colours(t, `--(\w+): `)
	for _, scheme := range []string{"", " dark"} {
		for _, text := range []string{"text", "quiet", "link"} {
			for _, back := range []string{"back", "band"} {
				if c := contrast(vars[text+scheme], vars[back+scheme]); c < 4.5 {
					t.Errorf("%s on %s%s has a contrast of %.1f", text, back, scheme, c)
				}
			}
		}
	}
	for name, c := range colours(t, `\.(c\d) \{ fill: `) {
		if c := contrast(c, linear{}); c < 4.5 {
			t.Errorf("black on %s has a contrast of %.1f", name, c)
		}
	}
}

// The keyboard reaches every link, table and plot in their order, with a mark around
// what has the focus; Enter opens what is folded.
func TestBrowserKeyboard(t *testing.T) {
	p := browser.Start(t).Page()
	p.On(browser.Screens[0])
	f, _ := compiled(t, "llama_window", "axes.seq=16")
	p.Open(saved(t, f))
	var want int
	p.Eval(`document.querySelectorAll('a, summary').length + [...document.querySelectorAll('.scroll')].filter(e => !e.closest('details:not([open])')).length`, &want)
	var seen []float64
	folds := 0
	for range want {
		p.Press("Tab")
		var at struct {
			Index   float64
			Outline string
			Summary bool
			Open    bool
		}
		const state = `(() => { const e = document.activeElement; return {
			Index: [...document.querySelectorAll('a, summary, .scroll')].indexOf(e),
			Outline: getComputedStyle(e).outlineStyle, Summary: e.tagName == 'SUMMARY', Open: e.tagName == 'SUMMARY' && e.parentElement.open}; })()`
		p.Eval(state, &at)
		if at.Index < 0 || at.Outline != "solid" {
			t.Fatalf("the focus is at element %g, with the outline %s", at.Index, at.Outline)
		}
		seen = append(seen, at.Index)
		if at.Summary {
			was := at.Open
			p.Press("Enter")
			p.Eval(state, &at)
			if at.Open == was {
				t.Errorf("Enter does not open element %g", at.Index)
			}
			p.Press("Enter")
			folds++
		}
	}
	if !slices.IsSorted(seen) || len(slices.Compact(slices.Clone(seen))) != want || folds < 3 {
		t.Errorf("of %d places the focus goes to %v; %d fold", want, seen, folds)
	}
	var unnamed []string
	p.Eval(`[...document.querySelectorAll('svg, .scroll, nav, section')].filter(e => !e.getAttribute('aria-label') && !document.getElementById(e.getAttribute('aria-labelledby'))).map(e => e.outerHTML.slice(0, 80))`, &unnamed)
	if len(unnamed) > 0 {
		t.Errorf("no name for %q", unnamed)
	}
	var bare []string
	p.Eval(`[...document.querySelectorAll('svg')].filter(e => !e.closest('section').querySelector('table')).map(e => e.getAttribute('aria-label'))`, &bare)
	if len(bare) > 0 {
		t.Errorf("no table beside %q", bare)
	}
}
