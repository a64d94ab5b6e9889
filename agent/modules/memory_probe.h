/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reads memory that may be unmapped: the unwinder follows values that garbage may have written. One
 * system call queries the kernel; nothing is changed, no signal can arise. For rare paths.
 */
#ifndef TORSH_AGENT_MODULES_MEMORY_PROBE_H
#define TORSH_AGENT_MODULES_MEMORY_PROBE_H

#include <stdbool.h>
#include <stdint.h>

/* no page is smaller, so that two words in one of these share their fate */
#define PROBE_PAGE_BYTES 4096u

static inline uintptr_t torsh_probe_page(uintptr_t address)
{
	return address & ~(uintptr_t)(PROBE_PAGE_BYTES - 1);
}

/* Whether the eight bytes at address can be read now. */
bool torsh_probe(uintptr_t address);

/*
 * Read an aligned word at address when it is readable. *known_page is a page that needs no
 * question; it becomes the page of address. False leaves *value alone.
 */
bool torsh_probe_read(uintptr_t address, uintptr_t *known_page, uintptr_t *value);

#endif
