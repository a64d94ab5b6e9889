/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Declarations shared by profile_collect.c and profile_place.c, and included only there: names of
 * operators, and the operators that are added.
 */
#ifndef TORSH_EXPORT_PROFILE_PROFILE_COLLECT_H
#define TORSH_EXPORT_PROFILE_PROFILE_COLLECT_H

#include "tools/export/profile/profile.h"

/* An operator's name, and how often it was called. */
struct known_name {
	const char *text;
	uint64_t n_calls;
};

/* Returns the entry of an operator's name, one for all processes, so that a span's id is unique. */
struct known_name *torsh_profile_name(struct profile_json *profile, const char *text);

/* Count one more span of that name. Returns its id. */
struct span_id torsh_profile_next_id(struct known_name *name);

/* Add an operator without work. The pointer is valid until the next one is added. */
struct profile_operator *torsh_profile_add_operator(struct profile_json *profile,
						    const struct recorded_process *process,
						    struct span_id id,
						    enum attribution_method method);

/* Returns whether the selected window and steps contain the time. */
bool torsh_profile_selects(const struct profile_json *profile,
			   const struct recorded_process *process, uint64_t at_ns);

/*
 * After the timeline's pass: sort the activities by start, assign them to operators and set
 * profile->order.
 */
void torsh_profile_place(struct profile_json *profile);

#endif
