/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A library that is followed by libtwin_large at the same addresses: its call is at the same place,
 * its frame is not.
 */
#if defined(__x86_64__)
__asm__(".globl twin\n"
	".type twin, @function\n"
	"twin:\n"
	"	.cfi_startproc\n"
	"	sub $264, %rsp\n"
	"	.cfi_def_cfa_offset 272\n"
	"	call *%rdi\n"
	"	add $264, %rsp\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size twin, . - twin\n");
#elif defined(__aarch64__)
__asm__(".globl twin\n"
	".type twin, %function\n"
	"twin:\n"
	"	.cfi_startproc\n"
	"	sub sp, sp, #272\n"
	"	.cfi_def_cfa_offset 272\n"
	"	str x30, [sp]\n"
	"	.cfi_offset 30, -272\n"
	"	blr x0\n"
	"	ldr x30, [sp]\n"
	"	add sp, sp, #272\n"
	"	.cfi_restore 30\n"
	"	.cfi_def_cfa_offset 0\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size twin, . - twin\n");
#endif

int call_small(void (*function)(void))
{
	function();
	return 264;
}
