/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/rss/resident.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/frames/blamed_line.h"
#include "tools/frames/short_name.h"
#include "tools/memory/arena.h"
#include "tools/symbols/stack_view.h"

const char *torsh_resident_kind(uint32_t kind)
{
	switch (kind) {
#define KIND(number, name, text) \
	case number:             \
		return name;
#include "tools/memory/rss/resident_kinds.def"
#undef KIND
	default:
		return "unknown";
	}
}

const char *torsh_resident_text(uint32_t kind)
{
	switch (kind) {
#define KIND(number, name, text) \
	case number:             \
		return text;
#include "tools/memory/rss/resident_kinds.def"
#undef KIND
	default:
		return "unknown";
	}
}

/* ---- accounts -------------------------------------------------------------------------------- */

const struct recorded_account *torsh_resident_account(const struct recorded_process *process,
						      enum resident_moment moment)
{
	const struct recorded_account *last = &process->accounts[ACCOUNT_AT_LAST];
	const struct recorded_account *former = &process->accounts[ACCOUNT_AT_FORMER];

	if (moment == RESIDENT_AT_PEAK && former->is_there && former->rss_bytes > last->rss_bytes)
		return former;
	return last->is_there ? last : NULL;
}

const struct recorded_process *torsh_resident_largest(struct recorded_process *const *processes,
						      size_t n, enum resident_moment moment)
{
	const struct recorded_process *largest = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++) {
		const struct recorded_account *account =
			torsh_resident_account(processes[i], moment);

		if (account && (!largest || account->rss_bytes > most)) {
			largest = processes[i];
			most = account->rss_bytes;
		}
	}
	return largest;
}

