/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Strings of one process, escaped for JSON when they are first needed and cached: names, threads,
 * call stacks. It holds a string for each label and each stack in use.
 */
#ifndef TORSH_EXPORT_STRING_CACHE_H
#define TORSH_EXPORT_STRING_CACHE_H

#include "tools/export/trace.h"

#define NAME_BYTES_MAX 1000 /* of a name that is shown */
#define LABEL_BYTES_MAX (1u << 13) /* of a text as it is printed: what is longer nobody reads */
#define STACK_BYTES_MAX (1u << 14) /* of a stack likewise */

struct string_cache {
	const struct recorded_process *process;
	struct symbols *symbols;
	char **names, **inputs; /* by label; inputs are the exporter's own */
	char **kernels; /* by label */
	char **threads; /* by row: members for torsh_json_put_members */
	char **stacks, **lines; /* by number */
	size_t n_threads, n_stacks;
};

/* Prepare an empty cache; trace and process outlive it. */
void torsh_string_cache_create(struct string_cache *strings, const struct trace *trace,
			       const struct recorded_process *process);

/* Free all strings. */
void torsh_string_cache_free(struct string_cache *strings);

/* A label's name, "?" where it has none; cut at NAME_BYTES_MAX. */
const char *torsh_string_cache_name(struct string_cache *strings, uint32_t label);

/*
 * A kernel's, without its mangling; cut only where it is longer than LABEL_BYTES_MAX: what differs
 * last differs much.
 */
const char *torsh_string_cache_kernel(struct string_cache *strings, uint32_t label);

/*
 * The members "pid" and "tid" of a thread, for torsh_json_put_members. Rows that the recording doesn't have are all the
 * process's first thread.
 */
const char *torsh_string_cache_thread(struct string_cache *strings, uint32_t thread);

/* Returns "file(line): function;..." of a stack, innermost first; "": unknown. */
const char *torsh_string_cache_stack(struct string_cache *strings, uint32_t stack);

/*
 * Returns "file(line): function" of the program's line in a stack that was recorded in a CUDA call;
 * "": unknown.
 */
const char *torsh_string_cache_line(struct string_cache *strings, uint32_t stack);

#endif
