/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Functions that all exporters share. */
#include "tools/export/exporter.h"

#include "tools/base/containers/array.h"

const char *const torsh_export_weight_names[N_EXPORT_WEIGHTS] = {
#define WEIGHT(NAME, name, text) #name,
	EXPORT_WEIGHTS
#undef WEIGHT
};

bool torsh_export_has(const struct export *export, enum export_weight weight)
{
	return export->what == (unsigned)weight ||
	       (export->what == EXPORT_ALL && weight != EXPORT_CPU);
}

const char *torsh_export_unit(enum export_weight weight)
{
	return weight == EXPORT_CPU ? "nanoseconds" : "bytes";
}

size_t torsh_export_frames(struct export *export, const struct export_sample *sample,
			   const struct frame ***frames, size_t *capacity)
{
	size_t n = 0;

	for (size_t k = 0; k < sample->n_addresses; k++) {
		const struct frames *at = torsh_symbols_frames(export->symbols, sample->process,
							       sample->addresses[k]);

		for (size_t i = 0; i < at->n; i++) {
			*frames = torsh_array_reserve(*frames, n, capacity, sizeof(**frames));
			(*frames)[n++] = &at->frames[i];
		}
	}
	for (size_t i = 0; i < n / 2; i++) {
		const struct frame *frame = (*frames)[i];

		(*frames)[i] = (*frames)[n - 1 - i];
		(*frames)[n - 1 - i] = frame;
	}
	return n;
}
