package maxtext

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	_ "embed"

	"ppc/internal/diag"
	"ppc/internal/spell"
)

//go:embed models.yml
var modelsYML string

//go:embed rules.yml
var rulesYML string

// A config is a configuration with everything it inherits.
type config struct {
	opts   Options
	values map[string]entry // that were given, after all overrides
	args   map[string]bool  // keys of the command line
	rules  []axisRule       // logical_axis_rules, merged
	list   diag.List
	warns  diag.List
	ranks  int
}

// fail reports an error at a key: where it was given, or nowhere.
func (c *config) fail(key, hint, format string, args ...any) {
	c.list = append(c.list, c.at(key).at(fmt.Sprintf(format, args...), hint))
}

// warn reports what MaxText computes otherwise.
func (c *config) warn(name, key, format string, args ...any) {
	d := c.at(key).at(fmt.Sprintf(format, args...), "")
	d.Warning = name
	c.warns = append(c.warns, d)
}

func (c *config) at(key string) place {
	if e, ok := c.values[key]; ok {
		p := e.key0
		return p
	}
	return place{file: c.name()}
}

// name is the configuration as a whole.
func (c *config) name() string {
	if len(c.opts.Files) > 0 {
		return c.opts.Files[len(c.opts.Files)-1]
	}
	return "maxtext"
}

func (c *config) get(key string) any {
	row := keyOf(key)
	if row == nil {
		panic("maxtext: there is no key " + key)
	}
	if e, ok := c.values[key]; ok && e.value != nil {
		return e.value
	}
	return row.Default
}

func (c *config) whole(key string) int {
	n, _ := c.get(key).(int)
	return n
}

func (c *config) number(key string) float64 {
	switch n := c.get(key).(type) {
	case float64:
		return n
	case int:
		return float64(n)
	}
	return 0
}

func (c *config) flag(key string) bool {
	b, _ := c.get(key).(bool)
	return b
}

func (c *config) text(key string) string {
	s, _ := c.get(key).(string)
	return s
}

func (c *config) texts(key string) []string {
	l, _ := c.get(key).([]any)
	out := make([]string, len(l))
	for i, v := range l {
		out[i] = show(v)
	}
	return out
}

// is is key=value for a message.
func (c *config) is(key string) string { return key + "=" + show(c.get(key)) }

// load reads files, model and command line, in the order in which one overrides
// the other.
func (c *config) load() {
	for _, f := range c.opts.Files {
		c.file(f, nil)
	}
	args := c.arguments()
	name := ""
	for _, e := range args {
		if e.key == "model_name" {
			name = show(e.value)
		}
	}
	if e, ok := c.values["model_name"]; ok && name == "" {
		name = show(e.value)
	}
	if name != "" && name != "default" && name != "None" {
		c.model(strings.ReplaceAll(name, "-Instruct", ""), args)
	}
	c.apply(args, false)
	for _, e := range args {
		c.args[e.key] = true
	}
	c.customMesh()
	if c.rules == nil {
		c.rules = baseRules()
	}
}

// file reads one file, after those that it starts from.
func (c *config) file(name string, from []string) {
	if slices.Contains(from, name) {
		c.list = append(c.list, &diag.Diagnostic{File: name, Msg: "base_config: the file starts from itself: " + strings.Join(append(from, name), " -> ")})
		return
	}
	text, err := c.opts.ReadFile(name)
	if err != nil {
		c.list = append(c.list, &diag.Diagnostic{File: name, Msg: "cannot be read: " + reason(err)})
		return
	}
	entries := c.read(name, string(text))
	for _, e := range entries {
		if e.key == "base_config" && show(e.value) != "None" && show(e.value) != "" {
			base := filepath.FromSlash(show(e.value))
			if !filepath.IsAbs(base) {
				base = filepath.Join(filepath.Dir(name), base)
			}
			c.file(base, append(from, name))
		}
	}
	c.apply(entries, true)
}

func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func (c *config) read(name, text string) []entry {
	c.ranks++
	d := &document{file: name, rank: c.ranks, text: text}
	entries := d.read()
	c.list = append(c.list, d.list...)
	return entries
}

// arguments reads key=value.
func (c *config) arguments() []entry {
	var out []entry
	seen := make(map[string]bool)
	for i, a := range c.opts.Set {
		key, value, ok := strings.Cut(a, "=")
		at := place{"argument", c.ranks + 1, i + 1, 1, a}
		if !ok || key == "" {
			c.list = append(c.list, at.at(fmt.Sprintf("%s: want key=value, or a file that ends in .yml", a), ""))
			continue
		}
		if seen[key] {
			c.list = append(c.list, at.at(fmt.Sprintf("key %s is given twice", key), "keep one"))
			continue
		}
		seen[key] = true
		d := &document{file: "argument", rank: c.ranks + 1, text: value, line0: i}
		e := entry{key: key, key0: at, place: at}
		if n := d.parse(value); n != nil {
			e.value, _ = d.value(n, 0)
		} else if len(d.list) > 0 { // plain text with YAML's characters in it
			d.list, e.value = nil, value
		}
		c.list = append(c.list, d.list...)
		out = append(out, e)
	}
	return out
}

