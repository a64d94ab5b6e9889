/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/size.h"
#include "tools/command/leaks/leaks_view.h"
#include "tools/frames/blamed_line.h"
#include "tools/frames/folded_stack.h"
#include "tools/recording/losses.h"
#include "tools/report/device_report.h"
#include "tools/report/sites/holder_report.h"
#include "tools/report/selection.h"
#include "tools/report/sites/interval_text.h"
#include "tools/report/sites/site_rows.h"
#include "tools/report/text.h"

#define PROCESSES_SHOWN 10
#define IMPORTS_SHOWN 4

static void print_packages(const struct kept_imports *imports, const char *what)
{
	char bytes[SIZE_TEXT_BYTES];

	for (size_t i = 0; i < imports->n; i++)
		printf("kept by the %s of %s: %s\n", what, imports->items[i].package,
		       torsh_size_exact(imports->items[i].bytes +
						imports->items[i].suppressed_bytes,
					bytes));
}

static void print_left_out(const struct leaks_view *view)
{
	const struct leaks *leaks = &view->leaks;
	const struct suppress *suppress = &view->options->suppress;
	char bytes[SIZE_TEXT_BYTES], blocks[64];

	if (leaks->bookkeeping_blocks) {
		printf("left out: %s in %s of bookkeeping\n",
		       torsh_size_exact(leaks->bookkeeping_bytes, bytes),
		       torsh_text_blocks(leaks->bookkeeping_blocks, blocks));
		for (size_t i = 0; i < leaks->n_bookkeeping; i++)
			printf("          %s: %s in %s\n", leaks->bookkeeping[i].what,
			       torsh_size_exact(leaks->bookkeeping[i].bytes, bytes),
			       torsh_text_blocks(leaks->bookkeeping[i].blocks, blocks));
	}
	if (leaks->inherited_blocks)
		printf("left out: %s in %s from before a fork\n",
		       torsh_size_exact(leaks->inherited_bytes, bytes),
		       torsh_text_blocks(leaks->inherited_blocks, blocks));
	if (leaks->exec_blocks && !leaks->at_exec)
		printf("no leaks: %s in %s, alive when a process became another program; --at-exec shows them\n",
		       torsh_size_exact(leaks->exec_bytes, bytes),
		       torsh_text_blocks(leaks->exec_blocks, blocks));
	for (size_t i = 0; i < suppress->n; i++) {
		if (suppress->rules[i].n_stacks)
			printf("suppressed: %s in %s by %s:%s%s\n",
			       torsh_size_exact(suppress->rules[i].bytes, bytes),
			       torsh_text_blocks(suppress->rules[i].blocks, blocks),
			       torsh_suppress_kind(&suppress->rules[i]), suppress->rules[i].pattern,
			       suppress->rules[i].is_built_in ? " (built in)"
			       : suppress->rules[i].process   ? " (the program's own)"
							      : "");
	}
}

static void print_part(bool *is_first, const char *what, uint64_t bytes)
{
	char text[SIZE_TEXT_BYTES];

	if (!bytes)
		return;
	printf("%s%s %s", *is_first ? "" : ", ", what, torsh_size_human(bytes, text));
	*is_first = false;
}

/* The packages with most, and the others as one. Returns true if there are any. */
static bool print_largest(const char *heading, const struct kept_imports *imports)
{
	uint64_t others = 0;
	bool is_first = true;

	if (!imports->n)
		return false;
	fputs(heading, stdout);
	for (size_t i = 0; i < imports->n; i++) {
		uint64_t bytes = imports->items[i].bytes + imports->items[i].suppressed_bytes;

		if (i < IMPORTS_SHOWN)
			print_part(&is_first, imports->items[i].package, bytes);
		else
			others += bytes;
	}
	print_part(&is_first, "others", others);
	return true;
}

/*
 * One line: "Kept by imports: torch 15.0 MiB; kept by the first use of: numba 3.18 MiB; kept by the
 * interpreter 640 KiB, ... (--kept)".
 */
static void print_kept(const struct leaks_view *view)
{
	const struct leaks *leaks = &view->leaks;
	struct leaks_parts parts = torsh_leaks_parts(leaks, &view->options->suppress);
	bool is_first = true, has_packages;

	if (!leaks->suppressed_blocks && !leaks->imports.blocks && !leaks->first_uses.blocks &&
	    !leaks->bookkeeping_blocks && !leaks->inherited_blocks)
		return;
	has_packages = print_largest("Kept by imports: ", &leaks->imports);
	has_packages |= print_largest(has_packages ? "; kept by the first use of: "
						   : "Kept by the first use of: ",
				      &leaks->first_uses);
	if (!has_packages)
		fputs("Kept: ", stdout);
	else if (parts.interpreter || parts.libraries || parts.in_use || parts.rules ||
		 leaks->inherited_bytes)
		fputs("; kept ", stdout);
	print_part(&is_first, "by the interpreter", parts.interpreter);
	print_part(&is_first, "by libraries", parts.libraries);
	print_part(&is_first, "in use at _exit", parts.in_use);
	print_part(&is_first, "from before a fork", leaks->inherited_bytes);
	print_part(&is_first, "suppressed by rules", parts.rules);
	puts("  (--kept)");
}

