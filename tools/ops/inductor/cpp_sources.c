/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/inductor/cpp_sources.h"

#include <fcntl.h>
#include <fts.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

#define FILES_MAX 65536u
/* Limit on directory entries: the path is from a file that any user may have written. */
#define ENTRIES_MAX (1u << 20)
#define FILE_BYTES_MAX (4u << 20)

struct source {
	char *name;
	char *library; /* path of what was compiled from it */
	struct cpp_kernel kernel;
};

struct cpp_sources {
	struct source *items; /* by name */
	size_t n, n_room;
};

static void take_text(struct cpp_sources *sources, const char *path, const char *text)
{
	struct source source = {0};
	const char *name;
	size_t n;

	name = torsh_cpp_kernel_name(text, &n);
	if (!name)
		return;
	source.name = torsh_need(strndup(name, n));
	source.library = torsh_need_text("%.*s.so", (int)(strlen(path) - 4), path);
	source.kernel = torsh_cpp_kernel_count(text);
	sources->items = torsh_array_reserve(sources->items, sources->n, &sources->n_room,
					     sizeof(*sources->items));
	sources->items[sources->n++] = source;
}

static void read_source(struct cpp_sources *sources, const char *path, size_t n_bytes)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char *text = torsh_need(malloc(n_bytes + 1));
	ssize_t n = file < 0 ? -1 : read(file, text, n_bytes);

	if (n > 0) {
		text[n] = '\0';
		take_text(sources, path, text);
	}
	free(text);
	if (file >= 0)
		close(file);
}

static bool is_source(const FTSENT *entry)
{
	return entry->fts_info == FTS_F && entry->fts_namelen > 4 &&
	       strcmp(entry->fts_name + entry->fts_namelen - 4, ".cpp") == 0 &&
	       entry->fts_statp->st_size > 0 && entry->fts_statp->st_size <= FILE_BYTES_MAX;
}

static int compare_sources(const void *a, const void *b)
{
	const struct source *x = a, *y = b;

	return strcmp(x->name, y->name);
}

struct cpp_sources *torsh_cpp_sources_read(const char *folder)
{
	char *folders[] = {(char *)folder, NULL};
	struct cpp_sources *sources = torsh_need(calloc(1, sizeof(*sources)));
	FTS *walk = fts_open(folders, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	FTSENT *entry;
	size_t n = 0;

	while (walk && sources->n < FILES_MAX && n++ < ENTRIES_MAX && (entry = fts_read(walk))) {
		if (is_source(entry))
			read_source(sources, entry->fts_path, (size_t)entry->fts_statp->st_size);
	}
	if (walk)
		fts_close(walk);
	if (sources->n)
		qsort(sources->items, sources->n, sizeof(*sources->items), compare_sources);
	return sources;
}

void torsh_cpp_sources_destroy(struct cpp_sources *sources)
{
	for (size_t i = 0; sources && i < sources->n; i++) {
		free(sources->items[i].name);
		free(sources->items[i].library);
	}
	if (sources)
		free(sources->items);
	free(sources);
}

/* ---- which of them a process called ---------------------------------------------------------- */

static bool has_module(const struct recorded_process *process, const char *path)
{
	for (size_t i = 0; i < process->tables->n_modules; i++) {
		const char *module = process->tables->modules[i].path;

		if (module && strcmp(module, path) == 0)
			return true;
	}
	return false;
}

static bool are_equal(const struct cpp_kernel *a, const struct cpp_kernel *b)
{
	if (a->reason || b->reason)
		return a->reason && b->reason;
	return a->all == b->all && a->counter == b->counter &&
	       !a->counter_reason == !b->counter_reason;
}

/*
 * Get the kernel of the n sources, of those that the process loaded if process isn't NULL. Returns
 * false if there is none. Of several different ones none is known.
 */
static bool find_among(const struct source *items, size_t n, const struct recorded_process *process,
		       struct cpp_kernel *found)
{
	bool is_found = false;

	for (size_t i = 0; i < n; i++) {
		if (process && !has_module(process, items[i].library))
			continue;
		if (is_found && !are_equal(found, &items[i].kernel))
			found->reason = "Inductor's cache has several kernels of this name";
		else if (!is_found)
			*found = items[i].kernel;
		is_found = true;
	}
	return is_found;
}

struct cpp_kernel torsh_cpp_sources_find(const struct cpp_sources *sources,
					 const struct recorded_process *process, const char *name)
{
	struct cpp_kernel found = {
		.reason = "the kernel's code is not in the directory that Inductor's cache was in"};
	size_t i = 0, end = sources->n, n = 0;

	while (i < end) {
		size_t middle = i + (end - i) / 2;

		if (strcmp(sources->items[middle].name, name) < 0)
			i = middle + 1;
		else
			end = middle;
	}
	while (i + n < sources->n && strcmp(sources->items[i + n].name, name) == 0)
		n++;
	if (!find_among(sources->items + i, n, process, &found))
		find_among(sources->items + i, n, NULL, &found);
	return found;
}
