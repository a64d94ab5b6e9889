/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Asking the kernel whether memory is readable. See probe.h. */
#include "agent/probe.h"

#include <errno.h>

#include "shim/sys.h"

bool torsh_probe(uintptr_t address)
{
	/*
	 * The kernel copies the new signal mask in before it looks at what shall be done with it, which is nothing that
	 * exists: EFAULT tells unreadable memory, EINVAL readable. Anything else (a filter's answer) proves nothing.
	 */
	return address && TORSH_SYS(SYS_rt_sigprocmask, -1, address, 0, 8, 0, 0) == -EINVAL;
}

bool torsh_probe_read(uintptr_t address, uintptr_t *known_page, uintptr_t *value)
{
	/* The first page is nobody's, though a *known_page that was never set says so. */
	if (address % sizeof(uintptr_t) || address < PROBE_PAGE_BYTES)
		return false;
	if (torsh_probe_page(address) != *known_page && !torsh_probe(address))
		return false;
	*known_page = torsh_probe_page(address);
	*value = *(const uintptr_t *)address;
	return true;
}
