package facts

import (
	"strconv"

	"ppc/ir"
)

// A Key is a text that is built to be compared. The zero value is empty.
type Key struct{ text []byte }

// Bytes is the text, until the next change.
func (k *Key) Bytes() []byte { return k.text }

// String is the text.
func (k *Key) String() string { return string(k.text) }

// Reset makes k empty.
func (k *Key) Reset() { k.text = k.text[:0] }

// WriteString appends s.
func (k *Key) WriteString(s string) { k.text = append(k.text, s...) }

// WriteInt appends n.
func (k *Key) WriteInt(n int) { k.text = strconv.AppendInt(k.text, int64(n), 10) }

// WriteType appends t.
func (k *Key) WriteType(t *ir.Type) {
	if !t.IsTensor() || t.Quant != nil {
		k.WriteString(t.String())
		return
	}
	for _, d := range t.Shape {
		k.WriteInt(d)
		k.WriteString("x")
	}
	k.WriteString(t.Elem.String())
	if t.Text != "" {
		k.WriteString(", ")
		k.WriteString(t.Text)
	}
}

// WriteKey writes a text of op that is equal for two ops only if they compute the
// same: its kind, operands as ref spells them, attributes and regions.
func WriteKey(k *Key, op *ir.Op, ref func(k *Key, v *ir.Value)) {
	k.WriteString(op.Name())
	for _, v := range op.Operands {
		k.WriteString(" ")
		ref(k, v)
	}
	for _, a := range op.Attrs {
		if a.Name != "channel_handle" {
			WriteAttr(k, a)
		}
	}
	for _, v := range op.Results {
		k.WriteString(":")
		k.WriteType(v.Type)
		if v.Sharding != nil {
			k.WriteString(v.Sharding.String())
		}
	}
	for _, r := range op.Regions {
		WriteRegion(k, r, ref)
	}
}

// WriteAttr writes one attribute of a key.
func WriteAttr(k *Key, a ir.NamedAttr) {
	k.WriteString(";")
	k.WriteString(a.Name)
	k.WriteString("=")
	switch v := a.Attr.(type) {
	case *ir.Literal:
		k.WriteType(v.Type)
		k.text = append(k.text, v.Data...)
	default:
		k.WriteString(a.Attr.String())
	}
}

// WriteRegion writes a region of a key, its own values by their position in it.
func WriteRegion(k *Key, r *ir.Block, ref func(k *Key, v *ir.Value)) {
	local := make(map[*ir.Value]int)
	name := func(vs []*ir.Value) {
		for _, v := range vs {
			local[v] = len(local)
		}
	}
	name(r.Args)
	for _, inner := range r.Ops {
		k.WriteString("{")
		WriteKey(k, inner, func(k *Key, v *ir.Value) {
			if n, ok := local[v]; ok {
				k.WriteString("r")
				k.WriteInt(n)
				return
			}
			ref(k, v)
		})
		k.WriteString("}")
		name(inner.Results)
	}
}
