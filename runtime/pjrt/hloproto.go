package pjrt

import (
	"encoding/binary"
	"errors"
)

// Opcodes counts the instructions of a HloModuleProtoWithConfig by opcode, those of
// fusions and loop bodies once each.
func Opcodes(proto []byte) (map[string]int, error) {
	counts := make(map[string]int)
	err := fields(proto, 1, func(module []byte) error { // hlo_module
		return fields(module, 3, func(computation []byte) error { // computations
			return fields(computation, 2, func(instruction []byte) error { // instructions
				return fields(instruction, 2, func(opcode []byte) error {
					counts[string(opcode)]++
					return nil
				})
			})
		})
	})
	return counts, err
}

var errProto = errors.New("the plugin's HLO is no protocol buffer")

// fields calls visit with every field f of a message that has a length.
func fields(b []byte, f uint64, visit func([]byte) error) error {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return errProto
		}
		b = b[n:]
		var size uint64
		switch tag & 7 {
		case 0:
			if _, n = binary.Uvarint(b); n <= 0 {
				return errProto
			}
			b = b[n:]
			continue
		case 1:
			size = 8
		case 5:
			size = 4
		case 2:
			if size, n = binary.Uvarint(b); n <= 0 {
				return errProto
			}
			b = b[n:]
		default:
			return errProto
		}
		if size > uint64(len(b)) {
			return errProto
		}
		if tag == f<<3|2 {
			if err := visit(b[:size]); err != nil {
				return err
			}
		}
		b = b[size:]
	}
	return nil
}
