/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/string_cache.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/symbols/frame_text.h"

/* The longest escape stands for one byte. */
_Static_assert(6 * NAME_BYTES_MAX < LABEL_BYTES_MAX, "no name is cut when it is printed");

void torsh_string_cache_create(struct string_cache *texts, const struct trace *trace,
			       const struct recorded_process *process)
{
	*texts = (struct string_cache){
		.process = process,
		.symbols = trace->symbols,
		.n_threads = process->n_threads + 1,
		.n_stacks = process->n_stacks,
	};
	texts->names = torsh_need_items(NULL, 0, process->n_functions + 1, sizeof(*texts->names));
	texts->inputs = torsh_need_items(NULL, 0, process->n_functions + 1, sizeof(*texts->inputs));
	texts->kernels =
		torsh_need_items(NULL, 0, process->n_functions + 1, sizeof(*texts->kernels));
	texts->threads = torsh_need_items(NULL, 0, texts->n_threads, sizeof(*texts->threads));
	texts->stacks = torsh_need_items(NULL, 0, texts->n_stacks + 1, sizeof(*texts->stacks));
	texts->lines = torsh_need_items(NULL, 0, texts->n_stacks + 1, sizeof(*texts->lines));
}

static void free_all(char **texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(texts[i]);
	free(texts);
}

void torsh_string_cache_free(struct string_cache *texts)
{
	free_all(texts->names, texts->process->n_functions + 1);
	free_all(texts->inputs, texts->process->n_functions + 1);
	free_all(texts->kernels, texts->process->n_functions + 1);
	free_all(texts->threads, texts->n_threads);
	free_all(texts->stacks, texts->n_stacks);
	free_all(texts->lines, texts->n_stacks);
}

static char *escape_short(const char *name)
{
	char *shown = torsh_need(strndup(name, NAME_BYTES_MAX)),
	     *escaped = torsh_trace_escape(shown);

	free(shown);
	return escaped;
}

const char *torsh_string_cache_name(struct string_cache *texts, uint32_t label)
{
	const char *name;

	if (label > texts->process->n_functions)
		label = 0;
	name = torsh_timeline_label(texts->process, label);
	if (!texts->names[label])
		texts->names[label] = escape_short(name && *name ? name : "?");
	return texts->names[label];
}

const char *torsh_string_cache_kernel(struct string_cache *texts, uint32_t label)
{
	const char *name = torsh_timeline_label(texts->process, label);
	char *escaped;

	if (!name || !*name)
		return "?";
	if (texts->kernels[label])
		return texts->kernels[label];
	name = texts->symbols ? torsh_symbols_demangle(texts->symbols, name) : name;
	escaped = torsh_trace_escape(name);
	if (strlen(escaped) > LABEL_BYTES_MAX) {
		free(escaped);
		escaped = escape_short(name);
	}
	return texts->kernels[label] = escaped;
}

const char *torsh_string_cache_thread(struct string_cache *texts, uint32_t thread)
{
	if (thread >= texts->n_threads)
		thread = (uint32_t)texts->n_threads - 1;
	if (!texts->threads[thread])
		texts->threads[thread] =
			torsh_need_text("\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, texts->process->pid,
					torsh_trace_tid(texts->process, thread));
	return texts->threads[thread];
}

/* Frames beyond what an event has room for are left out, from the outermost on. */
static char *escape_stack(const char *stack)
{
	char *escaped = torsh_trace_escape(stack), *end;

	if (strlen(escaped) > STACK_BYTES_MAX) {
		escaped[STACK_BYTES_MAX] = '\0';
		end = strrchr(escaped, ';');
		*(end ? end : escaped) = '\0';
	}
	return escaped;
}

const char *torsh_string_cache_stack(struct string_cache *texts, uint32_t stack)
{
	if (!stack || stack >= texts->n_stacks || !texts->symbols)
		return "";
	if (!texts->stacks[stack]) {
		char *text = torsh_stack_text(texts->process, stack, texts->symbols);

		texts->stacks[stack] = escape_stack(text);
		free(text);
	}
	return texts->stacks[stack];
}

const char *torsh_string_cache_line(struct string_cache *texts, uint32_t stack)
{
	if (!stack || stack >= texts->n_stacks || !texts->symbols)
		return "";
	if (!texts->lines[stack]) {
		char *text = torsh_stack_line_text(texts->process, stack, texts->symbols);

		texts->lines[stack] = escape_stack(text);
		free(text);
	}
	return texts->lines[stack];
}
