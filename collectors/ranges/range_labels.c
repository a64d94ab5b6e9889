/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Labels of texts for handles, which are created outside of any range's event. */
#include <errno.h>
#include <string.h>

#include "agent/producer/label.h"
#include "agent/producer/producer.h"
#include "shim/ranges/ranges.h"

uint32_t torsh_ranges_label(const char *text)
{
	int saved = errno;
	struct producer *producer = torsh_producer_enter();
	uint32_t label =
		producer && text ? torsh_label(text, strnlen(text, LABEL_BUFFER_BYTES)) : 0;

	if (producer)
		torsh_producer_leave(producer);
	errno = saved;
	return label;
}
