/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a function returns that does nothing but return a constant text, read from its file: the
 * function isn't run.
 */
#ifndef TORSH_WRITER_OUTPUT_ELF_TEXT_H
#define TORSH_WRITER_OUTPUT_ELF_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define ELF_TEXT_MAX 65536u /* bytes, with its end */

/*
 * The text that the function of this name returns, for the caller to free. build_id (n_build_id 0:
 * not known) must be the file's own. Returns 0, -ENOENT where the file has no such function,
 * -ENOTSUP where the function does more or its text may change, -ESTALE when the file is another
 * one by now, -ENOEXEC when it can't be read as ELF, or another -errno.
 */
int torsh_elf_returned_text(const char *path, const uint8_t *build_id, size_t n_build_id,
			    const char *function, char **text);

#endif
