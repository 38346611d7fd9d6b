// Package browser opens pages in a headless Chromium, for tests: one process,
// which is told what to do over a pipe (Chrome DevTools Protocol).
//
// [Start] starts it, or skips the test where the machine has none. A [Page] is
// shown on a [Screen], opened from a file, and asked what is on it. Pages run no
// script and reach no network; what they asked for is counted.
package browser

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Find is the path of a Chromium of this machine; "" where it has none.
func Find() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// A Browser is a process that shows pages, until the test ends.
type Browser struct {
	t    testing.TB
	in   *os.File
	out  *bufio.Reader
	last int // number of the last call
	page *Page
	lost bool // it does not answer any more
}

// Start starts a browser; where there is none, the test is skipped.
func Start(t testing.TB) *Browser {
	t.Helper()
	path := Find()
	if path == "" {
		t.Skip("there is no Chromium here: apt-get install chromium")
	}
	toRead, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, toWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--proxy-server=127.0.0.1:9", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir())
	cmd.ExtraFiles = []*os.File{toRead, toWrite}
	log := new(bytes.Buffer)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	toRead.Close()
	toWrite.Close()
	b := &Browser{t: t, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	t.Cleanup(func() {
		in.Close() // which ends the process
		kill := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		kill.Stop()
		out.Close()
		if b.lost {
			t.Logf("%s", log)
		}
	})
	return b
}

// A message is what the browser says: the result of a call, or an event.
type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

type object = map[string]any

// patience is how long an answer may take.
const patience = time.Minute

// call asks for something and waits for the result.
func (b *Browser) call(session, method string, params object, result any) {
	b.t.Helper()
	b.last++
	id := b.last
	request := object{"id": id, "method": method, "params": params}
	if session != "" {
		request["sessionId"] = session
	}
	data, err := json.Marshal(request)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(data, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	b.until(func(m *message) bool {
		if m.ID != id {
			return false
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if result == nil {
			return true
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
		return true
	})
}

// until reads messages until one is what was waited for.
func (b *Browser) until(wanted func(*message) bool) {
	b.t.Helper()
	late := time.AfterFunc(patience, func() { b.in.Close() })
	defer late.Stop()
	for {
		data, err := b.out.ReadBytes(0)
		if err != nil {
			b.lost = true
			b.t.Fatalf("the browser ended, or did not answer for %v: %v", patience, err)
		}
		m := new(message)
		if err := json.Unmarshal(data[:len(data)-1], m); err != nil {
			b.t.Fatal(err)
		}
		if m.Method == "Network.requestWillBeSent" && b.page != nil {
			b.page.requested(m.Params)
		}
		if wanted(m) {
			return
		}
	}
}

// A Page is one page of a browser.
type Page struct {
	b       *Browser
	session string

	Requests []string // addresses that the page has asked for since it was opened, its own first
}

// Page is a page, empty at first. A browser has one at a time.
func (b *Browser) Page() *Page {
	b.t.Helper()
	var target struct{ TargetID string }
	b.call("", "Target.createTarget", object{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("", "Target.attachToTarget", object{"targetId": target.TargetID, "flatten": true}, &attached)
	p := &Page{b: b, session: attached.SessionID}
	p.Call("Page.enable", nil, nil)
	p.Call("Network.enable", nil, nil)
	p.Call("Emulation.setScriptExecutionDisabled", object{"value": true}, nil)
	b.page = p
	return p
}

// Call asks the page for something by a method of the protocol.
func (p *Page) Call(method string, params object, result any) {
	p.b.t.Helper()
	p.b.call(p.session, method, params, result)
}

// A Screen is what a page is shown on.
type Screen struct {
	Width, Height int
	Phone         bool
	Dark          bool
}

// Screens are a desk and a phone, each light and dark.
var Screens = []Screen{{1280, 900, false, false}, {1280, 900, false, true}, {390, 844, true, false}, {390, 844, true, true}}

func (s Screen) String() string {
	name := "desk"
	if s.Phone {
		name = "phone"
	}
	if s.Dark {
		return name + ", dark"
	}
	return name + ", light"
}

// On shows the page on another screen.
func (p *Page) On(s Screen) {
	p.b.t.Helper()
	scheme := "light"
	if s.Dark {
		scheme = "dark"
	}
	p.Call("Emulation.setDeviceMetricsOverride", object{"width": s.Width, "height": s.Height, "deviceScaleFactor": 1, "mobile": s.Phone}, nil)
	p.Call("Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Open opens a file, and waits until it is there.
func (p *Page) Open(path string) {
	p.b.t.Helper()
	p.Requests = nil
	abs, err := filepath.Abs(path)
	if err != nil {
		p.b.t.Fatal(err)
	}
	url := "file://" + abs
	p.Call("Page.navigate", object{"url": url}, nil)
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		var at string
		if p.Eval("document.readyState == 'complete' ? location.href : ''", &at); at == url {
			return
		}
		if time.Now().After(end) {
			p.b.t.Fatalf("%s is not there after %v", url, patience)
		}
	}
}

func (p *Page) requested(params json.RawMessage) {
	var sent struct{ Request struct{ URL string } }
	if json.Unmarshal(params, &sent) == nil {
		p.Requests = append(p.Requests, sent.Request.URL)
	}
}

// Eval is the value of an expression of JavaScript, which the page itself may not run.
func (p *Page) Eval(expression string, result any) {
	p.b.t.Helper()
	var answer struct {
		Result struct {
			Value json.RawMessage
		}
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	p.Call("Runtime.evaluate", object{"expression": expression, "returnByValue": true}, &answer)
	if x := answer.ExceptionDetails; x != nil {
		p.b.t.Fatalf("%s: %s", x.Text, x.Exception.Description)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(answer.Result.Value, result); err != nil {
		p.b.t.Fatalf("%s: %v", answer.Result.Value, err)
	}
}

// Press presses keys: Tab, Enter, or a character.
func (p *Page) Press(keys ...string) {
	p.b.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowDown": 40}
	for _, key := range keys {
		event := object{"type": "rawKeyDown", "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
		if key == "Enter" {
			event["type"], event["text"] = "keyDown", "\r"
		}
		p.Call("Input.dispatchKeyEvent", event, nil)
		p.Call("Input.dispatchKeyEvent", object{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}, nil)
	}
}

// Picture is what is painted in a rectangle of the page.
func (p *Page) Picture(r image.Rectangle) image.Image {
	p.b.t.Helper()
	img, err := png.Decode(bytes.NewReader(p.PNG(r)))
	if err != nil {
		p.b.t.Fatal(err)
	}
	return img
}

// PNG is the picture of a rectangle of the page as a file.
func (p *Page) PNG(r image.Rectangle) []byte {
	p.b.t.Helper()
	var shot struct{ Data string }
	p.Call("Page.captureScreenshot", object{"format": "png", "captureBeyondViewport": true,
		"clip": object{"x": r.Min.X, "y": r.Min.Y, "width": r.Dx(), "height": r.Dy(), "scale": 1}}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		p.b.t.Fatal(fmt.Errorf("picture: %w", err))
	}
	return data
}
