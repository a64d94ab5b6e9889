/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/kernels/inductor.h"

#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

#define FILES_MAX 65536u /* per directory, which several programs may share */
/* Limit on directory entries: the path is from a file that any user may have written. */
#define ENTRIES_MAX (1u << 20)
#define FILE_BYTES_MAX (16u << 20) /* Inductor's code for a large model has some megabytes */
#define OPERATORS_MAX 256u /* per kernel */
#define COMMENTS_MAX 64u /* per kernel: further ones make it ambiguous */

static const char comment[] = "Original ATen: [";

/* A list of operators in a comment: "aten.add, prims.mul". line: where the comment begins. */
struct list {
	const char *text, *line;
	size_t n;
};

static bool is_name(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

/* ---- a kernel -------------------------------------------------------------------------------- */

static void free_operators(struct inductor_kernel *kernel)
{
	for (size_t i = 0; i < kernel->n_operators; i++)
		free(kernel->operators[i]);
	free(kernel->operators);
}

static bool has_operator(const struct inductor_kernel *kernel, const char *name)
{
	for (size_t i = 0; i < kernel->n_operators; i++) {
		if (strcmp(kernel->operators[i], name) == 0)
			return true;
	}
	return false;
}

/* Add "aten.add" as "aten::add". Copies the text. */
static void add_operator(struct inductor_kernel *kernel, const char *text, size_t n)
{
	const char *dot = memchr(text, '.', n);
	char *name;

	if (!dot || dot == text || dot + 1 == text + n || kernel->n_operators == OPERATORS_MAX)
		return;
	name = torsh_need_text("%.*s::%.*s", (int)(dot - text), text, (int)(text + n - dot - 1),
			       dot + 1);
	if (has_operator(kernel, name)) {
		free(name);
		return;
	}
	kernel->operators = torsh_need_items(kernel->operators, kernel->n_operators,
					     kernel->n_operators + 1, sizeof(*kernel->operators));
	kernel->operators[kernel->n_operators++] = name;
}

static void fill_operators(struct inductor_kernel *kernel, const struct list *list)
{
	const char *at = list->text, *end = at + list->n;

	while (at < end) {
		size_t n = strcspn(at, ", ]\n");

		add_operator(kernel, at, n);
		at += n;
		at += at < end ? strspn(at, ", ") : 0;
	}
}

static bool are_equal(const struct inductor_kernel *a, const struct inductor_kernel *b)
{
	if (a->n_operators != b->n_operators)
		return false;
	for (size_t i = 0; i < a->n_operators; i++) {
		if (strcmp(a->operators[i], b->operators[i]) != 0)
			return false;
	}
	return true;
}

/* Add a comment of the kernel, which takes the text over. Returns false if there are too many. */
static bool add_comment(struct inductor_kernel *kernel, char *text)
{
	size_t i = 0;

	while (i < kernel->n_comments && strcmp(kernel->comments[i], text) != 0)
		i++;
	if (i < kernel->n_comments || i == COMMENTS_MAX) {
		free(text);
		return i < kernel->n_comments;
	}
	kernel->comments = torsh_need_items(kernel->comments, i, i + 1, sizeof(*kernel->comments));
	kernel->comments[kernel->n_comments++] = text;
	return true;
}

/* line: its definition, which follows its comment, or its launch, which has a shorter one. */
static void add_kernel(struct inductor *inductor, const char *name, size_t n,
		       const struct list *list, const char *line)
{
	struct inductor_kernel kernel = {0};

	fill_operators(&kernel, list);
	if (!kernel.n_operators)
		return;
	kernel.name = torsh_need(strndup(name, n));
	if (name[n] == ' ')
		add_comment(&kernel, torsh_need(strndup(list->line, (size_t)(line - list->line))));
	inductor->kernels = torsh_array_reserve(inductor->kernels, inductor->n, &inductor->n_room,
						sizeof(*inductor->kernels));
	inductor->kernels[inductor->n++] = kernel;
}

/* ---- a file ---------------------------------------------------------------------------------- */

/*
 * Find "NAME = async_compile.triton(" or "NAME.run(": what the line defines or launches. Returns
 * the length of the name, 0: none.
 */
static size_t find_kernel(const char *line, size_t n, const char **name)
{
	size_t from = strspn(line, " \t"), n_name = 0;

	while (from + n_name < n && is_name(line[from + n_name]))
		n_name++;
	*name = line + from;
	line += from + n_name;
	if (!n_name ||
	    (strncmp(line, ".run(", 5) != 0 && strncmp(line, " = async_compile.triton(", 24) != 0))
		return 0;
	return n_name;
}

void torsh_inductor_parse(struct inductor *inductor, const char *text)
{
	struct list list = {0};

	while (*text) {
		size_t n = strcspn(text, "\n"), n_name;
		const char *said = *text ? memmem(text, n, comment, sizeof(comment) - 1) : NULL,
			   *name;

		if (said) {
			list.line = text;
			list.text = said + sizeof(comment) - 1;
			list.n = strcspn(list.text, "]\n");
		} else if (list.n && (n_name = find_kernel(text, n, &name))) {
			add_kernel(inductor, name, n_name, &list, text);
			list.n = 0;
		}
		text += n + (text[n] == '\n');
	}
}

static void read_file(struct inductor *inductor, const char *path, size_t n_bytes)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char *text = torsh_need(malloc(n_bytes + 1));
	ssize_t n = file < 0 ? -1 : read(file, text, n_bytes);

	if (n > 0) {
		text[n] = '\0';
		torsh_inductor_parse(inductor, text);
		inductor->n_files++;
	}
	free(text);
	if (file >= 0)
		close(file);
}

