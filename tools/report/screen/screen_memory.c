/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/screen/screen_memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/frames/blamed_line.h"
#include "tools/frames/short_name.h"
#include "tools/memory/leaks/peak_holders.h"
#include "tools/memory/rss/resident.h"
#include "tools/report/screen/screen_line.h"
#include "tools/report/text.h"
#include "tools/terminal/columns.h"

#define LINES_SHOWN 3u
#define SITES_NAMED 100u /* sites with the largest usage, which get a line */

/* ---- curves ---------------------------------------------------------------------------------- */

enum curve { CURVE_HEAP, CURVE_RESIDENT };

/*
 * Fill each column with the maximum in its time; a column without samples repeats the previous
 * one.
 */
static bool fill_curve(double *values, size_t n, const struct recorded_process *process,
		       enum curve curve)
{
	uint64_t start_ns = process->start_ns, end_ns = start_ns + 1;
	double before = 0;
	bool has_values = false;

	for (size_t i = 0; i < process->n_series; i++)
		end_ns = process->series[i].at_ns > end_ns ? process->series[i].at_ns : end_ns;
	for (size_t i = 0; i < n; i++)
		values[i] = -1;
	for (size_t i = 0; i < process->n_series; i++) {
		const struct recorded_sample *sample = &process->series[i];
		uint64_t at_ns = sample->at_ns > start_ns ? sample->at_ns - start_ns : 0;
		size_t column =
			(size_t)((double)at_ns / (double)(end_ns - start_ns) * (double)(n - 1));
		double value =
			(double)(curve == CURVE_HEAP ? sample->heap_bytes : sample->rss_bytes);

		has_values = has_values || value > 0;
		values[column] = value > values[column] ? value : values[column];
	}
	for (size_t i = 0; i < n; i++)
		before = values[i] = values[i] < 0 ? before : values[i];
	return has_values;
}

static void print_curve(const struct recorded_process *process, enum curve curve, const char *label,
			uint64_t most)
{
	size_t n = torsh_screen_curve_columns();
	double *values = torsh_need_items(NULL, 0, n, sizeof(*values));
	char text[SIZE_TEXT_BYTES], *after;

	if (process->n_series > 1 && fill_curve(values, n, process, curve)) {
		after = torsh_need_text("at most %s", torsh_size_human(most, text));
		torsh_screen_curve(label, values, n, after);
		free(after);
	}
	free(values);
}

/* ---- who held the peak ----------------------------------------------------------------------- */

/* The first n_named sites have names and are sorted. */
struct holders {
	struct peak_holders all;
	size_t n_named;
};

/*
 * Name the largest sites, and more as long as some of them turn out to be one: a line may call from
 * hundreds of addresses.
 */
static void name_largest(struct holders *holders, struct symbols *symbols)
{
	struct allocation_sites *sites = &holders->all.sites;
	size_t n_before, n_wanted = SITES_NAMED;

	do {
		n_before = sites->n;
		holders->n_named = sites->n < n_wanted ? sites->n : n_wanted;
		torsh_sites_sort_first(sites, ORDER_BYTES, holders->n_named);
		torsh_sites_name(sites, symbols, holders->n_named);
		n_wanted *= 2;
	} while (sites->n < n_before);
}

static void find_holders(struct holders *holders, const struct overview *overview)
{
	struct allocation_sites *sites = &holders->all.sites;

	*holders = (struct holders){.all.sites.view = overview->peak.view};
	torsh_peak_holders_find(&holders->all, &overview->highest, overview->recording,
				overview->symbols);
	torsh_sites_merge_stacks(sites, overview->symbols);
	torsh_sites_merge_alike(sites, overview->symbols);
	name_largest(holders, overview->symbols);
}

/* The memory held by a line of the program. */
struct held_line {
	char *text;
	uint64_t bytes;
};

static char *line_text(const struct allocation_site *site)
{
	const char *directory = torsh_working_directory();
	struct blamed_line blamed = torsh_blamed_line(site->frames, site->n_frames, directory);
	char *place, *function, *text;

	if (!site->frames || blamed.where == FRAME_NONE)
		return torsh_need_text("(no stack was recorded)");
	place = torsh_screen_place(torsh_short_place(site->frames[blamed.where], directory));
	function = torsh_short_frame(site->frames[blamed.where]);
	text = torsh_need_text("%s %s", place, function);
	free(place);
	free(function);
	return text;
}

