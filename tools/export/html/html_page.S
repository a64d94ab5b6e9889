/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The pages of tools/export/html/page/ as assemble has put them together: before the data, and after. */
	.macro page name, file
	.global torsh_html_\name, torsh_html_\name\()_bytes
torsh_html_\name:
	.incbin "\file"
\name\()_end:
	.balign 8
torsh_html_\name\()_bytes:
	.quad \name\()_end - torsh_html_\name
	.endm

	.section .rodata
	page page_head, "head"
	page page_tail, "tail"
	page diff_head, "diff/head"
	page diff_tail, "diff/tail"
	page job_head, "job/head"
	page job_tail, "job/tail"
	.section .note.GNU-stack, "", %progbits