static bool is_code(const FTSENT *entry)
{
	return entry->fts_info == FTS_F && entry->fts_namelen > 3 &&
	       strcmp(entry->fts_name + entry->fts_namelen - 3, ".py") == 0 &&
	       entry->fts_statp->st_size > 0 && entry->fts_statp->st_size <= FILE_BYTES_MAX;
}

void torsh_inductor_read(struct inductor *inductor, const char *folder)
{
	char *folders[] = {(char *)folder, NULL};
	FTS *walk = fts_open(folders, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	FTSENT *entry;
	size_t n = 0;

	while (walk && inductor->n_files < FILES_MAX && n++ < ENTRIES_MAX &&
	       (entry = fts_read(walk))) {
		if (is_code(entry))
			read_file(inductor, entry->fts_path, (size_t)entry->fts_statp->st_size);
	}
	if (walk)
		fts_close(walk);
	torsh_inductor_sort(inductor);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int compare_kernels(const void *a, const void *b)
{
	return strcmp(((const struct inductor_kernel *)a)->name,
		      ((const struct inductor_kernel *)b)->name);
}

static void free_kernel(struct inductor_kernel *kernel)
{
	free_operators(kernel);
	for (size_t i = 0; i < kernel->n_comments; i++)
		free(kernel->comments[i]);
	free(kernel->comments);
	free(kernel->name);
}

/* Merge the second kernel of one name into the first, and free it. */
static void merge_kernel(struct inductor_kernel *into, struct inductor_kernel *kernel)
{
	into->is_ambiguous |= kernel->is_ambiguous || !are_equal(into, kernel);
	for (size_t i = 0; i < kernel->n_comments; i++)
		into->is_ambiguous |= !add_comment(into, kernel->comments[i]);
	kernel->n_comments = 0;
	free_kernel(kernel);
}

void torsh_inductor_sort(struct inductor *inductor)
{
	size_t n = 0;

	if (inductor->n)
		qsort(inductor->kernels, inductor->n, sizeof(*inductor->kernels), compare_kernels);
	for (size_t i = 0; i < inductor->n; i++) {
		struct inductor_kernel *kernel = &inductor->kernels[i],
				       *before = n ? &inductor->kernels[n - 1] : NULL;

		if (before && strcmp(before->name, kernel->name) == 0) {
			merge_kernel(before, kernel);
		} else {
			inductor->kernels[n++] = *kernel;
		}
	}
	inductor->n = n;
}

const struct inductor_kernel *torsh_inductor_find(const struct inductor *inductor, const char *name)
{
	const struct inductor_kernel key = {.name = (char *)name}, *found = NULL;

	if (inductor && inductor->n && name)
		found = bsearch(&key, inductor->kernels, inductor->n, sizeof(*inductor->kernels),
				compare_kernels);
	return found && !found->is_ambiguous ? found : NULL;
}

void torsh_inductor_free(struct inductor *inductor)
{
	for (size_t i = 0; i < inductor->n; i++)
		free_kernel(&inductor->kernels[i]);
	free(inductor->kernels);
	*inductor = (struct inductor){0};
}
