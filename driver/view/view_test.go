package view

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"ppc/internal/browser"
	"ppc/internal/shared"
	"ppc/ir"
	"ppc/ir/lang"
	"ppc/ir/mlir"
	"ppc/passes"
	"ppc/passes/pass"
)

func read(t testing.TB) func(string) ([]byte, error) {
	root := shared.Root(t)
	return func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(root, name)) }
}

// viewed is the view of an example.
func viewed(t *testing.T, example string) *View {
	t.Helper()
	p, err := lang.Load("examples/"+example+".pp", lang.Options{Train: true, ReadFile: read(t)})
	if err != nil {
		t.Fatal(err)
	}
	v := New("examples/"+example+".pp", p.Module)
	each := func(_ int, q *pass.Pass, m *ir.Module) error {
		v.Step(q.Name, q.Doc, m)
		return nil
	}
	if err := passes.Run(p.Module, passes.Config{Each: each}); err != nil {
		t.Fatal(err)
	}
	return v
}

// What a step says was added and removed makes the program after it of the one
// before, and a pass that changes nothing says so.
func TestSteps(t *testing.T) {
	for _, example := range []string{"simple", "llama", "llama_moe"} {
		v := viewed(t, example)
		lines, changed := len(v.first), 0
		for _, s := range v.steps {
			if lines+s.added-s.removed != s.total {
				t.Errorf("%s, %s: %d lines, %d added, %d removed make %d", example, s.pass, lines, s.added, s.removed, s.total)
			}
			if lines = s.total; s.changes() > 0 {
				changed++
			}
		}
		if lines != len(v.last) || changed < 5 || changed == len(v.steps) {
			t.Errorf("%s: %d lines at the end, want %d; %d of %d passes changed something", example, lines, len(v.last), changed, len(v.steps))
		}
	}
}

// The changes between two texts give the second from the first, and what a
// few edits leave is found.
func TestMatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		words := 1 + rng.IntN(30)
		var before, after []line
		for range rng.IntN(60) {
			before = append(before, line{key: fmt.Sprint(rng.IntN(words))})
		}
		edits := rng.IntN(5)
		after = slices.Clone(before)
		for range edits {
			at := rng.IntN(len(after) + 1)
			if len(after) > at && rng.IntN(2) == 0 {
				after = slices.Delete(after, at, at+1)
			} else {
				after = slices.Insert(after, at, line{key: fmt.Sprint(rng.IntN(words))})
			}
		}
		pairs := matches(before, after)
		last := [2]int{-1, -1}
		for _, p := range pairs {
			if p[0] <= last[0] || p[1] <= last[1] || before[p[0]].key != after[p[1]].key {
				t.Fatalf("%v of %v and %v", pairs, before, after)
			}
			last = p
		}
		if lost := len(before) - len(pairs); lost > edits+len(before)/2 {
			t.Errorf("%d edits: %d of %d lines are not found again", edits, lost, len(before))
		}
	}
}

// The pieces of an edited line are what stood there before, and what stands there
// now; what both have in common is not marked.
func TestPieces(t *testing.T) {
	edited := 0
	for _, s := range viewed(t, "llama").steps {
		for _, h := range s.hunks {
			for _, c := range h.lines {
				if c.mark != '~' {
					continue
				}
				edited++
				var before, after strings.Builder
				for _, p := range pieces(c.before, c.text) {
					if p.mark != '+' {
						before.WriteString(p.text)
					}
					if p.mark != '-' {
						after.WriteString(p.text)
					}
				}
				if after.String() != c.text || numbers.ReplaceAllString(before.String(), "%$1") != numbers.ReplaceAllString(c.before, "%$1") {
					t.Fatalf("%s: %q and %q have the pieces %q and %q", s.pass, c.before, c.text, before.String(), after.String())
				}
			}
		}
	}
	if edited < 500 {
		t.Errorf("%d lines are edited", edited)
	}
	var marked []string
	for _, p := range pieces("  %12 = stablehlo.add %1, %x_7 : tensor<4x2xf32>", "  %40 = stablehlo.add %3, %x_9 {a = 1} : tensor<1x2xf32>") {
		if p.mark != ' ' {
			marked = append(marked, string(p.mark)+p.text)
		}
	}
	if want := []string{"+{a = 1} ", "-4x2xf32", "+1x2xf32"}; !slices.Equal(marked, want) {
		t.Errorf("the pieces that differ are %q, want %q", marked, want)
	}
}

