/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The page of tools/export/html/page/ as assemble has put it together: before the data, and after. */
	.section .rodata
	.global torsh_html_page_head, torsh_html_page_head_bytes
	.global torsh_html_page_tail, torsh_html_page_tail_bytes
torsh_html_page_head:
	.incbin "head"
head_end:
torsh_html_page_tail:
	.incbin "tail"
tail_end:
	.balign 8
torsh_html_page_head_bytes:
	.quad head_end - torsh_html_page_head
torsh_html_page_tail_bytes:
	.quad tail_end - torsh_html_page_tail
	.section .note.GNU-stack, "", %progbits
