/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Like libfirst, but with other code at the same places: deeper, and with larger frames. */
#include <stdlib.h>

static void allocate_in_second(void **kept, volatile char *room)
{
	room[0] = 1;
	*kept = malloc(121);
}

static void step_in_second(void **kept)
{
	volatile char room[500];

	allocate_in_second(kept, room);
	room[499] = 0;
}

void leak_in_library(void **kept)
{
	step_in_second(kept);
}
