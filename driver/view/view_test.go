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
	"unicode"

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
			if lines = s.total; s.added+s.removed > 0 {
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
		fmt.Sprintf("id=\"s%d-16\"><span class=\"mark\">16</span><span class=\"text\">  h = rmsnorm(x, norm1, over: embed)</span>", files["examples/llama.pp"]),
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
