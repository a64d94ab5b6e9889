/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/memory/device_refusals.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"

void torsh_device_refusals_add(struct device_refusals *refusals,
			       const struct device_refusal *refusal)
{
	if (!refusals->n++ || refusal->said.bytes > refusals->largest.said.bytes)
		refusals->largest = *refusal;
	if (refusals->n_latest == REFUSALS_KEPT) {
		refusals->n_latest--;
		memmove(refusals->latest, refusals->latest + 1,
			refusals->n_latest * sizeof(*refusals->latest));
	}
	refusals->latest = torsh_array_reserve(refusals->latest, refusals->n_latest,
					       &refusals->latest_room, sizeof(*refusals->latest));
	refusals->latest[refusals->n_latest++] = *refusal;
}

void torsh_device_refusals_free(struct device_refusals *refusals)
{
	free(refusals->latest);
	*refusals = (struct device_refusals){0};
}
