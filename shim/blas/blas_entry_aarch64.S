/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The slots of shim/blas/blas.h on aarch64: as blas_entry_x86_64.S, which has the comment. */
#define SLOTS 2040
#define FRAME_BYTES 304
#define STACK 64
#define NEXT 72
#define N_STACK 80
#define RESULT 88
#define VECTOR 176

	.text
	.p2align 4
	.globl torsh_blas_entries
	.hidden torsh_blas_entries
	.type torsh_blas_entries, %function
torsh_blas_entries:
	.cfi_startproc
	/* In groups of 15 as on x86-64. */
	.set slot, 0
	.rept SLOTS / 15
	.p2align 7
	.rept 15
	mov w17, #slot
	b enter
	.set slot, slot + 1
	.endr
	.endr
	.p2align 7
	.cfi_endproc
	.size torsh_blas_entries, . - torsh_blas_entries

	/* x16: the frame */
	.macro restore_arguments
	ldp x0, x1, [x16]
	ldp x2, x3, [x16, #16]
	ldp x4, x5, [x16, #32]
	ldp x6, x7, [x16, #48]
	ldr x8, [x16, #RESULT + 16]
	ldp q0, q1, [x16, #VECTOR]
	ldp q2, q3, [x16, #VECTOR + 32]
	ldp q4, q5, [x16, #VECTOR + 64]
	ldp q6, q7, [x16, #VECTOR + 96]
	.endm

	.p2align 4
	.type enter, %function
enter:
	.cfi_startproc
	stp x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset 29, -16
	.cfi_offset 30, -8
	mov x29, sp
	.cfi_def_cfa_register 29
	sub sp, sp, #FRAME_BYTES
	stp x0, x1, [sp]
	stp x2, x3, [sp, #16]
	stp x4, x5, [sp, #32]
	stp x6, x7, [sp, #48]
	str x8, [sp, #RESULT + 16]
	stp q0, q1, [sp, #VECTOR]
	stp q2, q3, [sp, #VECTOR + 32]
	stp q4, q5, [sp, #VECTOR + 64]
	stp q6, q7, [sp, #VECTOR + 96]
	add x0, x29, #16
	str x0, [sp, #STACK]
	mov x0, sp
	mov w1, w17
	bl torsh_blas_slot_begins
	sub x16, x29, #FRAME_BYTES
	tbz w0, #0, pass
	ldr x9, [x16, #N_STACK]
	add x10, x29, #16
	add x10, x10, x9, lsl #3
	cbz x9, 2f
1:	ldp x11, x12, [x10, #-16]!
	stp x11, x12, [sp, #-16]!
	subs x9, x9, #2
	b.ne 1b
2:	restore_arguments
	ldr x17, [x16, #NEXT]
	blr x17
	sub x16, x29, #FRAME_BYTES
	stp x0, x1, [x16, #RESULT]
	stp q0, q1, [x16, #VECTOR]
	mov x0, x16
	mov x1, x29
	bl torsh_blas_slot_ends
	sub x16, x29, #FRAME_BYTES
	ldp x0, x1, [x16, #RESULT]
	ldp q0, q1, [x16, #VECTOR]
	mov sp, x29
	.cfi_remember_state
	.cfi_def_cfa_register 31
	ldp x29, x30, [sp], #16
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	ret
	.cfi_restore_state
pass:
	restore_arguments
	ldr x17, [x16, #NEXT]
	mov sp, x29
	.cfi_def_cfa_register 31
	ldp x29, x30, [sp], #16
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	br x17
	.cfi_endproc
	.size enter, . - enter
	.section .note.GNU-stack, "", %progbits
