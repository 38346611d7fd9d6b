package lang

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ppc/internal/golden"
	"ppc/internal/shared"
	"ppc/ir/lang/syntax"
)

// generated is a table of the reference: a comment says of what and, where the
// order is the document's, lists the rows.
var generated = regexp.MustCompile(`(?ms)^<!-- ([a-z]+):(.*?) -->\n(.*?)^<!-- end -->\n`)

// tables is how each is made from the names in the comment, and all names that
// the document must have.
var tables = map[string]struct {
	head []string
	row  func(name string) []string // nil where there is no such thing
	all  func() []string
}{
	"builtins": {[]string{"function", "gives"}, builtinRow, func() []string { return sortedKeys(newBuiltins()) }},
	"library":  {[]string{"function", "which"}, libraryRow, libraryNames},
	"settings": {[]string{"setting", "values", "without it", "says"}, settingLine, settingNames},
	"optimizers": {[]string{"argument", "values", "without it", "says"}, argumentLine, func() []string {
		var names []string
		for _, r := range trainArgs {
			names = append(names, r.of+"."+r.name)
		}
		return names
	}},
	"remat": {[]string{"policy", "keeps"}, policyLine, func() []string { return accepted(settingRowOf("pipeline", "remat")) }},
}

// Every table of the reference says what the code says, and leaves nothing
// out.
func TestReferenceTables(t *testing.T) {
	path := filepath.Join(shared.Root(t), "docs", "language.md")
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string][]string)
	out := generated.ReplaceAllFunc(doc, func(b []byte) []byte {
		m := generated.FindSubmatch(b)
		kind, names := string(m[1]), strings.Fields(string(m[2]))
		spec, ok := tables[kind]
		if !ok {
			t.Errorf("there is no table of %s", kind)
			return b
		}
		seen[kind] = append(seen[kind], names...)
		rows := [][]string{spec.head, slices.Repeat([]string{"---"}, len(spec.head))}
		for _, name := range names {
			row := spec.row(name)
			if row == nil {
				t.Errorf("the table of %s has %s, which is not there", kind, name)
				continue
			}
			rows = append(rows, row)
		}
		var text bytes.Buffer
		fmt.Fprintf(&text, "<!-- %s:%s -->\n", kind, m[2])
		for _, row := range rows {
			fmt.Fprintf(&text, "| %s |\n", strings.Join(row, " | "))
		}
		text.WriteString("<!-- end -->\n")
		return text.Bytes()
	})
	for kind, spec := range tables {
		for _, name := range spec.all() {
			if n := slices.Index(seen[kind], name); n < 0 {
				t.Errorf("no table of %s has %s", kind, name)
			} else if slices.Contains(seen[kind][n+1:], name) {
				t.Errorf("the tables of %s have %s twice", kind, name)
			}
		}
	}
	for _, word := range slices.Concat(elemTypes, knownMeshAxes, syntax.BlockWords) {
		if !bytes.Contains(doc, []byte("`"+word)) {
			t.Errorf("nothing says %s", code(word))
		}
	}
	if golden.Updating() && !bytes.Equal(out, doc) {
		if err := os.WriteFile(path, out, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(doc), string(out)); diff != "" {
		t.Errorf("docs/language.md differs from the code (-document +code):\n%s", diff)
	}
}

// kinds is how a signature shows what an argument is.
var kinds = map[argKind]string{anyArg: "", tensorArg: "tensor", numberArg: "number", boolArg: "bool", textArg: "text", axisArg: "axis", axesArg: "axes",
	newArg: "new axis", typeArg: "type", moveArg: "from -> to", rulesArg: "rules"}

func builtinRow(name string) []string {
	f := newBuiltins()[name]
	if f == nil {
		return nil
	}
	var args []string
	for _, a := range f.args {
		s := a.name
		if a.optional {
			s += "?"
		}
		if kind := kinds[a.kind]; kind != "" {
			s += ": " + kind
		}
		args = append(args, s)
	}
	return []string{code(name + "(" + strings.Join(args, ", ") + ")"), escape(f.doc)}
}

// code is a word as a table shows it.
func code(s string) string { return "`" + s + "`" }

