package maxtext

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"ppc/internal/diag"
)

const (
	maxFile  = 1 << 18 // bytes of a file
	maxNodes = 1 << 17 // values of a file, those that aliases repeat included
)

// A place is the line and column of a value.
type place struct {
	file      string
	rank      int // of the file among those that are read
	line, col int
	text      string // the line
}

// at is a diagnostic there.
func (p place) at(msg, hint string) *diag.Diagnostic {
	return &diag.Diagnostic{File: p.file, Rank: p.rank, Line: p.line, Col: p.col, Len: 1, Text: p.text, Msg: msg, Hint: hint}
}

// An entry is one key of a file or of the command line.
type entry struct {
	key   string
	value any // nil, bool, int, float64, string, []any or map[string]any
	key0  place
	place // of the value
}

// A document is what is read of one text.
type document struct {
	file  string
	rank  int
	text  string
	line0 int // is added to line numbers
	nodes int
	list  diag.List
}

func (d *document) place(n *yaml.Node) place {
	return place{d.file, d.rank, n.Line + d.line0, n.Column, diag.LineOf(d.text, n.Line)}
}

func (d *document) fail(n *yaml.Node, hint, format string, args ...any) {
	d.list = append(d.list, d.place(n).at(fmt.Sprintf(format, args...), hint))
}

// read reads a file of keys and values.
func (d *document) read() []entry {
	if len(d.text) > maxFile {
		d.list = append(d.list, &diag.Diagnostic{File: d.file, Rank: d.rank, Msg: fmt.Sprintf("the file has %d bytes, at most %d are read", len(d.text), maxFile)})
		return nil
	}
	root := d.parse(d.text)
	if root == nil {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		d.fail(root, "key: value", "the file is %s, want keys and values", nodeKind(root))
		return nil
	}
	return d.entries(root)
}

// parse returns the value that text is; nil where there is none or text is not
// YAML.
func (d *document) parse(text string) *yaml.Node {
	var doc, more yaml.Node
	in := yaml.NewDecoder(strings.NewReader(text))
	err := in.Decode(&doc)
	if err == nil {
		switch err = in.Decode(&more); {
		case err == io.EOF:
			err = nil
		case err == nil && len(more.Content) > 0:
			d.fail(&more, "keep one", "the text has a second document")
			return nil
		}
	} else if err == io.EOF {
		return nil
	}
	if err != nil {
		d.list = append(d.list, d.syntax(text, err))
		return nil
	}
	if len(doc.Content) == 0 {
		return nil
	}
	return doc.Content[0]
}

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntax is an error of the YAML parser, which knows the line at most, with the
// column of what is likely at fault: a tab, or the first thing on the line.
func (d *document) syntax(text string, err error) *diag.Diagnostic {
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		m = []string{"", "", err.Error()}
	}
	n, _ := strconv.Atoi(m[1])
	if strings.HasPrefix(m[2], "did not find expected") { // the parser counts lines from 0, the scanner from 1
		n++
	}
	n = max(n, 1)
	line := diag.LineOf(text, n)
	col := len(line) - len(strings.TrimLeft(line, " ")) + 1
	hint := ""
	if strings.HasPrefix(strings.TrimLeft(line, " "), "\t") {
		hint = "indent with blanks"
	}
	return (place{d.file, d.rank, n + d.line0, col, line}).at("this is not YAML: "+m[2], hint)
}

func nodeKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	return "a single value"
}

// entries are the keys of a mapping in their order, each once.
func (d *document) entries(m *yaml.Node) []entry {
	var out []entry
	seen := make(map[string]int)
	for i := 0; i+1 < len(m.Content); i += 2 {
		k, v := m.Content[i], m.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			d.fail(k, "", "a key is %s, want a name", nodeKind(k))
			continue
		}
		if line := seen[k.Value]; line != 0 {
			d.fail(k, "keep one", "key %s is there twice, first on line %d", k.Value, line)
			continue
		}
		seen[k.Value] = k.Line
		if value, ok := d.value(v, 0); ok {
			out = append(out, entry{k.Value, value, d.place(k), d.place(v)})
		}
	}
	return out
}

// maxDepth bounds how deep values nest, aliases resolved.
const maxDepth = 16

// value makes plain data of a node. What aliases repeat counts each time, so that
// a short file cannot stand for a large value.
func (d *document) value(n *yaml.Node, depth int) (any, bool) {
	if d.nodes++; d.nodes > maxNodes {
		if d.nodes == maxNodes+1 {
			d.fail(n, "", "aliases make more than %d values of the file", maxNodes)
		}
		return nil, false
	}
	if depth > maxDepth {
		d.fail(n, "", "values nest more than %d deep", maxDepth)
		return nil, false
	}
	switch n.Kind {
	case yaml.AliasNode:
		return d.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, ok := d.value(c, depth+1)
			if !ok {
				return nil, false
			}
			out = append(out, v)
		}
		return out, true
	case yaml.MappingNode:
		out := make(map[string]any)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if _, twice := out[k.Value]; twice || k.Kind != yaml.ScalarNode {
				if twice {
					d.fail(k, "keep one", "key %s is there twice", k.Value)
				} else {
					d.fail(k, "", "a key is %s, want a name", nodeKind(k))
				}
				return nil, false
			}
			v, ok := d.value(n.Content[i+1], depth+1)
			if !ok {
				return nil, false
			}
			out[k.Value] = v
		}
		return out, true
	}
	return d.scalar(n)
}

func (d *document) scalar(n *yaml.Node) (any, bool) {
	var v any
	if err := n.Decode(&v); err != nil {
		d.fail(n, "", "%s is not a value: %s", n.Value, strings.TrimPrefix(err.Error(), "yaml: "))
		return nil, false
	}
	switch v := v.(type) {
	case nil, bool, int, float64, string:
		if v == "None" {
			return nil, true
		}
		return v, true
	}
	return n.Value, true // a date, a large number: text to MaxText's keys
}
