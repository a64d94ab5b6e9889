/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/screen/screen_leaks.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/frames/blamed_line.h"
#include "tools/frames/short_name.h"
#include "tools/recording/losses.h"
#include "tools/report/screen/screen_line.h"
#include "tools/report/sites/site_rows.h"
#include "tools/report/text.h"
#include "tools/terminal/width.h"

#define LEAKS_SHOWN 3u
#define CALLERS_SHOWN 5u

char *torsh_screen_blamed(const struct allocation_site *site)
{
	const char *directory = torsh_working_directory();
	struct blamed_line blamed = torsh_blamed_line(site->frames, site->n_frames, directory);

	if (!site->frames || blamed.innermost == FRAME_NONE)
		return torsh_need_text("an unknown line");
	return torsh_screen_place(torsh_short_place(site->frames[blamed.innermost], directory));
}

/* Returns ", 64.0 KiB a step" if the site grows, else "". The text is in out. */
static const char *growth_text(const struct allocation_site *site, char *out, size_t n_out)
{
	char bytes[SIZE_TEXT_BYTES];
	uint64_t a_step;

	*out = '\0';
	if (torsh_site_grows(site, &a_step))
		snprintf(out, n_out, ", %s a step", torsh_size_human(a_step, bytes));
	return out;
}

/*
 * Print the user's frames that lead there, innermost first: "copy_history < smooth < main
 * train.py:30".
 */
static void print_callers(const struct allocation_site *site)
{
	const char *directory = torsh_working_directory(),
		   *arrow = torsh_width_has_utf8() ? " ‹ " : " < ";
	struct blamed_line blamed = torsh_blamed_line(site->frames, site->n_frames, directory);
	char *callers = NULL;
	size_t n = 0;

	if (!site->frames || !blamed.is_own)
		return;
	for (size_t i = blamed.innermost; i < site->n_frames && n < CALLERS_SHOWN; i++) {
		bool is_line = i == blamed.where && i != blamed.innermost;
		char *name, *place, *longer;

		if (torsh_frame_kind(site->frames[i], directory) != FRAME_OWN)
			continue;
		name = torsh_short_frame(site->frames[i]);
		place = torsh_screen_place(torsh_short_place(site->frames[i], directory));
		longer = torsh_need_text("%s%s%s%s%s", callers ? callers : "", n ? arrow : "", name,
					 is_line ? " " : "", is_line ? place : "");
		free(callers);
		free(name);
		free(place);
		callers = longer;
		n++;
	}
	if (callers)
		torsh_screen_line(STYLE_PLAIN, 1, "  %s", callers);
	free(callers);
}

/* Leaks at one line of the program. */
struct leaked_line {
	const struct allocation_site *site; /* the largest of them */
	char *where;
	uint64_t bytes;
};

/* Fill the lines of the named leaks, the largest first. Returns their number. */
static size_t find_lines(struct leaked_line *lines, const struct allocation_site *items, size_t n)
{
	size_t n_lines = 0;

	for (size_t i = 0; i < n; i++) {
		char *where = torsh_screen_blamed(&items[i]);
		size_t k = 0;

		while (k < n_lines && strcmp(lines[k].where, where) != 0)
			k++;
		if (k == n_lines)
			lines[n_lines++] = (struct leaked_line){.site = &items[i], .where = where};
		else
			free(where);
		lines[k].bytes += items[i].bytes;
	}
	return n_lines;
}

static void print_line(const struct leaks *leaks, const struct leaked_line *line, bool is_first,
		       bool is_all)
{
	char bytes[SIZE_TEXT_BYTES], all[SIZE_TEXT_BYTES], blocks[64], grows[2 * SIZE_TEXT_BYTES];

	torsh_size_human(line->bytes, bytes);
	*grows = '\0';
	/* Growth is known per stack only: not for a line of several stacks. */
	if (line->bytes == line->site->bytes)
		growth_text(line->site, grows, sizeof(grows));
	if (is_all)
		torsh_screen_line(STYLE_BAD, 2, "1 leak: %s at %s%s", bytes, line->where, grows);
	else if (is_first)
		torsh_screen_line(STYLE_BAD, 2, "%s leaked in %s: %s at %s%s",
				  torsh_size_human(leaks->bytes, all),
				  torsh_text_blocks(leaks->blocks, blocks), bytes, line->where,
				  grows);
	else
		torsh_screen_line(STYLE_BAD, 1, "  and %s at %s%s", bytes, line->where, grows);
	print_callers(line->site);
}

static void print_leaks(const struct leaks *leaks, size_t n_named)
{
	struct leaked_line *lines = torsh_need_items(NULL, 0, n_named + 1, sizeof(*lines));
	size_t n = find_lines(lines, leaks->found.items, n_named);

	for (size_t i = 0; i < n && i < LEAKS_SHOWN; i++)
		print_line(leaks, &lines[i], i == 0, n == 1 && n_named == leaks->found.n);
	for (size_t i = 0; i < n; i++)
		free(lines[i].where);
	free(lines);
}

static void print_growth(const struct growth *growth, bool is_named)
{
	const struct allocation_site *site = growth->found.items;
	char *where = is_named ? torsh_screen_blamed(site) : NULL;
	char bytes[SIZE_TEXT_BYTES];

	torsh_screen_line(STYLE_WARNING, 2, "No leaks at the end, but %s a step grew%s%s",
			  torsh_size_human((uint64_t)(torsh_growth_rate(site).bytes + 0.5), bytes),
			  where ? " at " : "", where ? where : "");
	free(where);
}

void torsh_screen_leaks(const struct overview *overview, const struct growth *growth)
{
	const struct leaks *leaks = &overview->leaks;

	if (leaks->blocks)
		print_leaks(leaks, overview->n_leaks);
	else if (!torsh_recording_has_heaps(overview->processes, overview->n_processes))
		torsh_screen_line(STYLE_WARNING, 2, "Nothing is known about the heap");
	else if (growth && growth->found.n)
		print_growth(growth, growth->found.items->frames != NULL);
	else if (!torsh_losses_heap_is_whole(overview->recording, overview->processes,
					     overview->n_processes))
		torsh_screen_line(STYLE_WARNING, 1, "No leaks among what was recorded");
	else
		torsh_screen_line(STYLE_GOOD, 1, "No leaks");
}
