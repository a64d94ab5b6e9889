/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/validate/results.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/regular.h"

#define TEXT_BYTES_MAX (256u << 20)
#define NUMBER_BYTES_MAX 64

const char *const torsh_results_verdict_names[] = {
	[RESULTS_EQUAL] = "equal",
	[RESULTS_DIFFERENT] = "different",
	[RESULTS_NOT_KNOWN] = "not known",
};

/* ---- what runs recorded ---------------------------------------------------------------------- */

static bool is_wanted(const struct results *results, const struct region *region)
{
	if (region->kind < REGION_SCALAR || !region->name)
		return false;
	for (size_t i = 0; i < results->n_names; i++) {
		if (strcmp(results->names[i], region->name) == 0)
			return true;
	}
	return !results->n_names;
}

static struct result_row *row_of(struct results *results, const struct region *region)
{
	const char *domain = region->domain ? region->domain : "";
	char *name = torsh_need_text("%s%s%s", domain, *domain ? "/" : "", region->name);

	for (size_t i = 0; i < results->n; i++) {
		if (strcmp(results->rows[i].name, name) == 0) {
			free(name);
			return &results->rows[i];
		}
	}
	if (results->n == RESULTS_ROWS_MAX) {
		free(name);
		return NULL;
	}
	results->rows = torsh_array_reserve(results->rows, results->n, &results->n_room,
					    sizeof(*results->rows));
	results->rows[results->n] = (struct result_row){.name = name};
	return &results->rows[results->n++];
}

static void add_region(struct result_side *side, const struct region *region)
{
	const double numbers[RESULT_NUMBERS] = {region->first, region->last, region->min,
						region->max, region->sum / (double)region->n};
	bool is_first = !side->n_runs++;

	if (is_first)
		side->last = region->last;
	if (is_first || region->n < side->n_least)
		side->n_least = region->n;
	if (is_first || region->n > side->n_most)
		side->n_most = region->n;
	for (size_t i = 0; i < RESULT_NUMBERS; i++) {
		side->least[i] = is_first ? numbers[i] : fmin(side->least[i], numbers[i]);
		side->most[i] = is_first ? numbers[i] : fmax(side->most[i], numbers[i]);
	}
}

static void add_status(struct results *results, const struct recorded_process *process,
		       bool is_after)
{
	bool *has = is_after ? &results->has_status_after : &results->has_status_before;
	int *status = is_after ? &results->status_after : &results->status_before;

	if (!process->has_end_code)
		return;
	results->status_varies = results->status_varies || (*has && *status != process->end_code);
	*has = true;
	*status = process->end_code;
}

void torsh_results_add(struct results *results, const struct recording *recording,
		       const struct prepass *prepass, const struct recorded_process *main,
		       bool is_after)
{
	struct regions regions = {0};

	*(is_after ? &results->n_runs_after : &results->n_runs_before) += 1;
	add_status(results, main, is_after);
	if (torsh_regions_find(&regions, recording, prepass))
		torsh_die("%s can't be read", recording->path);
	for (size_t i = 0; i < regions.n; i++) {
		struct result_row *row = is_wanted(results, &regions.items[i])
						 ? row_of(results, &regions.items[i])
						 : NULL;

		if (row)
			add_region(is_after ? &row->after : &row->before, &regions.items[i]);
	}
	torsh_regions_free(&regions);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static double relative(double distance, double a, double b)
{
	double size = fmax(fabs(a), fabs(b));

	return size > 0 ? distance / size : 0;
}

/* How far values lie outside of the range before, relative to their size; NAN: they are none. */
static double outside(const struct result_side *before, const struct result_side *after, size_t i)
{
	double below = before->least[i] - after->least[i], above = after->most[i] - before->most[i];

	if (isnan(before->least[i]) && isnan(after->least[i]))
		return 0;
	if (before->least[i] == after->least[i] && before->most[i] == after->most[i])
		return 0; /* also if they are infinite */
	return relative(fmax(fmax(below, above), 0), before->most[i], after->most[i]);
}

static void judge_row(const struct results *results, struct result_row *row)
{
	const struct result_side *before = &row->before, *after = &row->after;

	row->difference = 0;
	row->verdict = RESULTS_NOT_KNOWN;
	if (before->n_runs < results->n_runs_before || after->n_runs < results->n_runs_after) {
		row->difference = NAN;
		return;
	}
	for (size_t i = 0; i < RESULT_NUMBERS; i++) {
		double difference = outside(before, after, i);

		if (!(difference <= row->difference))
			row->difference = difference;
		if (isnan(row->difference))
			break;
	}
	row->verdict = row->difference <= results->tolerance && after->n_least >= before->n_least &&
				       after->n_most <= before->n_most
			       ? RESULTS_EQUAL
			       : RESULTS_DIFFERENT;
}

/* Returns the number that begins there, and its end; NULL: none does. */
static const char *pass_number(const char *text, const char *at, double *value)
{
	const char *digits = at + (*at == '-' || *at == '+');
	char copy[NUMBER_BYTES_MAX + 1];
	char *end;
	size_t n;

	if (at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))
		return NULL;
	digits += *digits == '.';
	if (!isdigit((unsigned char)*digits))
		return NULL;
	n = strspn(at, "+-.0123456789eE");
	n = n < NUMBER_BYTES_MAX ? n : NUMBER_BYTES_MAX;
	memcpy(copy, at, n);
	copy[n] = '\0';
	*value = strtod(copy, &end);
	return end == copy ? NULL : at + (end - copy);
}

