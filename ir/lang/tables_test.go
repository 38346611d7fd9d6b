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
	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
	"ppc/ir/lang/value"
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
	"builtins": {[]string{"function", "gives"}, builtinRow, func() []string { return config.SortedKeys(newBuiltins()) }},
	"library":  {[]string{"function", "which"}, libraryRow, libraryNames},
	"settings": {[]string{"setting", "values", "without it", "says"}, settingLine, settingNames},
	"optimizers": {[]string{"argument", "values", "without it", "says"}, argumentLine, func() []string {
		var names []string
		for _, r := range config.TrainArgs {
			names = append(names, r.Of+"."+r.Name)
		}
		return names
	}},
	"remat": {[]string{"policy", "keeps"}, policyLine, func() []string { return accepted(config.SettingRowOf("pipeline", "remat")) }},
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
	for _, word := range slices.Concat(config.ElemTypes, config.KnownMeshAxes, syntax.BlockWords) {
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
func accepted(row *config.SettingRow) []string {
	words := row.Words
	if row.Kind == config.Flag {
		words = []string{"true", "false"}
	}
	return slices.Clone(words)
}

// settingNames are the settings that can be anything but what they are without
// being given.
func settingNames() []string {
	var out []string
	for i := range config.SettingTable {
		row := &config.SettingTable[i]
		choice := row.Kind == config.Word || row.Kind == config.Flag
		if !choice || len(accepted(row)) > 1 {
			out = append(out, row.Block+"."+row.Key)
		}
	}
	return out
}

func settingLine(name string) []string {
	block, key, _ := strings.Cut(name, ".")
	row := config.SettingRowOf(block, key)
	if row == nil {
		return nil
	}
	values := valuesOf(row.Kind, row.Min, accepted(row))
	if row.Above {
		values = "a number above " + value.Number(row.Min).String()
	}
	if row.Max == row.Min+1 {
		values = code(value.Number(row.Min).String()) + " or " + code(value.Number(row.Max).String())
	}
	return []string{code(key), values, defaultOf(row.Def), escape(row.Doc)}
}

func argumentLine(name string) []string {
	of, arg, _ := strings.Cut(name, ".")
	for _, row := range config.TrainArgsOf(of) {
		if row.Name == arg {
			values := valuesOf(row.Kind, 0, nil)
			if row.Below > 0 {
				values += " and below " + value.Number(row.Below).String()
			}
			return []string{code(of + "(" + arg + ": …)"), values, defaultOf(row.Def), escape(row.Doc)}
		}
	}
	return nil
}

func valuesOf(kind config.SettingKind, least float64, words []string) string {
	for i, w := range words {
		words[i] = code(w)
	}
	switch kind {
	case config.Count:
		return "a whole number from " + value.Number(least).String()
	case config.Real:
		return "a number from " + value.Number(least).String()
	case config.Rate:
		return "a number, a schedule, or a list with one number per step"
	case config.Flag:
		return "`true`, `false`"
	case config.Names:
		return "`[name, name]`"
	case config.FileName:
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
		return code(value.Number(v).String())
	}
	return code(fmt.Sprint(def))
}

func policyLine(name string) []string {
	if !slices.Contains(accepted(config.SettingRowOf("pipeline", "remat")), name) {
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
	for _, n := range slices.Concat(config.Policies[name], config.Offloaded[name]) {
		kept = append(kept, code(n))
	}
	if config.Offloaded[name] != nil {
		kept[len(kept)-1] += ", in host memory"
	}
	return []string{code(name), strings.Join(kept, ", ")}
}