static void print_device_text(const struct leaks_view *view)
{
	const struct leaks *leaks = &view->leaks;
	char bytes[SIZE_TEXT_BYTES], blocks[64];

	if (!leaks->devices)
		return;
	if (leaks->with_context.blocks)
		printf("of that %s in %s ended with the context in which they were allocated\n",
		       torsh_size_exact(leaks->with_context.bytes, bytes),
		       torsh_text_blocks(leaks->with_context.blocks, blocks));
	for (size_t i = 0; i < leaks->devices->n; i++) {
		const struct device_process *process = &leaks->devices->items[i];
		size_t place = torsh_device_place(process, leaks->device);

		if (place == DEVICE_NO_PLACE)
			continue;
		printf("pid %" PRIu32 " held %s of %s at the end\n", process->process->pid,
		       torsh_size_exact(process->blocks.scopes[place].bytes, bytes), leaks->device);
		torsh_device_text(stdout, process, place, DEVICE_AT_END);
	}
}

/* Blocks and bytes of leaks by whether they are lost. */
struct lost_and_kept {
	bool is_judged;
	uint64_t lost_blocks, lost_bytes, kept_blocks, kept_bytes;
	size_t n_lost; /* of the shown sites: those come first */
};

static struct lost_and_kept divide(const struct leaks_view *view, const char *why_unjudged)
{
	const struct leaks *leaks = &view->leaks;
	const struct counted_sites kept = torsh_block_classes_kept(&leaks->classes);
	struct lost_and_kept divided = {.is_judged = !why_unjudged,
					.lost_blocks = leaks->blocks - kept.blocks,
					.lost_bytes = leaks->bytes - kept.bytes,
					.kept_blocks = kept.blocks,
					.kept_bytes = kept.bytes};

	while (divided.n_lost < view->n_shown && !torsh_block_class_is_kept(torsh_block_class_of(
							 &leaks->found.items[divided.n_lost])))
		divided.n_lost++;
	return divided;
}

/* Print what is lost, or what is kept if nothing is. */
static void print_judged(const struct lost_and_kept *divided, const char *at)
{
	char bytes[SIZE_TEXT_BYTES], blocks[64];

	if (divided->lost_blocks)
		torsh_text_heading(stdout, "%s lost in %s%s",
				   torsh_size_human(divided->lost_bytes, bytes),
				   torsh_text_blocks(divided->lost_blocks, blocks), at);
	else
		torsh_text_heading(stdout, "Nothing is lost. %s in %s kept to the end%s",
				   torsh_size_human(divided->kept_bytes, bytes),
				   torsh_text_blocks(divided->kept_blocks, blocks), at);
}

static void print_heading(const struct leaks_view *view, const struct lost_and_kept *divided,
			  size_t n_shown)
{
	const struct leaks *leaks = &view->leaks;
	const struct reading *reading = view->reading;
	const char *of = leaks->device ? " of " : "", *device = leaks->device ? leaks->device : "";
	size_t n_lines = torsh_site_rows_lines(leaks->found.items, n_shown);
	char bytes[SIZE_TEXT_BYTES], blocks[64], at[64] = "";

	if (n_lines && (n_shown == leaks->found.n || n_shown == divided->n_lost))
		snprintf(at, sizeof(at), ", at %s of yours",
			 torsh_size_counted(n_lines, "line", bytes));
	if (leaks->at_exec)
		torsh_text_heading(stdout,
				   "%s in %s were alive when a process became another program",
				   torsh_size_human(leaks->bytes, bytes),
				   torsh_text_blocks(leaks->blocks, blocks));
	else if (!leaks->device &&
		 !torsh_recording_has_heaps(reading->processes, reading->n_processes))
		torsh_text_heading(stdout, "Nothing is known about the heap.");
	else if (!leaks->blocks &&
		 !torsh_losses_heap_is_whole(reading->recording, reading->processes,
					     reading->n_processes))
		torsh_text_heading(stdout, "Nothing that leaked is among what was recorded.");
	else if (!leaks->blocks && leaks->undecided_blocks)
		torsh_text_heading(stdout, "Nothing%s%s leaked for certain.", of, device);
	else if (!leaks->blocks)
		torsh_text_heading(stdout, "No leaks%s%s.", of, device);
	else if (divided->is_judged)
		print_judged(divided, at);
	else
		torsh_text_heading(stdout, "%s%s%s leaked in %s%s",
				   torsh_size_human(leaks->bytes, bytes), of, device,
				   torsh_text_blocks(leaks->blocks, blocks), at);
}

