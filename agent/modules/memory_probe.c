/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Queries the kernel whether memory is readable. */
#include "agent/modules/memory_probe.h"

#include <errno.h>

#include "shim/sys.h"

static bool is_word_readable(uintptr_t address)
{
	long answer = torsh_sys_compare(address & ~(uintptr_t)(sizeof(uint32_t) - 1), 0);

	/* Any other answer, such as a filter's, proves nothing. */
	return answer == 0 || answer == -EAGAIN;
}

bool torsh_probe(uintptr_t address)
{
	uintptr_t last = address + sizeof(uint64_t) - 1;

	return address && is_word_readable(address) &&
	       (torsh_probe_page(address) == torsh_probe_page(last) || is_word_readable(last));
}

bool torsh_probe_read(uintptr_t address, uintptr_t *known_page, uintptr_t *value)
{
	/* The first page is never mapped; a *known_page of 0 must not match it. */
	if (address % sizeof(uintptr_t) || address < PROBE_PAGE_BYTES)
		return false;
	if (torsh_probe_page(address) != *known_page && !torsh_probe(address))
		return false;
	*known_page = torsh_probe_page(address);
	*value = *(const uintptr_t *)address;
	return true;
}
