/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/report/ renders the results of the analysis, as text and as JSON, for the commands to
 * print. This file has the JSON parts that several reports share: stacks, processes, event counts,
 * the state of the recording. Each function emits the members or items that its comment shows.
 */
#ifndef TORSH_REPORT_PARTS_H
#define TORSH_REPORT_PARTS_H

#include "tools/base/json_writer.h"
#include "tools/memory/leaks/leaks.h"

/* "stack": a list of frames, innermost first. */
void torsh_parts_emit_stack(struct json_writer *json, const struct frame *const *frames, size_t n);

/* A frame as an item or after torsh_json_put_name; NULL becomes null. */
void torsh_parts_emit_user_frame(struct json_writer *json, const struct frame *frame);

/* "stack": the frames of a recorded stack, innermost first. */
void torsh_parts_emit_recorded_stack(struct json_writer *json,
				     const struct recorded_process *process, uint32_t stack,
				     struct symbols *symbols, enum stack_view view);

/* The item {"bytes", "blocks", "pid", "operator", "module", "first_step", "last_step", "stack"}. */
void torsh_parts_emit_site(struct json_writer *json, const struct allocation_site *site);

/* The same item without "stack"; the caller adds that and ends the object. */
void torsh_parts_begin_site(struct json_writer *json, const struct allocation_site *site);

/* "operator", "module", "first_step", "last_step": null if unknown. */
void torsh_parts_emit_scope(struct json_writer *json, const struct allocation_site *site);

/* "events": {"produced", "delivered", "dropped"}, and further losses, of all given processes. */
void torsh_parts_emit_events(struct json_writer *json, struct recorded_process *const *processes,
			     size_t n);

/*
 * The item {pid, ppid, program, arguments, start_ns, end_ns, end, ...}; the caller adds what it
 * measured and ends the object.
 */
void torsh_parts_begin_process(struct json_writer *json, const struct recorded_process *process);

/* "pauses": [{"from_ns", "until_ns"}]: when new blocks were not recorded. */
void torsh_parts_emit_pauses(struct json_writer *json, const struct recording *recording);

/* Items of unfollowed processes; the measured members, up to a NULL, are null there. */
void torsh_parts_emit_unfollowed(struct json_writer *json,
				 struct recorded_process *const *unfollowed, size_t n,
				 const char *const *measured);

/*
 * "leaked_bytes", "leaked_blocks", "at_exec_bytes", "at_exec_blocks" of a process; null if unknown.
 */
void torsh_parts_emit_leaks(struct json_writer *json, const struct leaks_process *leaks,
			    bool is_known);

/* "helpers": what leaked in helper processes; nothing if none leaked. */
void torsh_parts_emit_helpers(struct json_writer *json, const struct helper_leaks *helpers);

/* "recording": {"file", "complete", "being_written", "start_realtime_ns", ...}. */
void torsh_parts_emit_recording(struct json_writer *json, const struct recording *recording);

/* "counters": those of counters.def, summed. */
void torsh_parts_emit_counters(struct json_writer *json, struct recorded_process *const *processes,
			       size_t n);

/* "notes": sentences about what was not recorded, each once. */
void torsh_parts_emit_notes(struct json_writer *json, struct recorded_process *const *processes,
			    size_t n);

/* The items of that list. */
void torsh_parts_emit_note_items(struct json_writer *json,
				 struct recorded_process *const *processes, size_t n);

/* "omitted": {"groups", "bytes", "blocks"} of the allocation sites from first on. */
void torsh_parts_emit_omitted(struct json_writer *json, const struct allocation_sites *sites,
			      size_t first);

/*
 * Emit "interval", the 95 % intervals of estimates from samples taken every so many bytes; nothing
 * if that is 0.
 */
void torsh_parts_emit_interval(struct json_writer *json, uint64_t sampled_every, uint64_t bytes,
			       uint64_t blocks, struct estimate_variance variance);

#endif
