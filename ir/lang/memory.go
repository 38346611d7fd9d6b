package lang

import (
	"ppc/internal/diag"
	"ppc/ir/lang/config"
	"ppc/ir/lang/syntax"
)

// LimitsMemory reports whether the hardware block says how much memory a device
// has.
func (p *Program) LimitsMemory() bool {
	_, s := p.source.Memory()
	return s != nil
}

// WarnMemory is a warning at the setting that says how much memory a device has,
// nil where peak is not more or nothing says so. size prints bytes.
func (p *Program) WarnMemory(peak int, size func(int) string) *diag.Diagnostic {
	have, s := p.source.Memory()
	if s == nil || float64(peak) <= have {
		return nil
	}
	d := syntax.Diagnostic(s.Span, "smaller sizes, more devices or remat = full fit; ppc lower --stats says what takes it", syntax.WarnMemory, size(peak), size(int(have)))
	d.Warning = config.DeviceMemory
	return d
}

// WarnSetting is a warning, of what a pass has found, at the setting of the
// pipeline block that asks for it, or at kept, a checkpoint name there; nil where
// none does.
func (p *Program) WarnSetting(key, kept, msg string) *diag.Diagnostic {
	at := p.source.SettingAt(key, kept)
	if at.Src == nil {
		return nil
	}
	d := syntax.Diagnostic(at, "leave it out", syntax.Message("%s"), msg)
	d.Warning = config.UnusedSetting
	return d
}
