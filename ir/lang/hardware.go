package lang

import (
	"slices"

	"ppc/internal/diag"
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

// memory is how many bytes a device has by the hardware block: as memory says, or
// the preset. The setting that says so comes with it; nil where none does.
func (p *program) memory() (float64, *syntax.Setting) {
	if s := p.values["hardware"]["memory"]; s != nil {
		v, _ := numberOf(s.Value)
		return v, s
	}
	for _, c := range presets {
		if c.name == p.word("hardware", "preset") {
			return c.memory, p.values["hardware"]["preset"]
		}
	}
	return 0, nil
}

// DeviceMemory is the name of the warning of programs that take more memory than
// a device has, which is known when they have been lowered.
const DeviceMemory = "device-memory"

// LimitsMemory reports whether the hardware block says how much memory a device
// has.
func (p *Program) LimitsMemory() bool {
	_, s := p.source.memory()
	return s != nil
}

// WarnMemory is a warning at the setting that says how much memory a device has,
// nil where peak is not more or nothing says so. size prints bytes.
func (p *Program) WarnMemory(peak int, size func(int) string) *diag.Diagnostic {
	have, s := p.source.memory()
	if s == nil || float64(peak) <= have {
		return nil
	}
	d := syntax.Diagnostic(s.Span, "smaller sizes, more devices or remat = full fit; ppc lower --stats says what takes it", warnMemory, size(peak), size(int(have)))
	d.Warning = DeviceMemory
	return d
}

// WarnSetting is a warning, of what a pass has found, at the setting of the
// pipeline block that asks for it, or at kept, a checkpoint name there; nil where
// none does.
func (p *Program) WarnSetting(key, kept, msg string) *diag.Diagnostic {
	at := p.source.settingAt(key, kept)
	if at.Src == nil {
		return nil
	}
	d := syntax.Diagnostic(at, "leave it out", syntax.Message("%s"), msg)
	d.Warning = unusedSetting
	return d
}

// settingAt is where a setting of the pipeline block stands, or, if kept is not
// "", where a setting gives that checkpoint name.
func (p *program) settingAt(key, kept string) syntax.Span {
	if kept == "" {
		return p.place(key, syntax.Span{})
	}
	for _, e := range p.custom() {
		if e.Key == kept {
			return e.Span
		}
	}
	s := p.values["pipeline"][key]
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
