package maxtext

import (
	"fmt"
	"regexp"
	"strings"
)

// A parameter is one by both of its names: the path that train.params matches, and
// that which MaxText matches patterns against. Where its layer is made of parts, alike
// is the pattern that it has in common with the same parameter of the others.
type parameter struct{ path, alike, maxtext string }

// parameters are those of the model, of its layers, and of the layers of its heads
// for later tokens.
func (p *plan) parameters() []parameter {
	var out []parameter
	for _, w := range p.weights {
		out = append(out, parameter{w.name, w.name, w.maxtext})
	}
	for i := range p.stacks {
		s := &p.stacks[i]
		path := s.path
		if p.mesh.stages > 1 && s == p.last() {
			path = strings.Replace(path, "decoder/", "decoder/pipeline_module/", 1)
		}
		if !s.grouped() {
			out = append(out, s.parameters(s.group(), "", path, "")...)
			continue
		}
		for _, t := range s.parts {
			out = append(out, s.parameters(s.group(), t.name+".", path, strings.TrimPrefix(t.name, "layers_"))...)
		}
	}
	for k := 1; k <= p.c.whole("mtp_num_layers"); k++ {
		out = append(out, p.last().parameters(fmt.Sprintf("mtp_%d", k), "", fmt.Sprintf("mtp_block/mtp_layer_%d/mtp_%[1]d_transformer_layer/", k), "")...)
	}
	for i := range out {
		out[i].maxtext = "params/" + out[i].maxtext
	}
	return out
}

// parameters are those of one layer, or of its part, by their names here and in MaxText.
func (s *stack) parameters(name, part, path, at string) []parameter {
	out := make([]parameter, len(s.weights))
	for i, w := range s.weights {
		out[i] = parameter{name + "." + part + w.name, name + "." + w.name, s.pathIn(path, at, w.maxtext)}
		if part != "" {
			out[i].alike = name + ".*." + w.name
		}
	}
	return out
}

// pathIn is the path in MaxText of a parameter of the part at of the stack's layer.
func (s *stack) pathIn(path, at, leaf string) string {
	switch head, tail, _ := strings.Cut(leaf, "/"); {
	case !s.grouped():
		return path + leaf
	case s.suffixed:
		return path + head + "_" + at + "/" + tail
	}
	return path + "layers_" + at + "/" + leaf
}

// masks are the lines of train.params: what the keys that name parameters by
// regular expressions say of each.
func (p *plan) masks() []string {
	c := p.c
	all := p.parameters()
	trained, some := p.matching("trainable_parameters_mask", all)
	kept, _ := p.matching("adamw_mask", all)
	if some && len(trained) == 0 {
		c.fail("trainable_parameters_mask", "", "%s: no parameter's path matches, so that none would be trained", c.is("trainable_parameters_mask"))
		return nil
	}
	decays := c.text("opt_type") != "sgd" && c.number("adam_weight_decay") != 0
	said := map[string]string{} // of a path
	differ := map[string]bool{} // patterns of parts of which not the same is said
	for _, q := range all {
		switch {
		case some && !trained[q.path]:
			said[q.path] = "frozen"
		case decays && kept[q.path]:
			said[q.path] = "update(weight_decay: 0)"
		}
		if first, ok := said[q.alike]; ok && first != said[q.path] {
			differ[q.alike] = true
		}
		said[q.alike] = said[q.path]
	}
	var out []string
	for _, q := range all {
		pattern := q.alike
		if differ[pattern] {
			pattern = q.path
		}
		if said[pattern] != "" {
			out = append(out, fmt.Sprintf("%q = %s", pattern, said[pattern]))
			delete(said, pattern)
		}
	}
	return out
}

// matching are the paths of the parameters in whose path in MaxText one of the key's
// expressions has a match, and whether the key has any.
func (p *plan) matching(key string, all []parameter) (paths map[string]bool, some bool) {
	c := p.c
	paths = map[string]bool{}
	for _, text := range c.texts(key) {
		some = true
		re, err := regexp.Compile(text)
		if err != nil {
			c.fail(key, "", "%s: %q is not a regular expression that can be matched here: %s", c.is(key), text, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			continue
		}
		found := false
		for _, q := range all {
			if re.MatchString(q.maxtext) {
				paths[q.path], found = true, true
			}
		}
		if !found {
			c.warn("maxtext-mask", key, "no parameter's path matches %q; the paths are such as %s", text, all[0].maxtext)
		}
	}
	return paths, some
}
