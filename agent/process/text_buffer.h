/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Text built in a buffer of fixed size without stdio, which may allocate or lock. Text that doesn't
 * fit is cut, and is_cut is set. Always NUL-terminated.
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
 * Map a text in pages of its own, for use in hooks on small signal stacks; torsh_text_unmap unmaps
 * it. Without memory the text has capacity 0.
 */
#define TEXT_NOTE_BYTES 768u /* of a sentence for the reports */
struct text torsh_text_map(size_t capacity);
void torsh_text_unmap(const struct text *text);

void torsh_text_put(struct text *text, const char *string);
void torsh_text_put_bytes(struct text *text, const char *bytes, size_t n);
void torsh_text_put_number(struct text *text, uint64_t number);

/* A static description of errno or -errno. */
const char *torsh_text_reason(int error);

/*
 * "torsh: MESSAGE\n" in one write to stderr; strings up to the first NULL are joined. errno is
 * kept.
 */
void torsh_message(const char *first, ...) __attribute__((sentinel));

/* Write complete lines to stderr, in one write. */
void torsh_message_write(const char *bytes, size_t n);

/*
 * Silence both functions above once descriptor 2 is no longer the file that it is now: a program
 * that closed stderr may use the number for a file of its own.
 */
void torsh_message_keep_to_stderr(void);

#endif
