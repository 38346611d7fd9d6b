package config

import (
	"slices"

	"ppc/ir/lang/syntax"
)

// presets are chips by name, with the bytes of memory that each has.
var presets = []struct {
	name   string
	memory float64
}{
	{"v4", 32 << 30}, {"v5e", 16 << 30}, {"v5p", 95 << 30}, {"v6e", 32 << 30}, {"a100", 80e9}, {"h100", 80e9}, {"h200", 141e9},
}

func presetNames() []string {
	var names []string
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}

// Memory is how many bytes a device has by the hardware block: as memory says, or
// the preset. The setting that says so comes with it; nil where none does.
func (p *Program) Memory() (float64, *syntax.Setting) {
	if s := p.Values["hardware"]["memory"]; s != nil {
		v, _ := NumberOf(s.Value)
		return v, s
	}
	for _, c := range presets {
		if c.name == p.Word("hardware", "preset") {
			return c.memory, p.Values["hardware"]["preset"]
		}
	}
	return 0, nil
}

// DeviceMemory is the name of the warning of programs that take more memory than
// a device has, which is known when they have been lowered.
const DeviceMemory = "device-memory"

// SettingAt is the place of a setting of the pipeline block, or, if kept is not
// "", where a setting gives that checkpoint name.
func (p *Program) SettingAt(key, kept string) syntax.Span {
	if kept == "" {
		return p.Place(key, syntax.Span{})
	}
	for _, e := range p.custom() {
		if e.Key == kept {
			return e.Span
		}
	}
	s := p.Values["pipeline"][key]
	if s == nil {
		return syntax.Span{}
	}
	if list, ok := s.Value.(*syntax.ListLit); ok {
		for _, it := range list.Items {
			if ns, _ := namesIn(it.Value); slices.Contains(ns, kept) {
				return it.Span
			}
		}
	}
	return s.Span
}
