/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* CPython's objects, which no allocator of C sees one by one: by type, and by who keeps them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/size.h"
#include "tools/command/leaks/leaks_view.h"
#include "tools/frames/frame_kind.h"
#include "tools/report/parts.h"
#include "tools/report/text.h"

#define ROWS_SHOWN 10u
#define TYPES_SHOWN 6u

static bool is_own(const struct python_owner_row *owner)
{
	return !strncmp(owner->name, "__main__", strlen("__main__")) ||
	       (owner->file && !torsh_path_in_package(owner->file));
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool is_shown(const struct leaks_view *view, const struct python_owner_row *owner,
		     uint64_t least)
{
	return owner->bytes >= least && (view->shows_kept || is_own(owner));
}

static void print_owner(const struct python_owner_row *owner)
{
	char bytes[SIZE_TEXT_BYTES], objects[SIZE_TEXT_BYTES];

	printf("%12s  %20s   %s: %s\n", torsh_size_human(owner->bytes, bytes),
	       torsh_size_counted(owner->objects, "object", objects), owner->name, owner->type);
}

static void print_types(const struct recorded_python_heap *heap)
{
	char bytes[SIZE_TEXT_BYTES], objects[SIZE_TEXT_BYTES];

	printf("Of %s in %s of Python: ", torsh_size_human(heap->bytes, bytes),
	       torsh_size_counted(heap->objects, "object", objects));
	for (size_t i = 0; i < heap->n_types && i < TYPES_SHOWN; i++)
		printf("%s%s %s", i ? ", " : "", heap->types[i].name,
		       torsh_size_human(heap->types[i].bytes + heap->types[i].lost_bytes, bytes));
	puts("");
}

static void print_process(const struct leaks_view *view, const struct recorded_process *process,
			  uint64_t least)
{
	const struct recorded_python_heap *heap = &process->verdicts.python;
	size_t n = 0;

	for (size_t i = 0; i < heap->n_owners; i++) {
		if (!is_shown(view, &heap->owners[i], least))
			continue;
		if (!n && view->reading->n_processes > 1)
			printf("Variables of Python that held most, pid %" PRIu32 ":\n",
			       process->pid);
		else if (!n)
			puts("Variables of Python that held most:");
		if (n++ < ROWS_SHOWN)
			print_owner(&heap->owners[i]);
	}
	if (n > ROWS_SHOWN)
		torsh_text_smaller(stdout, n - ROWS_SHOWN);
	if (n || (view->shows_kept && heap->objects))
		print_types(heap);
}

void torsh_leaks_python_text(const struct leaks_view *view)
{
	const struct reading *reading = view->reading;
	uint64_t least = torsh_leaks_held_min(reading->processes, reading->n_processes);

	if (view->leaks.device || view->leaks.windows || view->leaks.at_exec)
		return;
	for (size_t i = 0; i < reading->n_processes; i++)
		print_process(view, reading->processes[i], least);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void emit_types(struct json_writer *json, const struct recorded_python_heap *heap)
{
	torsh_json_begin_array(json, "types");
	for (size_t i = 0; i < heap->n_types; i++) {
		const struct python_type_row *type = &heap->types[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "name", type->name);
		torsh_json_put_u64(json, "objects", type->objects);
		torsh_json_put_u64(json, "bytes", type->bytes);
		torsh_json_put_u64(json, "lost_objects", type->lost_objects);
		torsh_json_put_u64(json, "lost_bytes", type->lost_bytes);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void emit_variables(struct json_writer *json, const struct recorded_python_heap *heap)
{
	torsh_json_begin_array(json, "variables");
	for (size_t i = 0; i < heap->n_owners; i++) {
		const struct python_owner_row *owner = &heap->owners[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "name", owner->name);
		torsh_json_put_text(json, "type", owner->type);
		torsh_json_put_text(json, "file", owner->file);
		torsh_json_put_bool(json, "own", is_own(owner));
		torsh_json_put_u64(json, "objects", owner->objects);
		torsh_json_put_u64(json, "bytes", owner->bytes);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

void torsh_leaks_python_json(struct json_writer *json, const struct leaks_view *view)
{
	torsh_json_begin_lines(json, "python");
	for (size_t i = 0; i < view->reading->n_processes; i++) {
		const struct recorded_process *process = view->reading->processes[i];
		const struct recorded_python_heap *heap = &process->verdicts.python;

		if (!heap->is_there)
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "pid", process->pid);
		torsh_json_put_u64(json, "at_ns", heap->at_ns);
		torsh_json_put_u64(json, "pool_bytes", heap->pool_bytes);
		torsh_json_put_u64(json, "pool_used_bytes", heap->pool_used_bytes);
		torsh_json_put_u64(json, "objects", heap->objects);
		torsh_json_put_u64(json, "bytes", heap->bytes);
		emit_types(json, heap);
		emit_variables(json, heap);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}
