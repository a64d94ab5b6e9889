/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The page of tools/export/html/page/ as assemble has put it together: before the data, and after. */
	.section .rodata
	.global torsh_html_page_head, torsh_html_page_head_end
	.global torsh_html_page_tail, torsh_html_page_tail_end
torsh_html_page_head:
	.incbin "head"
torsh_html_page_head_end:
torsh_html_page_tail:
	.incbin "tail"
torsh_html_page_tail_end:
	.section .note.GNU-stack, "", %progbits
