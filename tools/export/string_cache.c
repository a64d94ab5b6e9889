/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/string_cache.h"

#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/symbols/frame_text.h"

/* A byte's longest escape has six bytes. */
_Static_assert(6 * NAME_BYTES_MAX < LABEL_BYTES_MAX, "no name is cut when it is printed");

void torsh_string_cache_create(struct string_cache *strings, const struct trace *trace,
			       const struct recorded_process *process)
{
	*strings = (struct string_cache){
		.process = process,
		.symbols = trace->symbols,
		.n_threads = process->n_threads + 1,
		.n_stacks = process->tables->n_stacks,
	};
	strings->names = torsh_need_items(NULL, 0, process->tables->n_functions + 1,
					  sizeof(*strings->names));
	strings->inputs = torsh_need_items(NULL, 0, process->tables->n_functions + 1,
					   sizeof(*strings->inputs));
	strings->kernels = torsh_need_items(NULL, 0, process->tables->n_functions + 1,
					    sizeof(*strings->kernels));
	strings->threads = torsh_need_items(NULL, 0, strings->n_threads, sizeof(*strings->threads));
	strings->stacks =
		torsh_need_items(NULL, 0, strings->n_stacks + 1, sizeof(*strings->stacks));
	strings->lines = torsh_need_items(NULL, 0, strings->n_stacks + 1, sizeof(*strings->lines));
}

static void free_all(char **strings, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(strings[i]);
	free(strings);
}

void torsh_string_cache_free(struct string_cache *strings)
{
	free_all(strings->names, strings->process->tables->n_functions + 1);
	free_all(strings->inputs, strings->process->tables->n_functions + 1);
	free_all(strings->kernels, strings->process->tables->n_functions + 1);
	free_all(strings->threads, strings->n_threads);
	free_all(strings->stacks, strings->n_stacks);
	free_all(strings->lines, strings->n_stacks);
}

static char *escape_short(const char *name)
{
	char *shown = torsh_need(strndup(name, NAME_BYTES_MAX)),
	     *escaped = torsh_json_escape(shown);

	free(shown);
	return escaped;
}

const char *torsh_string_cache_name(struct string_cache *strings, uint32_t label)
{
	const char *name;

	if (label > strings->process->tables->n_functions)
		label = 0;
	name = torsh_timeline_label(strings->process, label);
	if (!strings->names[label])
		strings->names[label] = escape_short(name && *name ? name : "?");
	return strings->names[label];
}

const char *torsh_string_cache_kernel(struct string_cache *strings, uint32_t label)
{
	const char *name = torsh_timeline_label(strings->process, label);
	char *escaped;

	if (!name || !*name)
		return "?";
	if (strings->kernels[label])
		return strings->kernels[label];
	name = strings->symbols ? torsh_symbols_demangle(strings->symbols, name) : name;
	escaped = torsh_json_escape(name);
	if (strlen(escaped) > LABEL_BYTES_MAX) {
		free(escaped);
		escaped = escape_short(name);
	}
	return strings->kernels[label] = escaped;
}

const char *torsh_string_cache_thread(struct string_cache *strings, uint32_t thread)
{
	if (thread >= strings->n_threads)
		thread = (uint32_t)strings->n_threads - 1;
	if (!strings->threads[thread]) {
		struct json_writer json;

		torsh_json_open_members(&json);
		torsh_json_put_u64(&json, "pid", strings->process->pid);
		torsh_json_put_u64(&json, "tid", torsh_trace_tid(strings->process, thread));
		strings->threads[thread] = torsh_json_close_memory(&json);
	}
	return strings->threads[thread];
}

/* Outer frames are left out if they exceed an event's room. */
static char *escape_stack(const char *stack)
{
	char *escaped = torsh_json_escape(stack), *end;

	if (strlen(escaped) > STACK_BYTES_MAX) {
		escaped[STACK_BYTES_MAX] = '\0';
		end = strrchr(escaped, ';');
		*(end ? end : escaped) = '\0';
	}
	return escaped;
}

const char *torsh_string_cache_stack(struct string_cache *strings, uint32_t stack)
{
	if (!stack || stack >= strings->n_stacks || !strings->symbols)
		return "";
	if (!strings->stacks[stack]) {
		char *text = torsh_stack_text(strings->process, stack, strings->symbols);

		strings->stacks[stack] = escape_stack(text);
		free(text);
	}
	return strings->stacks[stack];
}

const char *torsh_string_cache_line(struct string_cache *strings, uint32_t stack)
{
	if (!stack || stack >= strings->n_stacks || !strings->symbols)
		return "";
	if (!strings->lines[stack]) {
		char *text = torsh_stack_line_text(strings->process, stack, strings->symbols);

		strings->lines[stack] = escape_stack(text);
		free(text);
	}
	return strings->lines[stack];
}
