package maxtext

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// An Answer is what becomes of a key.
type Answer string

// What becomes of a key.
const (
	Mapped  Answer = "mapped"  // says tells to what
	Unused  Answer = "unused"  // has no effect on the program; says tells why
	Refused Answer = "refused" // only its default is taken; says tells why, or what to do instead
)

// A Key is one row of the table of keys.
type Key struct {
	Name    string
	Kind    string // bool, whole, number, text, list, map, any
	Default any
	Answer  Answer
	Says    string
}

//go:embed keys.tsv
var keysTSV string

// Keys is the table of keys, which is read when it is asked for: most commands of ppc need none of it.
var Keys = sync.OnceValue(readKeys)

// rowsByName are the rows of the table, by their names.
var rowsByName = sync.OnceValue(func() map[string]*Key {
	keys := Keys()
	m := make(map[string]*Key, len(keys))
	for i := range keys {
		m[keys[i].Name] = &keys[i]
	}
	return m
})

// keyOf is the row of that name, nil where there is none.
func keyOf(name string) *Key { return rowsByName()[name] }

func readKeys() []Key {
	lines := strings.Split(strings.TrimSuffix(keysTSV, "\n"), "\n")
	out := make([]Key, 0, len(lines))
	for _, line := range lines[1:] {
		f := strings.Split(line, "\t")
		k := Key{Name: f[0], Kind: f[1], Answer: Answer(f[3]), Says: f[4]}
		d := &document{file: "keys.tsv", text: f[2]}
		if n := d.parse(f[2]); n != nil {
			k.Default, _ = d.value(n, 0)
		}
		if v, ok := k.convert(k.Default); ok {
			k.Default = v
		}
		out = append(out, k)
	}
	return out
}

// keyNames are the names of all keys.
func keyNames() []string {
	keys := Keys()
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.Name
	}
	return out
}

// want is a kind of key for a message.
var want = map[string]string{"bool": "true or false", "whole": "a whole number", "number": "a number", "text": "a text", "list": "a list", "map": "a mapping"}

// convert makes of v a value of the key's kind, as MaxText does: a text may hold
// a truth value or a number, and nothing stands for the default.
func (k *Key) convert(v any) (any, bool) {
	if v == nil {
		return k.Default, true
	}
	switch k.Kind {
	case "bool":
		if s, ok := v.(string); ok && (strings.EqualFold(s, "true") || strings.EqualFold(s, "false")) {
			return strings.EqualFold(s, "true"), true
		}
		_, ok := v.(bool)
		return v, ok
	case "whole":
		if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int(f), true
		}
		_, ok := v.(int)
		return v, ok
	case "number":
		if n, ok := v.(int); ok {
			return float64(n), true
		}
		_, ok := v.(float64)
		return v, ok
	case "text":
		switch v := v.(type) {
		case []any, map[string]any:
			return v, false
		}
		return show(v), true
	case "list":
		if s, ok := v.(string); ok {
			return []any{s}, true
		}
		_, ok := v.([]any)
		return v, ok
	case "map":
		_, ok := v.(map[string]any)
		return v, ok
	}
	return v, true
}

// show is a value as a command line has it.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = show(x)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		return "{" + strings.Join(names, ",") + "}"
	}
	return fmt.Sprint(v)
}

// off reports whether v turns nothing on: what a key without a default of its own
// is without.
func off(v any) bool {
	switch v := v.(type) {
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return v == nil || v == false || v == 0 || v == 0.0 || v == ""
}
