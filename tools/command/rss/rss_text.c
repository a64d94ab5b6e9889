/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/rss/rss_view.h"
#include "tools/frames/short_name.h"
#include "tools/memory/rss/broken_places.h"
#include "tools/report/text.h"
#include "tools/terminal/table.h"

#define PROCESSES_SHOWN 12
#define PLACES_SHOWN 5 /* where pages were broken */
/* Any process breaks some pages, and of few samples no line is sure. */
#define PAGES_LEAST 256u
#define SAMPLES_LEAST 10u

static const struct table_column owner_columns[] = {
	{"bytes", TABLE_NUMBER, .drop = 0},
	{"of RSS", TABLE_NUMBER, .drop = 2},
	{"", TABLE_BAR, .drop = 3},
	{"", TABLE_NAME, .cut = CUT_MIDDLE},
};

static const struct table_column fragment_columns[] = {
	{"arena", TABLE_TEXT, .drop = 0},  {"blocks beside it", TABLE_TEXT, .drop = 0},
	{"live", TABLE_NUMBER, .drop = 0}, {"free", TABLE_NUMBER, .drop = 0},
	{"", TABLE_BAR, .drop = 2},	   {"in whole pages", TABLE_NUMBER, .drop = 1},
};

static const struct table_column process_columns[] = {
	{"pid", TABLE_NUMBER, .drop = 0},     {"RSS peak", TABLE_NUMBER, .drop = 0},
	{"its PSS", TABLE_NUMBER, .drop = 0}, {"RSS at the end", TABLE_NUMBER, .drop = 0},
	{"", TABLE_NAME, .cut = CUT_END},
};

#define N(columns) (sizeof(columns) / sizeof(*(columns)))

/* ---- heading --------------------------------------------------------------------------------- */

static uint64_t since_start(const struct recorded_process *process, uint64_t at_ns)
{
	return at_ns > process->start_ns ? at_ns - process->start_ns : 0;
}

static void print_last(const struct recorded_process *process,
		       const struct recorded_account *account)
{
	char at[SIZE_TEXT_BYTES];

	if (account->is_at_end || !process->has_end_ns)
		return;
	printf("It did not wait at its end: its last account is from %s before.\n",
	       torsh_size_duration(
		       process->end_ns > account->at_ns ? process->end_ns - account->at_ns : 0,
		       at));
}

static void print_heading(const struct rss_view *view)
{
	const struct recorded_process *process = view->resident.process;
	const struct recorded_account *peak = torsh_resident_account(process, RESIDENT_AT_PEAK),
				      *last = torsh_resident_account(process, RESIDENT_AT_END);
	char bytes[SIZE_TEXT_BYTES], end[SIZE_TEXT_BYTES], at[SIZE_TEXT_BYTES],
		end_at[SIZE_TEXT_BYTES];

	torsh_text_heading(stdout, "RSS of %s (pid %" PRIu32 "): %s at its peak (%s), %s %s (%s)",
			   torsh_recording_program_name(process), process->pid,
			   torsh_size_human(peak->rss_bytes, bytes),
			   torsh_size_duration(since_start(process, peak->at_ns), at),
			   torsh_size_human(last->rss_bytes, end),
			   last->is_at_end ? "at the end" : "when last looked at",
			   torsh_size_duration(since_start(process, last->at_ns), end_at));
	print_last(process, last);
	/* Below that, what the account missed is less than what makes a new one due. */
	if (process->has_rss_peak && process->rss_peak_bytes > peak->rss_bytes * 21 / 20)
		printf("The kernel saw %s, between two accounts.\n",
		       torsh_size_human(process->rss_peak_bytes, bytes));
}

/* ---- owners ---------------------------------------------------------------------------------- */

static void print_kind(struct table *table, const struct resident *resident, uint32_t kind)
{
	uint64_t bytes = resident->kind_bytes[kind], all = resident->account->rss_bytes;

	torsh_table_bytes(table, bytes);
	torsh_table_percent(table, (double)bytes, (double)all);
	torsh_table_bar(table, (double)bytes / (double)all);
	torsh_table_cell(table, "%s", torsh_resident_text(kind));
	torsh_table_style(table, STYLE_HEADING);
}

static void print_owner(struct table *table, uint64_t bytes, const char *name, size_t n_left)
{
	torsh_table_bytes(table, bytes);
	torsh_table_cell(table, "%s", "");
	torsh_table_bar(table, 0);
	if (name)
		torsh_table_cell(table, "  %s", name);
	else
		torsh_table_cell(table, "  %zu others", n_left);
}