const struct recorded_account *torsh_resident_tree(struct recorded_process *const *processes,
						   size_t n)
{
	const struct recorded_account *most = NULL;

	for (size_t i = 0; i < n * N_RECORDED_ACCOUNTS; i++) {
		const struct recorded_account *account =
			&processes[i / N_RECORDED_ACCOUNTS]->accounts[i % N_RECORDED_ACCOUNTS];

		if (account->is_there && account->n_tree > 1 &&
		    (!most || account->tree_pss_bytes > most->tree_pss_bytes))
			most = account;
	}
	return most;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The line that a stack is attributed to: "load, train.py:20". */
static char *line_of(const struct recorded_process *process, uint32_t stack,
		     struct symbols *symbols)
{
	size_t n;
	const struct frame **frames =
		torsh_stack_frames(process, stack, symbols, STACK_VIEW_MERGED, &n);
	struct blamed_line blamed = torsh_blamed_line((const struct frame *const *)frames, n,
						      torsh_working_directory());
	char *name = NULL;

	if (blamed.where != FRAME_NONE) {
		char *function = torsh_short_frame(frames[blamed.where]);
		char *place = torsh_short_place(frames[blamed.where], torsh_working_directory());

		name = torsh_need_text("%s, %s", function, place);
		free(function);
		free(place);
	}
	free(frames);
	return name ? name : torsh_need_text("no stack was recorded");
}

static char *copy_of(const char *name)
{
	return name ? torsh_need_text("%s", name) : NULL;
}

static char *name_of(const struct recorded_process *process, const struct recorded_owner *owner,
		     struct symbols *symbols)
{
	char *line, *name;

	if (!owner->stack && !owner->name && owner->kind == RESIDENT_OVERHEAD)
		return copy_of("blocks with pages of their own");
	if (!owner->stack)
		return copy_of(owner->name);
	line = line_of(process, owner->stack, symbols);
	if (owner->name)
		name = torsh_need_text("%s, mapped by %s", owner->name, line);
	else if (owner->kind == RESIDENT_COW && torsh_arena_is(symbols, process, owner->stack))
		name = torsh_need_text("CPython's small objects, arenas of %s", line);
	else
		return line;
	free(line);
	return name;
}

/* ---- the list -------------------------------------------------------------------------------- */

static struct resident_owner *find(struct resident *resident, uint32_t kind, const char *name)
{
	for (size_t i = resident->n_owners; i-- > 0;) {
		struct resident_owner *owner = &resident->owners[i];

		if (owner->kind == kind &&
		    (name && owner->name ? !strcmp(owner->name, name) : name == owner->name))
			return owner;
	}
	return NULL;
}

/* Add to the owner of that name, which becomes the list's; owners come with the largest first. */
static void add(struct resident *resident, uint32_t kind, char *name,
		const struct recorded_owner *from)
{
	struct resident_owner *owner = find(resident, kind, name);

	if (owner) {
		free(name);
	} else {
		owner = &resident->owners[resident->n_owners++];
		*owner = (struct resident_owner){
			.kind = kind, .name = name, .stack = name ? from->stack : 0};
	}
	owner->n++;
	owner->bytes += from->bytes;
	owner->pss_bytes += from->pss_bytes;
	resident->kind_bytes[kind] += from->bytes;
}

static uint64_t bytes_of_kind(const struct resident *resident, uint32_t kind)
{
	return resident->kind_bytes[kind];
}

static const struct resident *sorted; /* qsort passes nothing else */

static int compare_owners(const void *a, const void *b)
{
	const struct resident_owner *x = a, *y = b;
	uint64_t x_kind = bytes_of_kind(sorted, x->kind), y_kind = bytes_of_kind(sorted, y->kind);

	if (x_kind != y_kind)
		return x_kind > y_kind ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (!x->name != !y->name)
		return x->name ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->name ? strcmp(x->name, y->name) : 0;
}

static uint32_t kind_of(const struct recorded_process *process, const struct recorded_owner *owner,
			struct symbols *symbols)
{
	return owner->kind == RESIDENT_MAPPED && owner->stack &&
			       torsh_arena_is(symbols, process, owner->stack)
		       ? RESIDENT_CPYTHON
		       : owner->kind;
}

/* Put the largest first, of each kind the one without a name last. */
static void sort(struct resident *resident)
{
	sorted = resident;
	if (resident->n_owners)
		qsort(resident->owners, resident->n_owners, sizeof(*resident->owners),
		      compare_owners);
}

/* Join the owners of a kind that follow its first n_most. */
static void join_rest(struct resident *resident, size_t n_most)
{
	size_t n = 0, n_of_kind = 0;

	for (size_t i = 0; i < resident->n_owners; i++) {
		struct resident_owner owner = resident->owners[i];
		struct resident_owner *last = n ? &resident->owners[n - 1] : NULL;

		n_of_kind = last && last->kind == owner.kind ? n_of_kind : 0;
		if (n_of_kind++ >= n_most) {
			free(owner.name);
			owner.name = NULL;
			owner.stack = 0;
		}
		if (owner.name || !last || last->kind != owner.kind || last->name) {
			resident->owners[n++] = owner;
			continue;
		}
		last->n += owner.n;
		last->bytes += owner.bytes;
		last->pss_bytes += owner.pss_bytes;
	}
	resident->n_owners = n;
}

void torsh_resident_make(struct resident *resident, const struct recorded_process *process,
			 enum resident_moment moment, struct symbols *symbols,
			 struct resident_limits limits)
{
	const struct recorded_account *account =
		process ? torsh_resident_account(process, moment) : NULL;
	size_t n_of[N_RESIDENT_WHAT] = {0};

	*resident = (struct resident){.process = process, .account = account};
	if (!account)
		return;
	resident->owners = torsh_need_items(NULL, 0, account->n_owners, sizeof(*resident->owners));
	for (size_t i = 0; i < account->n_owners; i++) {
		const struct recorded_owner *owner = &account->owners[i];

		uint32_t kind = kind_of(process, owner, symbols);
		bool is_named = !owner->stack || n_of[kind]++ < limits.n_named;

		add(resident, kind, is_named ? name_of(process, owner, symbols) : NULL, owner);
	}
	sort(resident);
	join_rest(resident, limits.n_most);
}

void torsh_resident_free(struct resident *resident)
{
	for (size_t i = 0; i < resident->n_owners; i++)
		free(resident->owners[i].name);
	free(resident->owners);
	*resident = (struct resident){0};
}
