#include "textflag.h"

// func call(text uintptr, arrays *unsafe.Pointer, row, rows, element int, scratch *byte)
//
// What is called is a leaf and keeps SP and BP.
TEXT ·call(SB), NOSPLIT, $8-48
	MOVQ text+0(FP), AX
	MOVQ arrays+8(FP), DI
	MOVQ row+16(FP), DX
	MOVQ rows+24(FP), R9
	MOVQ element+32(FP), CX
	MOVQ scratch+40(FP), R10
	CALL AX
	VZEROUPPER
	RET
