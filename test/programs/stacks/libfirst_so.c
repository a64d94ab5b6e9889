/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A library that is opened, closed and followed by libsecond at the same addresses; see stacks.c.
 */
#include <stdlib.h>

static void allocate_in_first(void **kept)
{
	*kept = malloc(120);
}

void leak_in_library(void **kept)
{
	allocate_in_first(kept);
}
