/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The state of glibc's main arena, which points to free memory. */
#ifndef TORSH_WRITER_REACHABILITY_IMAGE_GLIBC_STATE_H
#define TORSH_WRITER_REACHABILITY_IMAGE_GLIBC_STATE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Set the state's words to 0, if it is whole among these words of a module's data, which are at
 * that address in their process. It has no symbol, and is found by its form.
 */
void torsh_glibc_state_blank(uint64_t address, uint64_t *words, size_t n);

#endif
