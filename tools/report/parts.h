/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/report/ renders what the analysis found, as text and as JSON, for the commands to print.
 * Here are the pieces that several reports have in common, as JSON: stacks, processes, event
 * counts, the state of the recording. All return trees that the caller owns.
 */
#ifndef TORSH_REPORT_PARTS_H
#define TORSH_REPORT_PARTS_H

#include "tools/base/json.h"
#include "tools/memory/leaks/leaks.h"

/* A list of frames, innermost first. */
cJSON *torsh_parts_stack(const struct frame *const *frames, size_t n);

/* The frames of a recorded stack, innermost first. */
cJSON *torsh_parts_recorded_stack(const struct recorded_process *process, uint32_t stack,
				  struct symbols *symbols, enum stack_view view);

/* {"bytes", "blocks", "pid", "stack"}; "pid" only if with_pid. */
cJSON *torsh_parts_site(const struct allocation_site *site, bool with_pid);

/*
 * {"produced", "delivered", "dropped"}, and what else is known about them, of all processes given.
 */
cJSON *torsh_parts_events(struct recorded_process *const *processes, size_t n);

/* {pid, ppid, program, arguments, start_ns, end_ns, end, ...}. */
cJSON *torsh_parts_process(const struct recorded_process *process);

/* [{"from_ns", "until_ns"}]: when new blocks were not recorded. */
cJSON *torsh_parts_pauses(const struct recording *recording);

/*
 * The same of programs that were not followed, into the list; measured members, up to a NULL, are
 * null there.
 */
void torsh_parts_add_unfollowed(cJSON *list, struct recorded_process *const *unfollowed, size_t n,
				const char *const *measured);

/*
 * What a process leaked, and what it had when it became another program, into its object; null
 * where that isn't known.
 */
void torsh_parts_set_leaks(cJSON *object, const struct leaks_process *leaks, bool is_known);

/* {"file", "complete", "still_written", "start_realtime_ns", ...}. */
cJSON *torsh_parts_recording(const struct recording *recording);

/* The counters of counters.def, summed. */
cJSON *torsh_parts_counters(struct recorded_process *const *processes, size_t n);

/* Sentences about what was not recorded, each once. */
cJSON *torsh_parts_notes(struct recorded_process *const *processes, size_t n);

/* {"groups", "bytes", "blocks"} of the allocation sites from first on. */
cJSON *torsh_parts_omitted(const struct allocation_sites *sites, size_t first);

#endif