// A browser opens the page without network and script, on a desk and on a phone,
// light and dark; it folds a loop when a key is pressed, and follows a link to the
// line of the source.
func TestBrowser(t *testing.T) {
	p := browser.Start(t).Page()
	path := filepath.Join(t.TempDir(), "view.html")
	if err := os.WriteFile(path, []byte(viewed(t, "llama").HTML(read(t))), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, screen := range browser.Screens {
		p.On(screen)
		p.Open(path)
		var s struct {
			Wide, Passes, Links, Lost int
			Back                      string
		}
		p.Eval(`({Wide: document.documentElement.scrollWidth, Back: getComputedStyle(document.body).backgroundColor,
			Passes: document.querySelectorAll('h2[id^=pass]').length, Links: document.links.length,
			Lost: [...document.links].filter(a => !document.getElementById(a.hash.slice(1))).length})`, &s)
		back := map[bool]string{false: "rgb(255, 255, 255)", true: "rgb(22, 24, 27)"}[screen.Dark]
		if len(p.Requests) != 1 || s.Wide > screen.Width || s.Back != back || s.Passes < 10 || s.Links < 1000 || s.Lost > 0 {
			t.Errorf("%v: %+v, asks for %q", screen, s, p.Requests)
		}
	}
	var folds []bool
	p.Eval(`(document.querySelector('#last + .code details details:not([open]) > summary') || document.querySelector('.code summary')).focus()`, nil)
	for range 2 {
		p.Press("Enter")
		var open bool
		p.Eval(`document.activeElement.parentElement.open`, &open)
		folds = append(folds, open)
	}
	if !slices.Equal(folds, []bool{true, false}) {
		t.Errorf("a loop that is pressed twice is open: %v", folds)
	}
	for _, link := range []string{".code a", "nav tr:last-child a", "nav tr:nth-child(15) a"} {
		var at string
		p.Eval(fmt.Sprintf(`(() => { const a = document.querySelector(%q); a.focus(); return a.hash; })()`, link), &at)
		p.Press("Enter")
		var top float64 // of where it leads, in the window
		for range 100 {
			p.Eval(fmt.Sprintf(`location.hash == %q ? document.getElementById(%q).getBoundingClientRect().top : -2`, at, at[1:]), &top)
			if top > -1 && top < 900 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if top <= -1 || top >= 900 {
			t.Errorf("the link to %s leads to %g below the top of the window", at, top)
		}
	}
}

// A page is well formed, needs nothing else, and every link leads somewhere: that
// of an op to the line of the source that it comes from.
func TestPage(t *testing.T) {
	v := viewed(t, "llama_window")
	page := v.HTML(read(t))
	ids, links, tags := parse(t, page)
	for _, l := range links {
		if !strings.HasPrefix(l, "#") || !ids[l[1:]] {
			t.Fatalf("the link %s leads nowhere", l)
		}
	}
	if len(links) < 1000 || tags["details"] < 20 {
		t.Errorf("%d links, %d parts that fold", len(links), tags["details"])
	}
	for _, tag := range []string{"script", "link", "img"} {
		if tags[tag] > 0 {
			t.Errorf("the page has a %s", tag)
		}
	}
	if page != viewed(t, "llama_window").HTML(read(t)) {
		t.Error("the same program gives another page")
	}
	files := v.files()
	for _, want := range []string{
		fmt.Sprintf("id=\"s%d-16\"><span class=\"mark\">16</span>  h = rmsnorm(x, norm1, over: embed)", files["examples/llama.pp"]),
		fmt.Sprintf("href=\"#s%d-16\"", files["examples/llama.pp"]),
		`<a href="#pass-7">differentiate</a>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %s", want)
		}
	}
}

func parse(t *testing.T, page string) (ids map[string]bool, links []string, tags map[string]int) {
	t.Helper()
	ids, tags = make(map[string]bool), make(map[string]int)
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return ids, links, tags
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok {
			tags[e.Name.Local]++
			for _, a := range e.Attr {
				switch a.Name.Local {
				case "id":
					ids[a.Value] = true
				case "href":
					links = append(links, a.Value)
				}
			}
		}
	}
}

// Names that are markup, control characters or very long are text.
func TestHostileNames(t *testing.T) {
	src := fmt.Sprintf("module @\"<script>alert(1)</script>\" {\n func.func @main(%%x: tensor<4xf32> {pp.name = \"%s\\1B[2J\"}) -> tensor<4xf32> {\n %%y = stablehlo.add %%x, %%x : tensor<4xf32> loc(\"<img src=x>\":1:2)\n return %%y : tensor<4xf32>\n }\n}", strings.Repeat("a", 1<<20))
	m, err := mlir.Parse("x.mlir", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	v := New("\x1b[2J<b>", m)
	v.Step("<i>", "\"<u>\"", m)
	page := v.HTML(func(string) ([]byte, error) { return nil, errors.New("none") })
	_, _, tags := parse(t, page)
	for _, tag := range []string{"script", "img", "b", "i", "u"} {
		if tags[tag] > 0 {
			t.Errorf("a name has become a %s element", tag)
		}
	}
	if len(page) > 1<<20 || strings.ContainsFunc(page, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		t.Errorf("the page has %d bytes, or control characters", len(page))
	}
}