/* What the table leaves out: it ends with what is lost. */
static void print_folded(const struct leaks_view *view, const struct lost_and_kept *divided,
			 size_t n_shown)
{
	char bytes[SIZE_TEXT_BYTES], blocks[64], stacks[SIZE_TEXT_BYTES];

	if (n_shown == view->n_shown || !divided->kept_blocks) {
		torsh_text_smaller(stdout, view->leaks.found.n - n_shown);
		return;
	}
	printf("Kept to the end, not lost: %s in %s, by %s  (--kept)\n",
	       torsh_size_human(divided->kept_bytes, bytes),
	       torsh_text_blocks(divided->kept_blocks, blocks),
	       torsh_size_counted(view->leaks.found.n - n_shown, "stack", stacks));
}

static bool is_own(const struct allocation_site *site)
{
	return torsh_blamed_line(site->frames, site->n_frames, torsh_working_directory()).is_own;
}

/*
 * The table has what is lost; if nothing is, what lines of the program keep, which comes first
 * then. Returns the number of its rows.
 */
static size_t count_rows(const struct leaks_view *view, const struct lost_and_kept *divided)
{
	size_t n = divided->n_lost;

	if (!divided->is_judged || view->shows_kept)
		return view->n_shown;
	while (!divided->n_lost && n < view->n_shown && is_own(&view->leaks.found.items[n]))
		n++;
	return n;
}

/* Print what may have been allocated in the window. */
static void print_undecided(const struct leaks_view *view)
{
	const struct leaks *leaks = &view->leaks;
	size_t n_left = leaks->undecided.n - view->n_undecided_shown;
	char bytes[SIZE_TEXT_BYTES], blocks[64];

	if (!leaks->undecided_blocks)
		return;
	printf("undecided: up to %s in up to %s. The recording doesn't have the times of all blocks,\n"
	       "and those that it has don't decide how many of these were allocated in the window:\n",
	       torsh_size_human(leaks->undecided_bytes, bytes),
	       torsh_text_blocks(leaks->undecided_blocks, blocks));
	torsh_site_rows_print(stdout,
			      &(struct site_rows){
				      .heading = "UP TO",
				      .items = leaks->undecided.items,
				      .n = view->n_undecided_shown,
				      .with_pid = view->reading->n_processes > 1,
				      .max_rows = view->options->has_depth ? 0 : FOLDED_ROWS,
			      });
	torsh_text_smaller(stdout, n_left);
}

static void print_window(const struct leaks *leaks)
{
	if (!leaks->windows)
		return;
	torsh_selection_windows_text(stdout, leaks->windows);
	printf("counted: blocks that were allocated in it, and were alive when their process %s\n",
	       leaks->at_exec ? "became another program" : "ended");
}

/* Returns what the process has of the heading's sum. */
static struct counted_sites headed(const struct leaks_process *of,
				   const struct lost_and_kept *divided)
{
	struct counted_sites sum = {.blocks = of->blocks, .bytes = of->bytes};

	if (of->is_helper)
		return (struct counted_sites){0};
	if (divided->is_judged && !divided->lost_blocks)
		return of->kept;
	if (divided->is_judged) {
		sum.blocks -= of->kept.blocks;
		sum.bytes -= of->kept.bytes;
	}
	return sum;
}

/* Print a line for each process that leaks, if there are several. */
static void print_leaking(const struct leaks_view *view, const struct lost_and_kept *divided)
{
	const struct reading *reading = view->reading;
	const struct leaks_process *of = view->leaks.processes;
	size_t n = 0;
	char bytes[SIZE_TEXT_BYTES];

	for (size_t i = 0; i < reading->n_processes; i++)
		n += headed(&of[i], divided).blocks != 0;
	for (size_t i = 0, k = 0; n > 1 && i < reading->n_processes && k < PROCESSES_SHOWN; i++) {
		struct counted_sites sum = headed(&of[i], divided);

		if (!sum.blocks)
			continue;
		printf("%10s  %s (pid %" PRIu32 ")\n", torsh_size_human(sum.bytes, bytes),
		       torsh_recording_program_name(reading->processes[i]),
		       reading->processes[i]->pid);
		k++;
	}
	if (n > PROCESSES_SHOWN)
		printf("... and %s with leaks\n",
		       torsh_size_counted(n - PROCESSES_SHOWN, "more process", bytes));
}

