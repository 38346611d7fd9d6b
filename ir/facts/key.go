package facts

import (
	"strconv"
	"strings"

	"ppc/ir"
)

// WriteKey writes a text of op that is equal for two ops only if they compute the
// same: its kind, operands as ref spells them, attributes and regions.
func WriteKey(b *strings.Builder, op *ir.Op, ref func(*ir.Value) string) {
	b.WriteString(op.Name())
	for _, v := range op.Operands {
		b.WriteByte(' ')
		b.WriteString(ref(v))
	}
	for _, a := range op.Attrs {
		if a.Name != "channel_handle" {
			WriteAttr(b, a)
		}
	}
	for _, v := range op.Results {
		b.WriteByte(':')
		b.WriteString(v.Type.String())
		if v.Sharding != nil {
			b.WriteString(v.Sharding.String())
		}
	}
	for _, r := range op.Regions {
		WriteRegion(b, r, ref)
	}
}

// WriteAttr writes one attribute of a key.
func WriteAttr(b *strings.Builder, a ir.NamedAttr) {
	b.WriteByte(';')
	b.WriteString(a.Name)
	b.WriteByte('=')
	if l, ok := a.Attr.(*ir.Literal); ok {
		b.WriteString(l.Type.String())
		b.Write(l.Data)
		return
	}
	b.WriteString(a.Attr.String())
}

// WriteRegion writes a region of a key, its own values by their position in it.
func WriteRegion(b *strings.Builder, r *ir.Block, ref func(*ir.Value) string) {
	local := make(map[*ir.Value]string)
	name := func(vs []*ir.Value) {
		for _, v := range vs {
			local[v] = "r" + strconv.Itoa(len(local))
		}
	}
	name(r.Args)
	for _, inner := range r.Ops {
		b.WriteByte('{')
		WriteKey(b, inner, func(v *ir.Value) string {
			if s, ok := local[v]; ok {
				return s
			}
			return ref(v)
		})
		b.WriteByte('}')
		name(inner.Results)
	}
}