static const char *pass_spaces(const char *at)
{
	while (isspace((unsigned char)*at))
		at++;
	return at;
}

void torsh_results_compare(struct result_text *result, const char *before, const char *after,
			   double tolerance)
{
	const char *a = pass_spaces(before), *b = pass_spaces(after), *line = before;
	uint64_t n_line = 1;

	result->n_numbers = 0;
	result->difference = 0;
	result->line = 0;
	while (*a || *b) {
		double x, y, difference;
		const char *a_end = pass_number(before, a, &x), *b_end = pass_number(after, b, &y);
		bool is_equal = *a == *b;

		for (; line < a; line++)
			n_line += *line == '\n';
		if (a_end && b_end) {
			difference = relative(fabs(x - y), x, y);
			result->n_numbers++;
			result->difference = fmax(result->difference, difference);
			is_equal = difference <= tolerance;
		}
		if (!is_equal && !result->line)
			result->line = n_line;
		if (!is_equal && !(a_end && b_end))
			return;
		/* A blank has to meet a blank, of whatever length. */
		a = a_end && b_end ? a_end : isspace((unsigned char)*a) ? pass_spaces(a) : a + 1;
		b = a_end && b_end ? b_end : isspace((unsigned char)*b) ? pass_spaces(b) : b + 1;
		if (!*pass_spaces(a) && !*pass_spaces(b))
			return;
	}
}

static char *read_text(const char *path)
{
	int fd = torsh_open_regular(path);
	FILE *file = fd < 0 ? NULL : torsh_need(fdopen(fd, "r"));
	char *text = NULL;
	size_t room = 0;
	ssize_t n;

	if (!file)
		torsh_die("%s can't be read: %s", path, strerror(-fd));
	errno = 0;
	n = getdelim(&text, &room, '\0', file);
	if (n < 0 && errno)
		torsh_die("%s can't be read: %s", path, strerror(errno));
	if (n > (ssize_t)TEXT_BYTES_MAX || (n > 0 && !text[n - 1]))
		torsh_die("%s is no text", path);
	fclose(file);
	if (n < 0)
		*(text = torsh_need(realloc(text, 1))) = '\0';
	return text;
}

static void compare_texts(struct results *results)
{
	char *before = read_text(results->text.before), *after = read_text(results->text.after);

	torsh_results_compare(&results->text, before, after, results->tolerance);
	free(before);
	free(after);
}

static void differ(struct results *results, const char *reason)
{
	if (results->verdict == RESULTS_DIFFERENT)
		return;
	results->verdict = RESULTS_DIFFERENT;
	results->reason = reason;
}

void torsh_results_judge(struct results *results)
{
	bool is_compared = results->text.before;

	results->verdict = RESULTS_EQUAL;
	if (is_compared)
		compare_texts(results);
	if (is_compared && results->text.line)
		differ(results, "what the program printed differs");
	for (size_t i = 0; i < results->n; i++) {
		judge_row(results, &results->rows[i]);
		is_compared = is_compared || results->rows[i].verdict != RESULTS_NOT_KNOWN;
		if (results->rows[i].verdict == RESULTS_DIFFERENT)
			differ(results, "a value that the program recorded differs");
	}
	if (results->has_status_before && results->has_status_after && !results->status_varies &&
	    results->status_before != results->status_after)
		differ(results, "the program's exit status differs");
	if (results->verdict == RESULTS_DIFFERENT || is_compared)
		return;
	results->verdict = RESULTS_NOT_KNOWN;
	results->reason = results->n
				  ? "no value was recorded in all runs"
				  : "the program recorded no values (torsh.scalar, torsh.h), and "
				    "no files of what it printed were given (--printed-before, "
				    "--printed-after)";
}

void torsh_results_free(struct results *results)
{
	for (size_t i = 0; i < results->n; i++)
		free(results->rows[i].name);
	free(results->rows);
	free(results->names);
}
