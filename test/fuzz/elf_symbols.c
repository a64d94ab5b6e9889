/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A module's file as the writer names its functions; the first byte decides whether a build-id is
 * compared, the file follows.
 */
#include "tools/writer/output/elf_symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/base/memory.h"

#define N_PLACES 5

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

/*
 * Without an error a name belongs to a function that covers its place; with one there are no names.
 */
static void check(const struct elf_lookup *lookup, int rc)
{
	if (!lookup->name)
		return;
	if (rc || !*lookup->name || lookup->address < lookup->symbol.start ||
	    lookup->address - lookup->symbol.start >= lookup->symbol.n_bytes)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	static const uint8_t build_id[20] = {0x11, 0x22, 0x33};
	struct elf_lookup lookups[N_PLACES] = {{.address = 0},
					       {.address = 0x8},
					       {.address = 0x205},
					       {.address = 0x1005},
					       {.address = UINT64_MAX}};
	int fd, rc;
	char path[32];

	if (!n_bytes)
		return 0;
	fd = memfd_create("fuzzed-module", MFD_CLOEXEC);
	if (fd < 0 || (n_bytes > 1 && write(fd, bytes + 1, n_bytes - 1) < 0))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = torsh_elf_find_functions(path, build_id, bytes[0] & 1 ? sizeof(build_id) : 0, lookups,
				      N_PLACES);
	if (rc > 0)
		abort();
	for (size_t i = 0; i < N_PLACES; i++) {
		check(&lookups[i], rc);
		free(lookups[i].name);
	}
	close(fd);
	return 0;
}
