package runtime

import "ppc/ir"

// HasRow reports whether ops of kind k run.
func HasRow(k ir.Kind) bool { return k == ir.Constant || rows[k] != nil }

// Sabotage makes step i of the main function panic.
func (exe *Executable) Sabotage(i int) {
	exe.main.body.steps[i].exec = func(*device, *step) error { panic("sabotage") }
}