// model reads what the model of that name says: of a file beside the base, in its
// folder models or the one above, or of those that are known.
func (c *config) model(name string, args []entry) {
	entries, found := c.modelEntries(name)
	if !found {
		hint := ""
		if near := spell.Nearest(name, modelNames()); near != "" {
			hint = "did you mean " + near + "?"
		}
		key := place{file: c.name()}
		if e, ok := c.values["model_name"]; ok {
			key = e.place
		}
		for _, e := range args {
			if e.key == "model_name" {
				key = e.place
			}
		}
		c.list = append(c.list, key.at(fmt.Sprintf("model_name=%s: there is no such model here", name), hint))
		return
	}
	override := false
	for _, e := range args {
		if e.key == "override_model_config" {
			override = show(e.value) == "true"
		}
	}
	if e, ok := c.values["override_model_config"]; ok && !override {
		override = e.value == true
	}
	for _, e := range entries {
		for _, a := range args {
			if a.key != e.key || e.key == "logical_axis_rules" || override {
				continue
			}
			row := keyOf(e.key)
			if row == nil {
				continue
			}
			mine, _ := row.convert(a.value)
			its, _ := row.convert(e.value)
			if !reflect.DeepEqual(mine, its) {
				c.list = append(c.list, a.place.at(fmt.Sprintf("%s=%s: model %s has %s", a.key, show(mine), name, show(its)), "override_model_config=true lets it be overridden"))
			}
		}
	}
	c.apply(entries, false)
}

func (c *config) modelEntries(name string) ([]entry, bool) {
	if len(c.opts.Files) > 0 {
		dir := filepath.Dir(c.opts.Files[0])
		for _, d := range []string{dir, filepath.Dir(dir)} {
			path := filepath.Join(d, "models", name+".yml")
			if text, err := c.opts.ReadFile(path); err == nil {
				return c.read(path, string(text)), true
			}
		}
	}
	return builtIn(modelsYML, name)
}

// builtIn are the entries under a name in one of the files that are compiled in.
func builtIn(text, name string) ([]entry, bool) {
	d := &document{file: name + ".yml", text: text}
	for n, kids := 0, d.parse(text).Content; n < len(kids); n += 2 {
		if kids[n].Value == name {
			entries := d.entries(kids[n+1])
			for i := range entries { // no place: the user has no such file
				entries[i].key0, entries[i].place = place{file: d.file}, place{file: d.file}
			}
			return entries, true
		}
	}
	return nil, false
}

func modelNames() []string {
	var out []string
	d := &document{text: modelsYML}
	for i, n := range d.parse(modelsYML).Content {
		if i%2 == 0 {
			out = append(out, n.Value)
		}
	}
	return out
}

// apply puts entries over those before, each of its key's kind. Rules replace all
// others where they stand in a file, and those for the same axes otherwise.
func (c *config) apply(entries []entry, replace bool) {
	for _, e := range entries {
		replace = replace || e.key == "override_logical_axis_rules" && e.value == true
	}
	for _, e := range entries {
		row := keyOf(e.key)
		if row == nil {
			hint := ""
			if near := spell.Nearest(e.key, keyNames()); near != "" {
				hint = "did you mean " + near + "?"
			}
			c.list = append(c.list, e.key0.at(fmt.Sprintf("unknown key %q", e.key), hint))
			continue
		}
		v, ok := row.convert(e.value)
		if !ok {
			c.list = append(c.list, e.place.at(fmt.Sprintf("%s: want %s, have %s", e.key, want[row.Kind], show(e.value)), ""))
			continue
		}
		e.value = v
		c.values[e.key] = e
		if e.key == "logical_axis_rules" {
			c.mergeRules(c.axisRules(e), replace)
		}
	}
}

// check refuses what has no counterpart.
func (c *config) check() {
	for _, k := range Keys() {
		e, given := c.values[k.Name]
		if !given || k.Answer != Refused || reflect.DeepEqual(e.value, k.Default) || k.Default == nil && off(e.value) {
			continue
		}
		hint := "leave it out"
		if !off(k.Default) {
			hint = k.Name + "=" + show(k.Default) + " is taken"
		}
		c.list = append(c.list, e.key0.at(fmt.Sprintf("%s=%s is not supported: %s", k.Name, show(e.value), k.Says), hint))
	}
}
