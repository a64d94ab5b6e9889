/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Matches the stacks or lines of two runs. First those with the same functions and files: by the
 * line offset that fits most of them, then the rest in order. Then those that differ in one
 * function's name only, if the old name has vanished and the new one has appeared. Then those with
 * the same functions in other files.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/compare/compare.h"

#define SHIFTS_MAX 64u /* offsets tried per group; with more, lines are not moved */
#define ALIKE_PERCENT 25u /* amounts that differ by less suggest the same place */

struct matcher {
	struct comparison *comparison;
	struct compare_rows *rows;
	struct compare_row **before, **after; /* not matched yet; NULL: matched */
	size_t n_before, n_after;
	struct hash_map names[N_COMPARE_SIDES]; /* functions of all places of a side */
	struct hash_map files[N_COMPARE_SIDES];
	struct hash_map placed[N_COMPARE_SIDES]; /* functions with their files */
};

/* The rows of one group: a range of before and a range of after. */
struct group {
	struct compare_row **before, **after;
	size_t n_before, n_after;
};

static uint64_t first_amount(const struct comparison *comparison, const struct compare_row *row)
{
	size_t run = row->is_on[COMPARE_BEFORE] ? 0 : comparison->n_runs[COMPARE_BEFORE];

	return row->amounts[0][run];
}

static int line_of(const struct compare_row *row)
{
	return torsh_place_line(&row->places[!row->is_on[COMPARE_BEFORE]]);
}

/* Returns whether the user's line has another number or file. */
static bool is_elsewhere(const struct place *before, const struct place *after)
{
	const struct frame *x = before->user, *y = after->user;

	return torsh_place_line(before) != torsh_place_line(after) ||
	       (x && y && strcmp(torsh_place_file_of(x), torsh_place_file_of(y)) != 0);
}

/* Move the after row's values into the before row; the after row is empty then. */
static void merge(const struct matcher *matcher, struct compare_row **before,
		  struct compare_row **after)
{
	struct compare_row *to = *before, *from = *after;
	size_t n_before = matcher->comparison->n_runs[COMPARE_BEFORE];

	for (size_t i = 0; i < COMPARE_AMOUNTS; i++)
		memcpy(to->amounts[i] + n_before, from->amounts[i] + n_before,
		       matcher->comparison->n_runs[COMPARE_AFTER] * sizeof(uint64_t));
	to->places[COMPARE_AFTER] = from->places[COMPARE_AFTER];
	from->places[COMPARE_AFTER] = (struct place){0};
	to->is_on[COMPARE_AFTER] = true;
	from->is_on[COMPARE_AFTER] = false;
	to->is_moved = is_elsewhere(&to->places[COMPARE_BEFORE], &to->places[COMPARE_AFTER]);
	*before = *after = NULL;
}

/* ---- the same functions, at these lines or others -------------------------------------------- */

static struct compare_row **find_line(const struct group *group, int line)
{
	for (size_t i = 0; i < group->n_after; i++) {
		if (group->after[i] && line_of(group->after[i]) == line)
			return &group->after[i];
	}
	return NULL;
}

static bool are_alike(const struct matcher *matcher, const struct compare_row *before,
		      const struct compare_row *after)
{
	uint64_t x = first_amount(matcher->comparison, before);
	uint64_t y = first_amount(matcher->comparison, after);

	return (x > y ? x - y : y - x) <= (x > y ? x : y) / 100 * ALIKE_PERCENT;
}

/* Score of a line offset: each match counts once, one with similar amounts twice. */
static size_t weigh_shift(const struct matcher *matcher, const struct group *group, int shift)
{
	size_t weight = 0;

	for (size_t i = 0; i < group->n_before; i++) {
		struct compare_row **after = find_line(group, line_of(group->before[i]) + shift);

		if (after)
			weight += are_alike(matcher, group->before[i], *after) ? 2 : 1;
	}
	return weight;
}

static int best_shift(const struct matcher *matcher, const struct group *group)
{
	size_t best = weigh_shift(matcher, group, 0);
	int shift = 0;

	if (group->n_before > SHIFTS_MAX || group->n_after > SHIFTS_MAX)
		return 0;
	for (size_t i = 0; i < group->n_after; i++) {
		int other = line_of(group->after[i]) - line_of(group->before[0]);
		size_t weight = weigh_shift(matcher, group, other);

		if (weight > best) {
			best = weight;
			shift = other;
		}
	}
	return shift;
}

static void match_group(const struct matcher *matcher, const struct group *group)
{
	int shift = best_shift(matcher, group);
	size_t next = 0;

	for (size_t i = 0; i < group->n_before; i++) {
		struct compare_row **after = find_line(group, line_of(group->before[i]) + shift);

		if (after)
			merge(matcher, &group->before[i], after);
	}
	for (size_t i = 0; i < group->n_before; i++) {
		while (next < group->n_after && !group->after[next])
			next++;
		if (group->before[i] && next < group->n_after)
			merge(matcher, &group->before[i], &group->after[next]);
	}
}