func escape(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// libraryFns are the functions of the standard library: the head and the first
// paragraph of the comment above it.
func libraryFns() map[string][2]string {
	head := regexp.MustCompile(`(?ms)((?:^//[^\n]*\n)*)^fn ((\w+)\(.*?\)) \{$`)
	out := make(map[string][2]string)
	for _, f := range library() {
		for _, m := range head.FindAllStringSubmatch(f.Src.Text, -1) {
			paragraph, _, _ := strings.Cut(m[1], "//\n")
			comment := strings.Join(strings.Fields(strings.ReplaceAll(paragraph, "//", " ")), " ")
			out[m[3]] = [2]string{strings.Join(strings.Fields(m[2]), " "), comment}
		}
	}
	return out
}

func libraryNames() []string {
	var names []string
	for _, f := range library() {
		for _, d := range f.Funcs {
			names = append(names, d.Name)
		}
	}
	return names
}

func libraryRow(name string) []string {
	f, ok := libraryFns()[name]
	says := strings.TrimPrefix(strings.TrimSuffix(f[1], "."), name+" ")
	if !ok || says == "" {
		return nil
	}
	return []string{code(f[0]), escape(says)}
}

// accepted are the words that a setting takes.
func accepted(row *settingRow) []string {
	words := row.words
	if row.kind == flag {
		words = []string{"true", "false"}
	}
	return slices.Clone(words)
}

// settingNames are the settings that can be anything but what they are without
// being given.
func settingNames() []string {
	var out []string
	for i := range settingTable {
		row := &settingTable[i]
		choice := row.kind == word || row.kind == flag
		if !choice || len(accepted(row)) > 1 {
			out = append(out, row.block+"."+row.key)
		}
	}
	return out
}

func settingLine(name string) []string {
	block, key, _ := strings.Cut(name, ".")
	row := settingRowOf(block, key)
	if row == nil {
		return nil
	}
	values := valuesOf(row.kind, row.min, accepted(row))
	if row.above {
		values = "a number above " + number(row.min).String()
	}
	if row.max == row.min+1 {
		values = code(number(row.min).String()) + " or " + code(number(row.max).String())
	}
	return []string{code(key), values, defaultOf(row.def), escape(row.doc)}
}

func argumentLine(name string) []string {
	of, arg, _ := strings.Cut(name, ".")
	for _, row := range trainArgsOf(of) {
		if row.name == arg {
			values := valuesOf(row.kind, 0, nil)
			if row.below > 0 {
				values += " and below " + number(row.below).String()
			}
			return []string{code(of + "(" + arg + ": …)"), values, defaultOf(row.def), escape(row.doc)}
		}
	}
	return nil
}

func valuesOf(kind settingKind, least float64, words []string) string {
	for i, w := range words {
		words[i] = code(w)
	}
	switch kind {
	case count:
		return "a whole number from " + number(least).String()
	case real:
		return "a number from " + number(least).String()
	case rate:
		return "a number, a schedule, or a list with one number per step"
	case flag:
		return "`true`, `false`"
	case names:
		return "`[name, name]`"
	case fileName:
		if len(words) == 0 {
			return "a name"
		}
		return strings.Join(append(words, "a text in quotes"), ", ")
	}
	return strings.Join(words, ", ")
}

// defaultOf is a default as a program would write it; "" where there is none.
func defaultOf(def any) string {
	switch v := def.(type) {
	case nil:
		return ""
	case string:
		if v == "" {
			return ""
		}
		return code(v)
	case float64:
		return code(number(v).String())
	}
	return code(fmt.Sprint(def))
}

func policyLine(name string) []string {
	if !slices.Contains(accepted(settingRowOf("pipeline", "remat")), name) {
		return nil
	}
	switch name {
	case "full":
		return []string{code(name), "nothing inside a boundary but what `save` names"}
	case "none":
		return []string{code(name), "everything: there are no boundaries"}
	case "custom":
		return []string{code(name + " { name = device }"), "the names that are given `device`; those that are given `offload`, in host memory; those that are given `remat` are computed again"}
	}
	var kept []string
	for _, n := range slices.Concat(policies[name], offloaded[name]) {
		kept = append(kept, code(n))
	}
	if offloaded[name] != nil {
		kept[len(kept)-1] += ", in host memory"
	}
	return []string{code(name), strings.Join(kept, ", ")}
}
