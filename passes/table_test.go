package passes

import (
	"os"
	"path"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// TestRooms: docs/architecture.md has every pass in the row of the folder that
// its function is in.
func TestRooms(t *testing.T) {
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range Table {
		name := runtime.FuncForPC(reflect.ValueOf(Table[i].Run).Pointer()).Name()
		room, _, _ := strings.Cut(path.Base(name), ".")
		if !rowHas(string(text), "`passes/"+room+"`", "`"+Table[i].Name+"`") {
			t.Errorf("docs/architecture.md does not say in the row of passes/%s that %s is there", room, Table[i].Name)
		}
	}
}

// rowHas reports whether a row of a table in text names both the folder and the pass.
func rowHas(text, folder, name string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") && strings.Contains(line, folder) && strings.Contains(line, name) {
			return true
		}
	}
	return false
}
