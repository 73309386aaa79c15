//go:build !noasm

#include "textflag.h"

// func castagnoliThree(crc uint32, p []byte, shifts *uint32) uint32
//
// While 96 bytes or more are left, three runs of R8 words each are hashed side
// by side: the instruction takes three cycles and starts every cycle. The
// registers of the first two are then moved over what follows them, by a
// carry-less product with shifts[2*R8] and shifts[R8], which CRC32Q reduces.
TEXT ·castagnoliThree(SB), NOSPLIT, $0-44
	MOVL crc+0(FP), AX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX
	MOVQ shifts+32(FP), DI

three:
	CMPQ CX, $96
	JLT  words
	MOVQ $168, R8
	CMPQ CX, $4032
	JGE  runs

	// len/24, exact below 4032.
	IMUL3Q $2731, CX, R8
	SHRQ   $16, R8

runs:
	LEAQ (SI)(R8*8), SI
	LEAQ (SI)(R8*8), R9
	LEAQ (R9)(R8*8), R10
	MOVQ R8, R11
	NEGQ R11
	XORL BX, BX
	XORL DX, DX

loop:
	CRC32Q (SI)(R11*8), AX
	CRC32Q (R9)(R11*8), BX
	CRC32Q (R10)(R11*8), DX
	INCQ   R11
	JNZ    loop

	MOVL      (DI)(R8*8), R12
	MOVL      (DI)(R8*4), R13
	MOVQ      AX, X0
	MOVQ      R12, X1
	PCLMULQDQ $0, X1, X0
	MOVQ      BX, X2
	MOVQ      R13, X3
	PCLMULQDQ $0, X3, X2
	PXOR      X2, X0
	MOVQ      X0, R12
	XORL      AX, AX
	CRC32Q    R12, AX
	XORL      DX, AX
	MOVQ      R10, SI
	LEAQ      (R8)(R8*2), R8
	SHLQ      $3, R8
	SUBQ      R8, CX
	JMP       three

words:
	CMPQ   CX, $8
	JLT    tail
	CRC32Q (SI), AX
	ADDQ   $8, SI
	SUBQ   $8, CX
	JMP    words

tail:
	BTQ    $2, CX
	JCC    two
	CRC32L (SI), AX
	ADDQ   $4, SI

two:
	BTQ    $1, CX
	JCC    one
	CRC32W (SI), AX
	ADDQ   $2, SI

one:
	BTQ    $0, CX
	JCC    done
	CRC32B (SI), AX

done:
	MOVL AX, ret+40(FP)
	RET
