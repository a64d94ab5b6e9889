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
	size_t length, capacity; /* capacity includes the NUL */
	bool is_cut;
};

#define TEXT_IN(buffer)                                       \
	{                                                     \
		.bytes = (buffer), .capacity = sizeof(buffer) \
	}

#define TEXT_NOTE_BYTES 768u /* for a sentence in a report */

/*
 * Map a text of capacity bytes in its own pages, for hooks on small signal stacks. Without memory
 * the text has capacity 0.
 */
struct text torsh_text_map(size_t capacity);

/* Unmap a text that torsh_text_map mapped; capacity 0 is ignored. */
void torsh_text_unmap(const struct text *text);

/* Append a NUL-terminated string; what does not fit is cut. Async-signal-safe, as all of these. */
void torsh_text_put(struct text *text, const char *string);

/* Append n bytes. */
void torsh_text_put_bytes(struct text *text, const char *bytes, size_t n);

/* Append a number in decimal. */
void torsh_text_put_number(struct text *text, uint64_t number);

/* A static description of errno or -errno. Async-signal-safe. */
const char *torsh_text_reason(int error);

/*
 * Write "torsh: MESSAGE\n" to stderr in one write; joins the strings up to the first NULL. Keeps
 * errno.
 */
void torsh_message(const char *first, ...) __attribute__((sentinel));

/* Write complete lines to stderr, in one write. */
void torsh_message_write(const char *bytes, size_t n);

/*
 * Silence both functions above once descriptor 2 is no longer the file that it is now: a program
 * that closed stderr may reuse the number for its own file.
 */
void torsh_message_keep_to_stderr(void);

#endif
