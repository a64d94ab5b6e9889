/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/screen/screen_leaks.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/frames/blamed_line.h"
#include "tools/frames/short_name.h"
#include "tools/memory/leaks/block_classes.h"
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

/* What is lost, or what is kept, of one line of the program. */
struct leaked_line {
	const struct allocation_site *site; /* the largest of them */
	size_t n_sites;
	char *where;
	uint64_t bytes;
};

static uint64_t bytes_of(const struct allocation_site *site, bool is_kept)
{
	uint64_t kept = torsh_block_classes_kept(&site->classes).bytes;

	return is_kept ? kept : site->bytes - kept;
}

/* Fill the lines of the named leaks, the largest first. Returns their number. */
static size_t find_lines(struct leaked_line *lines, const struct allocation_site *items, size_t n,
			 bool is_kept)
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
		lines[k].n_sites++;
		lines[k].bytes += bytes_of(&items[i], is_kept);
	}
	return n_lines;
}

static void free_lines(struct leaked_line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(lines[i].where);
	free(lines);
}

static void print_line(const struct counted_sites *lost, const struct leaked_line *line,
		       bool is_first, bool is_all)
{
	char bytes[SIZE_TEXT_BYTES], all[SIZE_TEXT_BYTES], blocks[64], grows[2 * SIZE_TEXT_BYTES];

	torsh_size_human(line->bytes, bytes);
	*grows = '\0';
	/* Growth is known per stack only: not for a line of several stacks. */
	if (line->n_sites == 1)
		growth_text(line->site, grows, sizeof(grows));
	if (is_all)
		torsh_screen_line(STYLE_BAD, 2, "1 leak: %s at %s%s", bytes, line->where, grows);
	else if (is_first)
		torsh_screen_line(STYLE_BAD, 2, "%s leaked in %s: %s at %s%s",
				  torsh_size_human(lost->bytes, all),
				  torsh_text_blocks(lost->blocks, blocks), bytes, line->where,
				  grows);
	else
		torsh_screen_line(STYLE_BAD, 1, "  and %s at %s%s", bytes, line->where, grows);
	print_callers(line->site);
}

static bool is_kept_only(const struct allocation_site *site)
{
	return torsh_block_class_is_kept(torsh_block_class_of(site));
}

/* Print what is lost, which comes first of the named leaks. */
static void print_lost(const struct leaks *leaks, size_t n_named, const struct counted_sites *lost)
{
	const struct allocation_site *items = leaks->found.items;
	struct leaked_line *lines;
	size_t n_lost = 0, n;

	while (n_lost < n_named && (lost->blocks == leaks->blocks || !is_kept_only(&items[n_lost])))
		n_lost++;
	lines = torsh_need_items(NULL, 0, n_lost + 1, sizeof(*lines));
	n = find_lines(lines, items, n_lost, false);
	for (size_t i = 0; i < n && i < LEAKS_SHOWN; i++)
		print_line(lost, &lines[i], i == 0,
			   n == 1 && (n_lost < n_named || n_named == leaks->found.n));
	free_lines(lines, n);
}

/* Print what is kept to the end. with_line: and the line of the program that keeps most. */
static void print_kept(const struct leaks *leaks, size_t n_named, const struct counted_sites *kept,
		       bool with_line)
{
	struct leaked_line *lines = torsh_need_items(NULL, 0, n_named + 1, sizeof(*lines));
	size_t n = with_line ? find_lines(lines, leaks->found.items, n_named, true) : 0;
	char bytes[SIZE_TEXT_BYTES], most[SIZE_TEXT_BYTES], blocks[64];

	torsh_size_human(kept->bytes, bytes);
	torsh_text_blocks(kept->blocks, blocks);
	if (n)
		torsh_screen_line(STYLE_PLAIN, 1,
				  "%s in %s kept to the end, not lost: %s at %s (torsh leaks)",
				  bytes, blocks, torsh_size_human(lines->bytes, most),
				  lines->where);
	else
		torsh_screen_line(STYLE_PLAIN, 1,
				  "%s in %s kept to the end, not lost (torsh leaks --kept)", bytes,
				  blocks);
	free_lines(lines, n);
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
	const struct counted_sites kept = torsh_leaks_kept(leaks);
	const struct counted_sites lost = {.blocks = leaks->blocks - kept.blocks,
					   .bytes = leaks->bytes - kept.bytes};

	if (lost.blocks)
		print_lost(leaks, overview->n_leaks, &lost);
	else if (!torsh_recording_has_heaps(overview->processes, overview->n_processes))
		torsh_screen_line(STYLE_WARNING, 2, "Nothing is known about the heap");
	else if (growth && growth->found.n)
		print_growth(growth, growth->found.items->frames != NULL);
	else if (!torsh_losses_heap_is_whole(overview->recording, overview->processes,
					     overview->n_processes))
		torsh_screen_line(STYLE_WARNING, 1, "No leaks among what was recorded");
	else
		torsh_screen_line(STYLE_GOOD, 1, "No leaks");
	if (kept.blocks)
		print_kept(leaks, overview->n_leaks, &kept, !lost.blocks);
}
