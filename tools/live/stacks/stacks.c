/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/live/stacks/stacks.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/live/stacks/native_stacks.h"
#include "tools/live/stacks/python_stacks.h"

#define EVALUATION "_PyEval_EvalFrameDefault"

/* From the standard C++ library; it has no header for C. The result is from malloc. */
char *__cxa_demangle(const char *name, char *buffer, size_t *n, int *status);

static void add_frame(struct thread_stack *stack, char *function, char *place, bool is_python)
{
	stack->frames = torsh_array_reserve(stack->frames, stack->n_frames, &stack->capacity,
					    sizeof(*stack->frames));
	stack->frames[stack->n_frames++] =
		(struct stack_frame){.function = function, .place = place, .is_python = is_python};
}

static const char *base_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* The symbol without its version; NULL: none. */
static const char *symbol_at(Dwfl_Module *module, uint64_t address)
{
	GElf_Off offset;
	GElf_Sym symbol;

	return module ? dwfl_module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL)
		      : NULL;
}

static void add_native(struct thread_stack *stack, Dwfl_Module *module, const char *symbol)
{
	char *function = symbol ? __cxa_demangle(symbol, NULL, NULL, NULL) : NULL;
	const char *file =
		module ? dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL) : NULL;

	if (!function && symbol)
		function = torsh_need(strdup(symbol));
	add_frame(stack, function, torsh_need(strdup(file ? base_of(file) : "?")), false);
}

static void add_python(struct thread_stack *stack, const struct python_stack_frame *frame)
{
	const char *file = *frame->file ? frame->file : "?";
	char *place = frame->line ? torsh_need_text("%s:%" PRIu32, file, frame->line)
				  : torsh_need(strdup(file));

	add_frame(stack, torsh_need(strdup(*frame->function ? frame->function : "?")), place, true);
}

/* Frames of the evaluation function are replaced by the Python frames that they execute. */
static void merge(struct thread_stack *stack, Dwfl *dwfl, const struct native_frame *native,
		  size_t n_native, const struct python_stack_frame *python, size_t n_python)
{
	size_t next = 0;

	for (size_t i = 0; i < n_native; i++) {
		Dwfl_Module *module = dwfl_addrmodule(dwfl, native[i].address);
		const char *symbol = symbol_at(module, native[i].address);
		bool is_evaluation = symbol && !strncmp(symbol, EVALUATION, strlen(EVALUATION));

		if (!is_evaluation || next == n_python) {
			add_native(stack, module, symbol);
			continue;
		}
		do
			add_python(stack, &python[next]);
		while (!python[next++].ends_activation && next < n_python);
	}
	/* The native stack is not known that far. */
	while (next < n_python)
		add_python(stack, &python[next++]);
}

static void read_identity(struct thread_stack *stack, uint32_t pid)
{
	char *path = torsh_need_text("/proc/%" PRIu32 "/task/%" PRIu32 "/stat", pid, stack->tid);
	FILE *file = fopen(path, "re");
	char line[512] = "";
	const char *begin, *end;

	stack->state = '?';
	if (file && fgets(line, sizeof(line), file) && (begin = strchr(line, '(')) &&
	    (end = strrchr(line, ')')) && end[1] == ' ') {
		snprintf(stack->name, sizeof(stack->name), "%.*s", (int)(end - begin - 1),
			 begin + 1);
		stack->state = end[2];
	}
	if (file)
		fclose(file);
	free(path);
}

static int compare_threads(const void *a, const void *b)
{
	uint32_t first = ((const struct thread_stack *)a)->tid;
	uint32_t second = ((const struct thread_stack *)b)->tid;

	return first < second ? -1 : first > second;
}

static void list_threads(struct thread_stacks *stacks)
{
	char *path = torsh_need_text("/proc/%" PRIu32 "/task", stacks->pid);
	DIR *tasks = opendir(path);
	struct dirent *entry;

	while (tasks && (entry = readdir(tasks))) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (!tid)
			continue;
		stacks->items = torsh_array_reserve(stacks->items, stacks->n, &stacks->capacity,
						    sizeof(*stacks->items));
		stacks->items[stacks->n++] = (struct thread_stack){.tid = tid};
	}
	if (tasks)
		closedir(tasks);
	free(path);
	if (stacks->n)
		qsort(stacks->items, stacks->n, sizeof(*stacks->items), compare_threads);
}

struct python_look {
	const struct python_process *process;
	struct python_stack_frame frames[PYTHON_FRAMES_MAX];
	size_t n;
};

static void take_python(void *context, uint32_t tid, uint64_t thread_pointer)
{
	struct python_look *look = context;

	look->n = torsh_python_frames_take(look->process, tid, thread_pointer, look->frames);
}

static void take_stack(struct thread_stack *stack, Dwfl *dwfl, const struct python_process *python)
{
	static struct native_frame native[NATIVE_FRAMES_MAX];
	static struct python_look look;
	const char *reason;
	size_t n_native;

	look.process = python;
	look.n = 0;
	n_native = torsh_native_take(dwfl, stack->tid, native, take_python, &look, &reason);
	merge(stack, dwfl, native, n_native, look.frames, look.n);
	if (reason)
		stack->reason = torsh_need(strdup(reason));
}

void torsh_thread_stacks_take(struct thread_stacks *stacks, uint32_t pid)
{
	struct python_process python = {0};
	const char *reason;
	Dwfl *dwfl = torsh_native_open(pid, &reason);

	*stacks = (struct thread_stacks){.pid = pid};
	if (dwfl)
		torsh_python_process_find(&python, pid, dwfl);
	list_threads(stacks);
	for (size_t i = 0; i < stacks->n; i++) {
		read_identity(&stacks->items[i], pid);
		if (stacks->items[i].state == 'Z')
			stacks->items[i].reason = torsh_need(strdup("the thread has ended"));
		else if (dwfl)
			take_stack(&stacks->items[i], dwfl, &python);
		else
			stacks->items[i].reason = torsh_need(strdup(reason));
	}
	if (dwfl)
		dwfl_end(dwfl);
}

void torsh_thread_stacks_free(struct thread_stacks *stacks)
{
	for (size_t i = 0; i < stacks->n; i++) {
		struct thread_stack *stack = &stacks->items[i];

		for (size_t k = 0; k < stack->n_frames; k++) {
			free(stack->frames[k].function);
			free(stack->frames[k].place);
		}
		free(stack->frames);
		free(stack->reason);
	}
	free(stacks->items);
}
