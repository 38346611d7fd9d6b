package report_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ppc/internal/shared"
	"ppc/ir/lang"
	"ppc/lower/report"
)

// browser is a Chromium that this machine has; without one the test is skipped.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no Chromium here: apt-get install chromium")
	return ""
}

// open runs the browser on a page, off line, and returns what it prints.
func open(t *testing.T, path string, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
		"--proxy-server=127.0.0.1:9", "--user-data-dir=" + t.TempDir()}, flags...)
	cmd := exec.CommandContext(ctx, browser(t), append(args, "file://"+path)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return string(out)
}

// everything reports whether PPC_BROWSER=all asks for every example at every size:
// a browser takes seconds to start.
func everything() bool { return os.Getenv("PPC_BROWSER") == "all" }

// A browser reads reports as they were written: the cells of the grid, the axes of
// the plots, and every name and number of the JSON.
func TestBrowserReads(t *testing.T) {
	browser(t)
	names := []string{"llama_window"}
	if everything() {
		names = examples(t)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			f, _ := compiled(t, name)
			path := filepath.Join(t.TempDir(), "report.html")
			if err := os.WriteFile(path, []byte(report.HTML([]*report.Facts{f})), 0o666); err != nil {
				t.Fatal(err)
			}
			p := parsed(t, open(t, path, "--dump-dom"))
			cells := p.texts["on cell"]
			if want := f.Schedules[0].Work; len(cells) != want {
				t.Errorf("the grid has %d cells, want %d", len(cells), want)
			}
			first := map[int]string{1: "0"}[f.Schedules[0].Repeats]
			if first == "" {
				first = "a0"
			}
			if len(cells) > 0 && cells[0] != first {
				t.Errorf("the first cell of the grid is %q, want %q", cells[0], first)
			}
			axes := strings.Join(p.texts["quiet"], "\n")
			for _, want := range []string{"stage 0", fmt.Sprint(f.Schedules[0].Iterations - 1), "op 1", fmt.Sprintf("op %d", f.Memory.Moments), "0 B"} {
				if !strings.Contains("\n"+axes+"\n", "\n"+want+"\n") {
					t.Errorf("no axis says %q", want)
				}
			}
			data, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			missing(t, data, &p.page)
		})
	}
}

// examples are the examples that have a model.
func examples(t *testing.T) []string {
	t.Helper()
	dir := filepath.Join(shared.Root(t), "examples")
	paths, err := filepath.Glob(filepath.Join(dir, "*.pp"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples (%v)", err)
	}
	more, err := filepath.Glob(filepath.Join(dir, "maxtext", "*.pp"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range append(paths, more...) {
		if p, err := lang.Load(path, lang.Options{Library: true, Train: true}); err == nil && p.Module != nil {
			rel, _ := filepath.Rel(dir, strings.TrimSuffix(path, ".pp"))
			names = append(names, rel)
		}
	}
	return names
}

// A dom is a page as a browser has it.
type dom struct {
	page
	texts map[string][]string // of the plots, by class
}

func parsed(t *testing.T, src string) *dom {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(src))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	p := &dom{page{cells: make(map[string]bool), tags: make(map[string]int)}, make(map[string][]string)}
	var all, cell strings.Builder
	class := ""
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			p.tags[x.Name.Local]++
			class = ""
			for _, a := range x.Attr {
				if x.Name.Local == "data" {
					p.cells[a.Value] = true
				}
				if a.Name.Local == "class" {
					class = a.Value
				}
			}
			cell.Reset()
		case xml.CharData:
			all.Write(x)
			cell.Write(x)
		case xml.EndElement:
			p.cells[cell.String()] = true
			if x.Name.Local == "text" {
				p.texts[class] = append(p.texts[class], cell.String())
			}
			all.WriteByte('\n')
		}
	}
	p.text = all.String()
	return p
}

// Pages render at the width of a desk and of a phone, light and dark: the back
// ground is that of the scheme, the colours of the grid and of the memory plot
// are there, and nothing but plots and tables, which scroll, is wider than the
// window.
func TestBrowserRenders(t *testing.T) {
	browser(t)
	names := []string{"llama_window"}
	if everything() {
		names = examples(t)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { renders(t, name) })
	}
}

func renders(t *testing.T, name string) {
	f, _ := compiled(t, name)
	src := report.HTML([]*report.Facts{f})
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, []byte(src), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, dark := range []bool{false, true} {
		for _, width := range []int{1280, 500} {
			if dark != (width == 500) && !everything() {
				continue
			}
			shot := filepath.Join(t.TempDir(), "shot.png")
			flags := []string{"--screenshot=" + shot, fmt.Sprintf("--window-size=%d,9000", width)}
			back := color.RGBA{0xff, 0xff, 0xff, 0xff}
			if dark {
				flags = append(flags, "--blink-settings=preferredColorScheme=0")
				back = color.RGBA{0x16, 0x18, 0x1b, 0xff}
			}
			open(t, path, flags...)
			img := shown(t, shot)
			if img.Bounds().Dx() != width {
				t.Errorf("the picture is %d wide, want %d", img.Bounds().Dx(), width)
			}
			if c := rgba(img.At(2, 2)); c != back {
				t.Errorf("dark = %v: the background is %v, want %v", dark, c, back)
			}
			for name, want := range map[string]color.RGBA{"repeat 0": {0xe6, 0x9f, 0x00, 0xff}, "the first owner of memory": {0x00, 0x72, 0xb2, 0xff}} {
				if !has(img, want) {
					t.Errorf("dark = %v, %d wide: nothing has the colour of %s", dark, width, name)
				}
			}
		}
	}
	measured := regexp.MustCompile(`<meta http-equiv[^>]*>`).ReplaceAllString(src, "")
	measured = strings.Replace(measured, "</body>", "<script>document.title = document.documentElement.scrollWidth + ' of ' + window.innerWidth</script></body>", 1)
	if err := os.WriteFile(path, []byte(measured), 0o666); err != nil {
		t.Fatal(err)
	}
	var have, of int
	out := open(t, path, "--dump-dom", "--window-size=500,900")
	if _, err := fmt.Sscanf(out[strings.Index(out, "<title>")+len("<title>"):], "%d of %d", &have, &of); err != nil || have > of {
		t.Errorf("in a window of %d the page is %d wide (%v)", of, have, err)
	}
}

func shown(t *testing.T, path string) image.Image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func rgba(c color.Color) color.RGBA {
	r, g, b, a := c.RGBA()
	return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), uint8(a >> 8)}
}

func has(img image.Image, want color.RGBA) bool {
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if rgba(img.At(x, y)) == want {
				return true
			}
		}
	}
	return false
}

// The pictures in docs are those of reports; PPC_UPDATE=1 makes them again.
func TestPictures(t *testing.T) {
	for _, c := range []struct{ example, picture string }{{"llama_window", "report-window.png"}, {"llama_moe", "report-moe.png"}, {"llama2_7b", "report-7b.png"}} {
		path := filepath.Join(shared.Root(t), "docs", c.picture)
		if os.Getenv("PPC_UPDATE") != "1" {
			if img := shown(t, path); img.Bounds().Dx() != 1100 {
				t.Errorf("%s is %d wide", path, img.Bounds().Dx())
			}
			continue
		}
		f, _ := compiled(t, c.example)
		page := filepath.Join(t.TempDir(), "report.html")
		if err := os.WriteFile(page, []byte(report.HTML([]*report.Facts{f})), 0o666); err != nil {
			t.Fatal(err)
		}
		open(t, page, "--screenshot="+path, "--window-size=1100,900")
	}
}
