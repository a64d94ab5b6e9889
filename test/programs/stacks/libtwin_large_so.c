/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Like libtwin_small, with another frame at the same place. */
#if defined(__x86_64__)
__asm__(".globl twin\n"
	".type twin, @function\n"
	"twin:\n"
	"	.cfi_startproc\n"
	"	sub $520, %rsp\n"
	"	.cfi_def_cfa_offset 528\n"
	"	call *%rdi\n"
	"	add $520, %rsp\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size twin, . - twin\n");
#elif defined(__aarch64__)
__asm__(".globl twin\n"
	".type twin, %function\n"
	"twin:\n"
	"	.cfi_startproc\n"
	"	sub sp, sp, #528\n"
	"	.cfi_def_cfa_offset 528\n"
	"	str x30, [sp]\n"
	"	.cfi_offset 30, -528\n"
	"	blr x0\n"
	"	ldr x30, [sp]\n"
	"	add sp, sp, #528\n"
	"	.cfi_restore 30\n"
	"	.cfi_def_cfa_offset 0\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size twin, . - twin\n");
#endif

/* Elsewhere than call_small's call. */
int call_large(void (*function)(void))
{
	volatile char room[600];

	room[599] = 1;
	function();
	return room[599];
}
