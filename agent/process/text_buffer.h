/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Text put together in a buffer of fixed size, without the C library's formatted output: that may
 * allocate or lock. What doesn't fit is cut, and is_cut says so. The text is always NUL-terminated.
 */
#ifndef TORSH_AGENT_PROCESS_TEXT_BUFFER_H
#define TORSH_AGENT_PROCESS_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *bytes;
	size_t length, capacity; /* capacity counts the NUL */
	bool is_cut;
};

#define TEXT_IN(buffer)                                       \
	{                                                     \
		.bytes = (buffer), .capacity = sizeof(buffer) \
	}

/*
 * A text in pages of its own, for what is put together in a hook: the stack may be a signal
 * handler's small one. torsh_text_unmap gives them back. Where there is no memory the text has no
 * room.
 */
#define TEXT_NOTE_BYTES 768u /* of a sentence for the reports */
struct text torsh_text_map(size_t capacity);
void torsh_text_unmap(const struct text *text);

void torsh_text_put(struct text *text, const char *string);
void torsh_text_put_bytes(struct text *text, const char *bytes, size_t n);
void torsh_text_put_number(struct text *text, uint64_t number);

/* What errno, or -errno, means, in words that need no buffer. */
const char *torsh_text_reason(int error);

/*
 * "torsh: MESSAGE\n" in one write to stderr; strings up to the first NULL are joined. errno is
 * kept.
 */
void torsh_message(const char *first, ...) __attribute__((sentinel));

/* Whole lines as they are, in one write to stderr. */
void torsh_message_write(const char *bytes, size_t n);

/*
 * From here on both are silent when descriptor 2 is no longer the file that it is now: a program
 * that closed its stderr may have a file of its own there.
 */
void torsh_message_keep_to_stderr(void);

#endif