static const char *shape_of(const struct compare_row *row)
{
	return row->places[!row->is_on[COMPARE_BEFORE]].shape;
}

static int compare_shapes(const void *a, const void *b)
{
	const struct compare_row *x = *(struct compare_row *const *)a;
	const struct compare_row *y = *(struct compare_row *const *)b;
	int rc = strcmp(shape_of(x), shape_of(y));

	return rc ? rc : (line_of(x) > line_of(y)) - (line_of(x) < line_of(y));
}

static size_t count_alike(struct compare_row *const *rows, size_t n, const char *shape)
{
	size_t i = 0;

	while (i < n && strcmp(shape_of(rows[i]), shape) == 0)
		i++;
	return i;
}

static void match_shapes(struct matcher *matcher)
{
	struct group group = {.before = matcher->before, .after = matcher->after};
	struct compare_row **end_before = matcher->before + matcher->n_before;
	struct compare_row **end_after = matcher->after + matcher->n_after;

	while (group.before < end_before && group.after < end_after) {
		const char *shape = shape_of(*group.before);
		int order = strcmp(shape, shape_of(*group.after));

		group.n_before = order > 0
					 ? 0
					 : count_alike(group.before,
						       (size_t)(end_before - group.before), shape);
		group.n_after =
			order < 0 ? 0
				  : count_alike(group.after, (size_t)(end_after - group.after),
						shape_of(*group.after));
		if (order == 0)
			match_group(matcher, &group);
		group.before += group.n_before;
		group.after += group.n_after;
	}
}

/* ---- renamed functions ----------------------------------------------------------------------- */

static void list_names(struct hash_map *names, const struct place *place)
{
	for (size_t i = 0; i < place->n_frames; i++) {
		if (place->frames[i]->function)
			torsh_hash_map_put_text(names, place->frames[i]->function, 0);
	}
}

static void list_files(struct hash_map *files, const struct place *place)
{
	for (size_t i = 0; i < place->n_frames; i++)
		torsh_hash_map_put_text(files, torsh_place_file_of(place->frames[i]), 0);
}

/* Returns "function\tfile", which the caller frees. */
static char *placed_name(const struct frame *frame)
{
	return torsh_need_text("%s\t%s", frame->function ? frame->function : "",
			       torsh_place_file_of(frame));
}

static void list_placed(struct hash_map *placed, const struct place *place)
{
	for (size_t i = 0; i < place->n_frames; i++) {
		char *name = placed_name(place->frames[i]);

		torsh_hash_map_put_text(placed, name, 0);
		free(name);
	}
}

static bool has_name(const struct hash_map *names, const char *name)
{
	return torsh_hash_map_find(names, name, strlen(name) + 1);
}

/*
 * Returns whether two places differ only in one function's name, which has vanished; then *from
 * and *to are the names. The files are the same.
 */
static bool is_renamed(const struct matcher *matcher, const struct place *before,
		       const struct place *after, const char **from, const char **to)
{
	*from = *to = NULL;
	if (before->n_frames != after->n_frames)
		return false;
	for (size_t i = 0; i < before->n_frames; i++) {
		const char *x = before->frames[i]->function, *y = after->frames[i]->function;

		if (!x != !y)
			return false;
		if (!x || strcmp(x, y) == 0)
			continue;
		if (*from && (strcmp(*from, x) != 0 || strcmp(*to, y) != 0))
			return false;
		*from = x;
		*to = y;
	}
	return *from && !has_name(&matcher->names[COMPARE_AFTER], *from) &&
	       !has_name(&matcher->names[COMPARE_BEFORE], *to);
}

static void match_renamed(struct matcher *matcher, struct compare_row **before)
{
	const struct place *place = &(*before)->places[COMPARE_BEFORE];

	for (size_t i = 0; i < matcher->n_after; i++) {
		struct compare_row *after = matcher->after[i];
		const char *from, *to;

		if (!after ||
		    !is_renamed(matcher, place, &after->places[COMPARE_AFTER], &from, &to) ||
		    !torsh_place_has_same_files(place, &after->places[COMPARE_AFTER]))
			continue;
		(*before)->renamed_from = from;
		(*before)->renamed_to = to;
		merge(matcher, before, &matcher->after[i]);
		return;
	}
}

/* ---- the same functions in other files ------------------------------------------------------- */

static bool is_other_file(const struct frame *before, const struct frame *after)
{
	return strcmp(torsh_place_file_of(before), torsh_place_file_of(after)) != 0;
}

/* "<module>" and "<lambda>" are in every file. */
static bool has_own_name(const struct frame *frame)
{
	return frame->function && *frame->function != '<';
}