/* The owners of one kind from number i on. Returns the number of the next kind's first. */
static size_t print_owners(struct table *table, const struct rss_view *view, size_t i)
{
	const struct resident *resident = &view->resident;
	uint32_t kind = resident->owners[i].kind;
	uint64_t left = 0;
	size_t n = 0, n_left = 0;

	print_kind(table, resident, kind);
	for (; i < resident->n_owners && resident->owners[i].kind == kind; i++, n++) {
		const struct resident_owner *owner = &resident->owners[i];

		if (!n && !owner->name)
			continue;
		if (owner->name && n < view->n_shown) {
			print_owner(table, owner->bytes, owner->name, 0);
			continue;
		}
		left += owner->bytes;
		n_left += owner->n;
	}
	if (left)
		print_owner(table, left, NULL, n_left);
	return i;
}

static void print_table(const struct rss_view *view)
{
	struct table *table = torsh_table_create(owner_columns, N(owner_columns));
	size_t i = 0;

	putchar('\n');
	torsh_text_heading(stdout, "Who owned it %s",
			   view->moment == RESIDENT_AT_PEAK    ? "at its peak"
			   : view->resident.account->is_at_end ? "at the end"
							       : "when last looked at");
	while (i < view->resident.n_owners)
		i = print_owners(table, view, i);
	torsh_table_print(table, stdout);
	if (view->resident.account->undivided)
		printf("Live blocks can't be told from free memory: %s.\n",
		       view->resident.account->undivided);
}

static void print_places(const struct rss_view *view)
{
	const struct recorded_account *account = view->resident.account;
	struct broken_places places;
	bool is_shown;

	if (account->unsampled)
		printf("At which lines is not known: the system forbids to sample page faults (%s).\n",
		       account->unsampled);
	torsh_broken_places_make(&places, view->resident.process, account, view->reading->symbols);
	is_shown = places.samples >= SAMPLES_LEAST && places.pages >= PAGES_LEAST;
	if (is_shown)
		puts("The process itself broke inherited pages at:");
	for (size_t i = 0; is_shown && i < places.n && i < PLACES_SHOWN; i++) {
		const struct broken_place *place = &places.items[i];
		char *function = place->frame ? torsh_short_frame(place->frame) : NULL;
		char *where = place->frame
				      ? torsh_short_place(place->frame, torsh_working_directory())
				      : NULL;

		printf("  %3.0f %% ± %.0f  %s%s%s\n", 100 * torsh_broken_share(&places, place),
		       100 * torsh_broken_error(&places, place), function ? function : "not known",
		       where ? ", " : "", where ? where : "");
		free(function);
		free(where);
	}
	if (is_shown)
		printf("That is of %" PRIu64
		       " sampled page faults of its first thread, which stand "
		       "for about %" PRIu64 " pages; %" PRIu64 " samples were lost.\n",
		       places.samples, places.pages, account->samples_lost);
	torsh_broken_places_free(&places);
}

static void print_copied(const struct rss_view *view)
{
	const struct resident *resident = &view->resident;
	const struct resident_owner *most = NULL;
	char bytes[SIZE_TEXT_BYTES];

	if (resident->account->is_of_fork && !resident->account->inherited_is_known)
		puts("Which pages it inherited is not known.");
	for (size_t i = 0; i < resident->n_owners && !most; i++) {
		if (resident->owners[i].kind == RESIDENT_COW && resident->owners[i].name)
			most = &resident->owners[i];
	}
	if (most)
		printf("Writes copied %s of inherited pages, most of them with: %s\n",
		       torsh_size_human(resident->kind_bytes[RESIDENT_COW], bytes), most->name);
	print_places(view);
}

/* ---- fragmentation --------------------------------------------------------------------------- */

static void print_size(struct table *table, uint32_t size_class)
{
	char from[SIZE_TEXT_BYTES], to[SIZE_TEXT_BYTES];

	if (size_class >= RESIDENT_NO_BLOCK)
		torsh_table_cell(table, "none");
	else if (!size_class)
		torsh_table_cell(table, "0 bytes");
	else
		torsh_table_cell(table, "%s to %s",
				 torsh_size_human(UINT64_C(1) << (size_class - 1), from),
				 torsh_size_human(UINT64_C(2) << (size_class - 1), to));
}

static void print_fragments(const struct recorded_account *account)
{
	struct table *table;
	uint64_t most = 0, whole = 0, free_bytes = 0;
	char bytes[SIZE_TEXT_BYTES], all[SIZE_TEXT_BYTES];

	for (size_t i = 0; i < account->n_fragments; i++) {
		const struct recorded_fragment *fragment = &account->fragments[i];

		most = fragment->free_bytes > most ? fragment->free_bytes : most;
		whole += fragment->whole_bytes;
		free_bytes += fragment->free_bytes;
	}
	if (!free_bytes)
		return;
	putchar('\n');
	torsh_text_heading(stdout,
			   "Free memory that allocators retain, by the live block before it");
	table = torsh_table_create(fragment_columns, N(fragment_columns));
	for (size_t i = 0; i < account->n_fragments; i++) {
		const struct recorded_fragment *fragment = &account->fragments[i];

		/* What is less than a hundredth is left out. */
		if (fragment->free_bytes * 100 < free_bytes)
			continue;
		torsh_table_cell(table, "%s", fragment->arena);
		print_size(table, fragment->size_class);
		torsh_table_bytes(table, fragment->live_bytes);
		torsh_table_bytes(table, fragment->free_bytes);
		torsh_table_bar(table, (double)fragment->free_bytes / (double)most);
		torsh_table_bytes(table, fragment->whole_bytes);
	}
	torsh_table_print(table, stdout);
	printf("It is no leak: the next blocks get it. Of %s, %s are in pages without a live block.\n",
	       torsh_size_human(free_bytes, all), torsh_size_human(whole, bytes));
}