static int compare_lines(const void *a, const void *b)
{
	const struct held_line *x = a, *y = b;

	return x->bytes == y->bytes ? strcmp(x->text, y->text) : x->bytes < y->bytes ? 1 : -1;
}

/* Fill the lines of the named sites, each once, most bytes first. Returns their number. */
static size_t find_lines(const struct holders *holders, struct held_line *lines)
{
	size_t n = 0;

	for (size_t i = 0; i < holders->n_named; i++) {
		const struct allocation_site *site = &holders->all.sites.items[i];
		char *text = line_text(site);
		size_t k = 0;

		while (k < n && strcmp(lines[k].text, text) != 0)
			k++;
		if (k == n)
			lines[n++] = (struct held_line){.text = text};
		else
			free(text);
		lines[k].bytes += site->bytes;
	}
	if (n)
		qsort(lines, n, sizeof(*lines), compare_lines);
	return n;
}

static void print_held(uint64_t bytes, uint64_t whole, const char *what)
{
	char text[SIZE_TEXT_BYTES], share[SIZE_TEXT_BYTES];

	torsh_screen_line(STYLE_PLAIN, 1, "%*s%9s %6s  %s", SCREEN_INDENT, "",
			  torsh_size_human(bytes, text),
			  torsh_size_percent((double)bytes, (double)whole, share), what);
}

/* Print "imports: torch 90 MiB, numpy 5 MiB", by package. */
static void print_imports(const struct kept_imports *imports, uint64_t whole)
{
	char *packages = torsh_text_imports(imports);
	char *text = torsh_need_text("imports of packages: %s", packages);

	print_held(imports->bytes, whole, text);
	free(text);
	free(packages);
}

static void print_holders(const struct overview *overview)
{
	uint64_t whole = overview->highest.bytes;
	struct holders holders;
	struct held_line *lines;
	bool shows_imports;
	size_t n;

	find_holders(&holders, overview);
	lines = torsh_need_items(NULL, 0, holders.n_named + 1, sizeof(*lines));
	n = find_lines(&holders, lines);
	shows_imports = holders.all.imports.bytes != 0;
	for (size_t i = 0; i < n && i < LINES_SHOWN; i++) {
		if (shows_imports && holders.all.imports.bytes > lines[i].bytes) {
			print_imports(&holders.all.imports, whole);
			shows_imports = false;
		}
		print_held(lines[i].bytes, whole, lines[i].text);
	}
	if (shows_imports)
		print_imports(&holders.all.imports, whole);
	for (size_t i = 0; i < n; i++)
		free(lines[i].text);
	free(lines);
	torsh_peak_holders_free(&holders.all);
}

/* ---- the section ----------------------------------------------------------------------------- */

/* Returns what CPython's arenas had when most memory was mapped. */
static uint64_t arena_bytes(const struct overview *overview, const struct recorded_process *process)
{
	struct allocation_sites mapped = {.view = overview->peak.view};
	uint64_t bytes = 0;

	torsh_sites_collect(&mapped, process, SITES_MAPPED);
	torsh_sites_mark_arenas(&mapped, overview->symbols);
	for (size_t i = 0; i < mapped.n; i++)
		bytes += mapped.items[i].is_arena ? mapped.items[i].bytes : 0;
	torsh_sites_free(&mapped);
	return bytes;
}

#define KINDS_SHOWN 4u

/* Returns the kind with most bytes that is not taken yet; 0: there is none. */
static uint32_t largest_kind(const uint64_t *bytes)
{
	uint32_t largest = 0;

	for (uint32_t kind = 1; kind < N_RESIDENT_WHAT; kind++) {
		if (bytes[kind] > bytes[largest])
			largest = kind;
	}
	return largest;
}

