/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The return value of a function that only returns a constant text, read from its file: the
 * function is not run.
 */
#ifndef TORSH_WRITER_OUTPUT_ELF_TEXT_H
#define TORSH_WRITER_OUTPUT_ELF_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define ELF_TEXT_MAX 65536u /* including the NUL */

/*
 * Get the text that the function returns; the caller frees it. build_id (n_build_id 0: unknown)
 * must match the file's. Returns 0, -ENOENT if the file has no such function, -ENOTSUP if the
 * function does more or its text may change, -ESTALE if the file has changed, -ENOEXEC if it is not
 * a readable ELF file, or another -errno.
 */
int torsh_elf_returned_text(const char *path, const uint8_t *build_id, size_t n_build_id,
			    const char *function, char **text);

#endif
