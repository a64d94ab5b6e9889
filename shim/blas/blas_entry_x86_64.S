/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The slots of shim/blas/blas.h on x86-64. A call of a slot becomes a call of its next definition
 * with the same registers and a copy of the arguments on the stack, between two calls of
 * collectors/blas; or a jump to it. Copied is as much as the routine may have: a caller that passed
 * less, as without the lengths of characters, has something else there, which the routine ignores
 * as it does without the agent.
 *
 * Offsets into struct blas_frame of shim/hooks.h, which is at the lowest address of the frame, with
 * the vector registers after it; blas_dispatch.c checks them.
 */
#define SLOTS 2040
#define FRAME_BYTES 288
#define REGISTER(i) (-FRAME_BYTES + 8 * (i))(%rbp)
#define STACK (-FRAME_BYTES + 48)(%rbp)
#define NEXT (-FRAME_BYTES + 56)(%rbp)
#define N_STACK (-FRAME_BYTES + 64)(%rbp)
#define RESULT(i) (-FRAME_BYTES + 72 + 8 * (i))(%rbp)
#define VECTOR(i) (-FRAME_BYTES + 160 + 16 * (i))(%rbp)

	.text
	.p2align 4
	.globl torsh_blas_entries
	.hidden torsh_blas_entries
	.type torsh_blas_entries, @function
torsh_blas_entries:
	.cfi_startproc
	/* Groups of 15 slots with a jump that all of them can reach in 2 bytes. */
	.set slot, 0
	.rept SLOTS / 15
	.p2align 7
	.rept 15
	movl $slot, %r11d
	jmp 1f
	.set slot, slot + 1
	.endr
1:	jmp enter
	.endr
	.p2align 7
	.cfi_endproc
	.size torsh_blas_entries, . - torsh_blas_entries

	.macro restore_arguments
	movq REGISTER(0), %rdi
	movq REGISTER(1), %rsi
	movq REGISTER(2), %rdx
	movq REGISTER(3), %rcx
	movq REGISTER(4), %r8
	movq REGISTER(5), %r9
	movaps VECTOR(0), %xmm0
	movaps VECTOR(1), %xmm1
	movaps VECTOR(2), %xmm2
	movaps VECTOR(3), %xmm3
	movaps VECTOR(4), %xmm4
	movaps VECTOR(5), %xmm5
	movaps VECTOR(6), %xmm6
	movaps VECTOR(7), %xmm7
	movq RESULT(2), %r10
	movq RESULT(0), %rax
	.endm

	.p2align 4
	.type enter, @function
enter:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	subq $FRAME_BYTES, %rsp
	movq %rdi, REGISTER(0)
	movq %rsi, REGISTER(1)
	movq %rdx, REGISTER(2)
	movq %rcx, REGISTER(3)
	movq %r8, REGISTER(4)
	movq %r9, REGISTER(5)
	movaps %xmm0, VECTOR(0)
	movaps %xmm1, VECTOR(1)
	movaps %xmm2, VECTOR(2)
	movaps %xmm3, VECTOR(3)
	movaps %xmm4, VECTOR(4)
	movaps %xmm5, VECTOR(5)
	movaps %xmm6, VECTOR(6)
	movaps %xmm7, VECTOR(7)
	movq %rax, RESULT(0)
	movq %r10, RESULT(2)
	leaq 16(%rbp), %rax
	movq %rax, STACK
	movq %rsp, %rdi
	movl %r11d, %esi
	call torsh_blas_slot_begins
	testb %al, %al
	jz pass
	movq N_STACK, %r11
	testq %r11, %r11
	jz 2f
1:	pushq 8(%rbp,%r11,8)
	decq %r11
	jnz 1b
2:	restore_arguments
	call *NEXT
	movq %rax, RESULT(0)
	movq %rdx, RESULT(1)
	movaps %xmm0, VECTOR(0)
	movaps %xmm1, VECTOR(1)
	leaq -FRAME_BYTES(%rbp), %rdi
	movq %rbp, %rsi
	call torsh_blas_slot_ends
	movq RESULT(0), %rax
	movq RESULT(1), %rdx
	movaps VECTOR(0), %xmm0
	movaps VECTOR(1), %xmm1
	leave
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_restore_state
pass:
	restore_arguments
	movq NEXT, %r11
	leave
	.cfi_def_cfa %rsp, 8
	jmp *%r11
	.cfi_endproc
	.size enter, . - enter
	.section .note.GNU-stack, "", @progbits