/* Returns whether the old file has vanished and the new one has appeared. */
static bool is_file_renamed(const struct matcher *matcher, const struct frame *before,
			    const struct frame *after)
{
	return !has_name(&matcher->files[COMPARE_AFTER], torsh_place_file_of(before)) &&
	       !has_name(&matcher->files[COMPARE_BEFORE], torsh_place_file_of(after));
}

/* Returns true if the old file lacks the function after, and the new one lacked it before. */
static bool is_function_moved(const struct matcher *matcher, const struct frame *before,
			      const struct frame *after)
{
	char *old = placed_name(before), *new = placed_name(after);
	bool is_moved = has_own_name(before) && !has_name(&matcher->placed[COMPARE_AFTER], old) &&
			!has_name(&matcher->placed[COMPARE_BEFORE], new);

	free(old);
	free(new);
	return is_moved;
}

/*
 * Returns whether two places have the same functions, some of them in another file. Between two
 * files that both remain, a function counts as moved if its callers are the same. A line alone
 * shows no callers: of it the old file has to lack the function, and the new one must be without it
 * before.
 */
static bool is_file_moved(const struct matcher *matcher, const struct place *before,
			  const struct place *after)
{
	bool is_moved = false, is_line = before->n_frames == 1;

	if (before->n_frames != after->n_frames || before->operator_name != after->operator_name)
		return false;
	for (size_t i = 0; i < before->n_frames; i++) {
		const struct frame *x = before->frames[i], *y = after->frames[i];

		if (!x->function != !y->function ||
		    (x->function && strcmp(x->function, y->function) != 0))
			return false;
		if (!is_other_file(x, y))
			continue;
		if ((is_line || !has_own_name(x)) && !is_file_renamed(matcher, x, y) &&
		    !is_function_moved(matcher, x, y))
			return false;
		is_moved = true;
	}
	return is_moved;
}

/* Match the place on the same line, else the first one. */
static void match_moved(struct matcher *matcher, struct compare_row **before)
{
	const struct place *place = &(*before)->places[COMPARE_BEFORE];
	struct compare_row **best = NULL;

	for (size_t i = 0; i < matcher->n_after; i++) {
		struct compare_row **after = &matcher->after[i];

		if (!*after || !is_file_moved(matcher, place, &(*after)->places[COMPARE_AFTER]))
			continue;
		if (!best || line_of(*after) == torsh_place_line(place))
			best = after;
		if (line_of(*best) == torsh_place_line(place))
			break;
	}
	if (best)
		merge(matcher, before, best);
}

/* ---- a table --------------------------------------------------------------------------------- */

static void begin(struct matcher *matcher)
{
	struct compare_rows *rows = matcher->rows;

	matcher->before = torsh_need_items(NULL, 0, rows->n, sizeof(struct compare_row *));
	matcher->after = torsh_need_items(NULL, 0, rows->n, sizeof(struct compare_row *));
	for (size_t i = 0; i < rows->n; i++) {
		struct compare_row *row = &rows->items[i];
		enum compare_side side = !row->is_on[COMPARE_BEFORE];

		if (row->name)
			continue;
		list_names(&matcher->names[side], &row->places[side]);
		list_files(&matcher->files[side], &row->places[side]);
		list_placed(&matcher->placed[side], &row->places[side]);
		if (side == COMPARE_BEFORE)
			matcher->before[matcher->n_before++] = row;
		else
			matcher->after[matcher->n_after++] = row;
	}
	if (matcher->n_before)
		qsort(matcher->before, matcher->n_before, sizeof(*matcher->before), compare_shapes);
	if (matcher->n_after)
		qsort(matcher->after, matcher->n_after, sizeof(*matcher->after), compare_shapes);
}

static void drop_empty(struct compare_rows *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++) {
		struct compare_row *row = &rows->items[i];

		if (row->is_on[COMPARE_BEFORE] || row->is_on[COMPARE_AFTER])
			rows->items[n++] = *row;
		else
			for (size_t k = 0; k < COMPARE_AMOUNTS; k++)
				free(row->amounts[k]);
	}
	rows->n = n;
}

void torsh_compare_match(struct comparison *comparison, enum compare_table table)
{
	struct matcher matcher = {.comparison = comparison, .rows = &comparison->tables[table]};

	begin(&matcher);
	match_shapes(&matcher);
	for (size_t i = 0; i < matcher.n_before; i++) {
		if (matcher.before[i])
			match_renamed(&matcher, &matcher.before[i]);
	}
	for (size_t i = 0; i < matcher.n_before; i++) {
		if (matcher.before[i])
			match_moved(&matcher, &matcher.before[i]);
	}
	drop_empty(matcher.rows);
	free(matcher.before);
	free(matcher.after);
	for (size_t side = 0; side < N_COMPARE_SIDES; side++) {
		torsh_hash_map_free(&matcher.names[side]);
		torsh_hash_map_free(&matcher.files[side]);
		torsh_hash_map_free(&matcher.placed[side]);
	}
}
