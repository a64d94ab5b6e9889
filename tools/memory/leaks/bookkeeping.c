/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/bookkeeping.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/recording/agent_stacks.h"
#include "tools/symbols/symbols.h"

#define NAME_BYTES 128
#define FRAMES_MAX 64 /* a longer run of the C library's own frames is not considered */

enum module_kind {
	LOADER = BOOKKEEPING_LOADER,
	C_LIBRARY = BOOKKEEPING_C_LIBRARY,
	CXX_RUNTIME = BOOKKEEPING_CXX_RUNTIME
};

static const struct {
	enum module_kind kind;
	const char *pattern;
} modules[] = {
#define MODULE(kind, pattern) {kind, pattern},
#define OWNED(function)
#define BOOKKEEPING(function, what)
#include "tools/memory/leaks/bookkeeping.def"
#undef MODULE
#undef OWNED
#undef BOOKKEEPING
};

/* the text is NULL if the caller owns the memory */
static struct known_function {
	const char *name, *what;
} functions[] = {
#define MODULE(kind, pattern)
#define OWNED(function) {#function, NULL},
#define BOOKKEEPING(function, what) {#function, "C library: " what},
#include "tools/memory/leaks/bookkeeping.def"
#undef MODULE
#undef OWNED
#undef BOOKKEEPING
};

#define N_FUNCTIONS (sizeof(functions) / sizeof(*functions))

enum bookkeeping_kind torsh_bookkeeping_module(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	/* Every pattern begins so, and most modules don't. */
	if (name[0] != 'l' || (name[1] != 'i' && name[1] != 'd'))
		return BOOKKEEPING_NONE;
	for (size_t i = 0; i < sizeof(modules) / sizeof(*modules); i++) {
		if (fnmatch(modules[i].pattern, name, 0) == 0)
			return (enum bookkeeping_kind)modules[i].kind;
	}
	return BOOKKEEPING_NONE;
}

static int compare_functions(const void *a, const void *b)
{
	return strcmp(((const struct known_function *)a)->name,
		      ((const struct known_function *)b)->name);
}

static bool cut_end(char *name, const char *end)
{
	size_t n = strlen(name), n_end = strlen(end);

	if (n <= n_end || strcmp(name + n - n_end, end) != 0)
		return false;
	name[n - n_end] = '\0';
	return true;
}

/* Copy the name without the part that only distinguishes aliases of the function. */
static void plain_name(const char *function, char *out)
{
	static const char *const ends[] = {"_chk", "_internal", "64", "_l"};

	if (strncmp(function, "_IO_", 4) == 0)
		function += 4;
	while (*function == '_')
		function++;
	snprintf(out, NAME_BYTES, "%.*s", (int)strcspn(function, "@"), function);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		cut_end(out, ends[i]);
}

static const struct known_function *find_function(const char *function)
{
	static bool is_sorted;
	char name[NAME_BYTES];

	if (!is_sorted)
		qsort(functions, N_FUNCTIONS, sizeof(*functions), compare_functions);
	is_sorted = true;
	plain_name(function, name);
	return bsearch(&(struct known_function){.name = name}, functions, N_FUNCTIONS,
		       sizeof(*functions), compare_functions);
}

bool torsh_bookkeeping_is_owned(const char *function)
{
	const struct known_function *found = find_function(function);

	return found && !found->what;
}

void torsh_bookkeeping_start(struct bookkeeping *book, struct symbols *symbols,
			     const struct recorded_process *process)
{
	*book = (struct bookkeeping){
		.symbols = symbols,
		.process = process,
		.kinds =
			torsh_need_items(NULL, 0, process->tables->n_modules, sizeof(*book->kinds)),
	};
}

void torsh_bookkeeping_end(struct bookkeeping *book)
{
	free(book->kinds);
	*book = (struct bookkeeping){0};
}

/* Returns the kind of the innermost frame's module. */
static enum bookkeeping_kind kind_of(struct bookkeeping *book, uint32_t stack)
{
	const struct recorded_process *process = book->process;
	const struct recorded_module *module =
		torsh_recording_module(process, process->tables->stacks[stack].address);
	uint8_t *known = module ? &book->kinds[module - process->tables->modules] : NULL;

	if (!known)
		return BOOKKEEPING_NONE;
	if (!*known)
		*known = (uint8_t)(torsh_bookkeeping_module(module->path) + 1);
	return (enum bookkeeping_kind)(*known - 1);
}

static const char *judge_c_library(struct symbols *symbols, const struct recorded_process *process,
				   uint32_t entry)
{
	const char *name = torsh_symbols_name(symbols, process, entry);
	const struct known_function *found = name ? find_function(name) : NULL;

	if (found)
		return found->what;
	return "C library";
}

/* Returns true if the stack has a frame. */
static bool is_frame(const struct recorded_process *process, uint32_t stack)
{
	return stack && stack < process->tables->n_stacks;
}

const char *torsh_bookkeeping_of(struct bookkeeping *book, uint32_t stack, uint32_t *caller)
{
	const struct recorded_process *process = book->process;
	uint32_t entry = stack;
	enum bookkeeping_kind kind;
	size_t n = 0;

	*caller = 0;
	if (torsh_agent_stacks_has(process, stack))
		return "torsh: PyTorch's blocks for it";
	kind = is_frame(process, stack) ? kind_of(book, stack) : BOOKKEEPING_NONE;
	if (kind == BOOKKEEPING_NONE)
		return NULL;
	for (; n < FRAMES_MAX && is_frame(process, stack) && kind_of(book, stack) == kind; n++) {
		entry = stack;
		stack = process->tables->stacks[stack].parent;
	}
	*caller = stack < process->tables->n_stacks ? stack : 0;
	if (kind == BOOKKEEPING_LOADER)
		return "loader";
	if (kind == BOOKKEEPING_C_LIBRARY)
		return judge_c_library(book->symbols, process,
				       process->tables->stacks[entry].address);
	/*
	 * The loader runs a library's constructors; what else it allocates is requested by the
	 * program.
	 */
	if (n < FRAMES_MAX && is_frame(process, stack) &&
	    kind_of(book, stack) == BOOKKEEPING_LOADER)
		return "C++ run-time: emergency pool";
	return NULL;
}