/* Print what the resident set was. Returns false if that is not known. */
static bool print_owners(const struct overview *overview, const struct recorded_process *main)
{
	struct resident resident;
	char bytes[SIZE_TEXT_BYTES], *text = NULL;
	uint32_t kind;

	torsh_resident_make(&resident, main, RESIDENT_AT_PEAK, overview->symbols,
			    (struct resident_limits){0});
	if (!resident.account)
		return false;
	for (size_t i = 0; i < KINDS_SHOWN && (kind = largest_kind(resident.kind_bytes)); i++) {
		text = torsh_screen_append(text, "%s %s", torsh_resident_kind(kind),
					   torsh_size_human(resident.kind_bytes[kind], bytes));
		resident.kind_bytes[kind] = 0;
	}
	torsh_screen_line(STYLE_DIM, 2, "%*s%s were resident: %s  (torsh rss)", SCREEN_INDENT, "",
			  torsh_size_human(resident.account->rss_bytes, bytes), text ? text : "");
	free(text);
	torsh_resident_free(&resident);
	return true;
}

/* Print why the resident set is larger than the heap. */
static void print_difference(const struct overview *overview, const struct recorded_process *main)
{
	char text[SIZE_TEXT_BYTES], *arenas = NULL;
	uint64_t bytes;

	if (!main->has_rss_peak || !torsh_recording_has_heap(main))
		return;
	if (print_owners(overview, main))
		return;
	bytes = arena_bytes(overview, main);
	if (bytes)
		arenas = torsh_need_text(", CPython's arenas (%s)", torsh_size_human(bytes, text));
	torsh_screen_line(STYLE_DIM, 2,
			  "%*sresident besides the heap: code, stacks, what allocators keep%s",
			  SCREEN_INDENT, "", arenas ? arenas : "");
	free(arenas);
}

static void print_heading(const struct overview *overview, const struct recorded_process *main)
{
	const struct peak *peak = &overview->highest;
	uint64_t start_ns = peak->process ? peak->process->start_ns : 0;
	char bytes[SIZE_TEXT_BYTES], at[SIZE_TEXT_BYTES], *text = NULL;

	if (peak->is_known && !peak->bytes)
		text = torsh_screen_append(text, "no block of the heap was recorded");
	else if (peak->is_known)
		text = torsh_screen_append(
			text, "heap peak%s %s at %s",
			peak->process ? "" : " of all processes together",
			torsh_size_human(peak->bytes, bytes),
			torsh_size_duration(peak->at_ns > start_ns ? peak->at_ns - start_ns : 0,
					    at));
	if (main->has_rss_peak)
		text = torsh_screen_append(text, "highest resident set %s",
					   torsh_size_human(main->rss_peak_bytes, bytes));
	if (overview->n_processes > 1 && text)
		text = torsh_screen_append(text, "of pid %" PRIu32, main->pid);
	torsh_screen_section("MEMORY", "%s", text ? text : "nothing is known about the heap");
	free(text);
}

/* Print what was alive at an exec, which is no leak. */
static void print_at_exec(const struct leaks *leaks)
{
	char bytes[SIZE_TEXT_BYTES], blocks[64];

	if (leaks->exec_blocks)
		torsh_screen_line(
			STYLE_DIM, 2,
			"%*sno leaks: %s in %s, alive when a process became another program",
			SCREEN_INDENT, "", torsh_size_human(leaks->exec_bytes, bytes),
			torsh_text_blocks(leaks->exec_blocks, blocks));
}

void torsh_screen_memory(const struct overview *overview, const struct recorded_process *main)
{
	const struct peak *peak = &overview->highest;

	print_heading(overview, main);
	print_curve(main, CURVE_HEAP, "heap", main->heap.peak_bytes);
	print_curve(main, CURVE_RESIDENT, "resident", main->rss_peak_bytes);
	torsh_text_unknown_heaps(stdout, overview->processes, overview->n_processes, 1);
	torsh_screen_add_rows(1);
	if (peak->is_known && peak->bytes)
		print_holders(overview);
	print_difference(overview, main);
	if (overview->leaks.alive_blocks) {
		printf("%*s", SCREEN_INDENT, "");
		torsh_text_alive(stdout, &overview->leaks, overview->suppress);
		torsh_screen_add_rows(3);
	}
	print_at_exec(&overview->leaks);
}