/* Print what --verbose adds, and always losses. */
static void print_details(const struct leaks_view *view)
{
	const struct leaks *leaks = &view->leaks;
	const struct reading *reading = view->reading;
	char usable[SIZE_TEXT_BYTES], bytes[SIZE_TEXT_BYTES], blocks[64];

	if (view->options->is_verbose) {
		torsh_text_processes(stdout, reading->processes, reading->n_processes,
				     PROCESSES_SHOWN);
		torsh_text_unfollowed(stdout, reading->unfollowed, reading->n_unfollowed,
				      PROCESSES_SHOWN);
		if (!leaks->device && !leaks->at_exec && leaks->alive_blocks)
			torsh_text_alive(stdout, leaks, &view->options->suppress);
		if (leaks->blocks && leaks->usable_is_known)
			printf("the allocator took %s for them\n",
			       torsh_size_exact(leaks->usable_bytes, usable));
	}
	if (!view->shows_kept && leaks->exec_blocks && !leaks->at_exec)
		printf("no leaks: %s in %s, alive when a process became another program; --at-exec shows them\n",
		       torsh_size_human(leaks->exec_bytes, bytes),
		       torsh_text_blocks(leaks->exec_blocks, blocks));
	torsh_text_losses(stdout, reading->processes, reading->n_processes,
			  view->options->is_verbose);
	torsh_text_notes(stdout, reading->recording, reading->processes, reading->n_processes);
}

/* What was in use when the exit began, and was freed since: shown where nothing is lost. */
static void print_held(const struct leaks_view *view, const struct lost_and_kept *divided)
{
	const struct allocation_sites *held = &view->leaks.held;
	struct holder_view holders = {.symbols = view->reading->symbols,
				      .stacks = view->options->view};
	uint64_t blocks = 0, bytes = 0;
	char size[SIZE_TEXT_BYTES], counted[64];
	bool is_freed = true;

	if (!view->n_held_shown)
		return;
	for (size_t i = 0; i < view->n_held_shown; i++) {
		blocks += held->items[i].blocks;
		bytes += held->items[i].bytes;
		is_freed &= !held->items[i].process->ended_by__exit;
	}
	printf("Held to the end, and freed at the exit%s: %s in %s%s\n",
	       is_freed ? "" : " or with the process", torsh_size_human(bytes, size),
	       torsh_text_blocks(blocks, counted),
	       divided->lost_blocks && !view->shows_kept ? "  (--kept)" : "");
	if (divided->lost_blocks && !view->shows_kept)
		return;
	torsh_site_rows_print(stdout,
			      &(struct site_rows){
				      .heading = "HELD",
				      .items = held->items,
				      .n = view->n_held_shown,
				      .with_pid = view->reading->n_processes > 1,
				      .max_rows = view->options->has_depth ? 0 : FOLDED_ROWS,
				      .holders = &holders,
			      });
}

void torsh_leaks_text(const struct leaks_view *view)
{
	const struct leaks *leaks = &view->leaks;
	const struct reading *reading = view->reading;
	char *why_unjudged = torsh_leaks_why_unjudged(view);
	struct lost_and_kept divided = divide(view, why_unjudged);
	size_t n_shown = count_rows(view, &divided);
	struct holder_view holders = {.symbols = reading->symbols, .stacks = view->options->view};

	torsh_text_missing(stdout, reading->recording, reading->processes, reading->n_processes);
	print_heading(view, &divided, n_shown);
	torsh_interval_text(stdout, "", leaks->bytes, leaks->blocks,
			    torsh_sites_variance(&leaks->found));
	print_window(leaks);
	print_leaking(view, &divided);
	if (why_unjudged && leaks->blocks && !leaks->device && !leaks->at_exec)
		printf("not judged what of it is lost and what is kept: %s\n", why_unjudged);
	if (!leaks->device)
		torsh_text_unknown_heaps(stdout, reading->processes, reading->n_processes,
					 PROCESSES_SHOWN);
	print_device_text(view);
	torsh_site_rows_print(stdout,
			      &(struct site_rows){
				      .heading = leaks->at_exec				? "ALIVE"
						 : divided.is_judged && !divided.n_lost ? "KEPT"
											: "LEAKED",
				      .items = leaks->found.items,
				      .n = n_shown,
				      .whole_bytes = leaks->bytes,
				      .with_pid = reading->n_processes > 1,
				      .max_rows = view->options->has_depth ? 0 : FOLDED_ROWS,
				      .holders = divided.lost_blocks ? NULL : &holders,
			      });
	print_folded(view, &divided, n_shown);
	print_held(view, &divided);
	if (!divided.lost_blocks || view->shows_kept)
		torsh_leaks_python_text(view);
	torsh_text_helpers(stdout, &leaks->helpers);
	print_undecided(view);
	if (view->shows_kept) {
		print_packages(&leaks->imports, "import");
		print_packages(&leaks->first_uses, "first use");
		print_left_out(view);
	} else {
		print_kept(view);
	}
	print_details(view);
	free(why_unjudged);
}