/* ---- beside ---------------------------------------------------------------------------------- */

static void print_beside(const struct recorded_account *account)
{
	char pss[SIZE_TEXT_BYTES], swap[SIZE_TEXT_BYTES], tables[SIZE_TEXT_BYTES],
		huge[SIZE_TEXT_BYTES];

	printf("\nPSS %s; in huge pages %s; beside RSS: swapped out %s, page tables %s",
	       torsh_size_human(account->pss_bytes, pss),
	       torsh_size_human(account->huge_bytes, huge),
	       torsh_size_human(account->swap_bytes, swap),
	       torsh_size_human(account->page_table_bytes, tables));
	if (account->hugetlb_bytes)
		printf(", hugetlbfs %s", torsh_size_human(account->hugetlb_bytes, huge));
	putchar('\n');
}

static void put_process(struct table *table, const struct recorded_process *process)
{
	const struct recorded_account *peak = torsh_resident_account(process, RESIDENT_AT_PEAK),
				      *last = torsh_resident_account(process, RESIDENT_AT_END);

	torsh_table_cell(table, "%" PRIu32, process->pid);
	torsh_table_bytes(table, peak->rss_bytes);
	torsh_table_bytes(table, peak->pss_bytes);
	torsh_table_bytes(table, last->rss_bytes);
	torsh_table_cell(table, "%s", torsh_recording_program_name(process));
}

/* The largest first. */
static int compare_processes(const void *a, const void *b)
{
	const struct recorded_process *const *x = a, *const *y = b;
	uint64_t x_bytes = torsh_resident_account(*x, RESIDENT_AT_PEAK)->rss_bytes,
		 y_bytes = torsh_resident_account(*y, RESIDENT_AT_PEAK)->rss_bytes;

	if (x_bytes != y_bytes)
		return x_bytes > y_bytes ? -1 : 1;
	return ((*x)->number > (*y)->number) - ((*x)->number < (*y)->number);
}

static void print_processes(const struct reading *reading)
{
	const struct recorded_account *tree =
		torsh_resident_tree(reading->processes, reading->n_processes);
	char rss[SIZE_TEXT_BYTES], pss[SIZE_TEXT_BYTES];
	struct table *table;
	const struct recorded_process **sorted;
	size_t n = reading->n_processes, n_known = 0;

	if (n < 2)
		return;
	sorted = torsh_need_items(NULL, 0, n, sizeof(*sorted));
	for (size_t i = 0; i < n; i++) {
		if (torsh_resident_account(reading->processes[i], RESIDENT_AT_PEAK))
			sorted[n_known++] = reading->processes[i];
	}
	if (n_known)
		qsort(sorted, n_known, sizeof(*sorted), compare_processes);
	putchar('\n');
	if (tree)
		printf("%" PRIu32
		       " processes together: PSS %s, where shared memory counts once (sum of RSS %s)\n",
		       tree->n_tree, torsh_size_human(tree->tree_pss_bytes, pss),
		       torsh_size_human(tree->tree_rss_bytes, rss));
	table = torsh_table_create(process_columns, N(process_columns));
	for (size_t i = 0; i < n_known && i < PROCESSES_SHOWN; i++)
		put_process(table, sorted[i]);
	torsh_table_print(table, stdout);
	if (n_known > PROCESSES_SHOWN)
		printf("... and %zu more\n", n_known - PROCESSES_SHOWN);
	if (n > n_known)
		printf("%zu ended before an account was due, or could not be read\n", n - n_known);
	free(sorted);
}

static void print_none(const struct reading *reading)
{
	puts("No resident memory was accounted for.");
	for (size_t i = 0; i < reading->n_processes && i < PROCESSES_SHOWN; i++)
		printf("%s (pid %" PRIu32 "): %s\n",
		       torsh_recording_program_name(reading->processes[i]),
		       reading->processes[i]->pid, torsh_rss_problem(reading->processes[i]));
}

void torsh_rss_text(const struct rss_view *view)
{
	const struct reading *reading = view->reading;

	torsh_text_caveats(stdout, reading->recording, reading->processes, reading->n_processes);
	if (!view->resident.account) {
		print_none(reading);
		return;
	}
	print_heading(view);
	print_table(view);
	print_copied(view);
	print_fragments(view->resident.account);
	print_beside(view->resident.account);
	print_processes(reading);
}
