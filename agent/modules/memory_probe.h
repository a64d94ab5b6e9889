/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reads memory that may be unmapped: the unwinder follows values that garbage may have overwritten.
 * One system call queries the kernel; it changes nothing and raises no signal. For rare paths.
 */
#ifndef TORSH_AGENT_MODULES_MEMORY_PROBE_H
#define TORSH_AGENT_MODULES_MEMORY_PROBE_H

#include <stdbool.h>
#include <stdint.h>

/* no page is smaller: two words in one such block are mapped together */
#define PROBE_PAGE_BYTES 4096u

static inline uintptr_t torsh_probe_page(uintptr_t address)
{
	return address & ~(uintptr_t)(PROBE_PAGE_BYTES - 1);
}

/* Whether the eight bytes at address can be read now. */
bool torsh_probe(uintptr_t address);

/*
 * Read an aligned word at address if it is readable. *known_page is a page that needs no query; it
 * becomes the page of address. Returns false and leaves *value alone if it is not readable.
 */
bool torsh_probe_read(uintptr_t address, uintptr_t *known_page, uintptr_t *value);

#endif
