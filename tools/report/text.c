/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/base/utf8.h"
#include "tools/recording/losses.h"
#include "tools/report/sites/interval_text.h"
#include "tools/terminal/style.h"

#define PACKAGES_SHOWN 3u

#define FUNCTION_COLUMNS 44
#define FUNCTION_LONGEST 150 /* columns: longer C++ templates are cut here; JSON has them whole */

void torsh_text_heading(FILE *out, const char *format, ...)
{
	va_list arguments;

	torsh_style(out, STYLE_HEADING);
	va_start(arguments, format);
	vfprintf(out, format, arguments);
	va_end(arguments);
	torsh_style(out, STYLE_PLAIN);
	fputc('\n', out);
}

const char *torsh_text_blocks(uint64_t blocks, char *out)
{
	return torsh_size_counted(blocks, "block", out);
}

static bool is_inside_character(char byte)
{
	return (byte & 0xc0) == 0x80;
}

void torsh_text_cell(FILE *out, const char *text)
{
	int n_beside = 0;

	for (const char *at = text; *at; at++)
		n_beside += is_inside_character(*at);
	fprintf(out, " %*s", 10 + n_beside, text);
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Print the most exact place of a frame that is known. */
static void print_place(FILE *out, const struct frame *frame)
{
	if (frame->file && frame->line)
		fprintf(out, "%s:%d", frame->file, frame->line);
	else if (frame->is_python)
		fputs(frame->file ? frame->file : "?", out);
	else if (frame->module && frame->function)
		fprintf(out, "%s", last_component(frame->module));
	else if (frame->module)
		fprintf(out, "%s+0x%" PRIx64, last_component(frame->module), frame->module_offset);
	else
		fprintf(out, "0x%" PRIx64, frame->address);
	if (frame->is_inlined)
		fputs("  (inlined)", out);
	if (frame->is_signal_frame)
		fputs("  (signal handler's caller)", out);
	fputc('\n', out);
}

void torsh_text_function(FILE *out, const char *function)
{
	char *text = torsh_utf8_clean(function);
	size_t n = strlen(text), n_shown = n;

	if (n > FUNCTION_LONGEST) {
		n_shown = FUNCTION_LONGEST - 3;
		while (is_inside_character(text[n_shown]))
			n_shown--;
	}
	/* A name may contain control characters, which a terminal would act on. */
	for (size_t i = 0; i < n_shown; i++)
		fputc(iscntrl((unsigned char)text[i]) ? '?' : text[i], out);
	fputs(n_shown < n ? "..." : "", out);
	free(text);
}

void torsh_text_stack(FILE *out, const struct frame *const *frames, size_t n)
{
	if (n == 0)
		fputs("      (no stack was recorded)\n", out);
	for (size_t i = 0; i < n; i++) {
		const struct frame *frame = frames[i];
		const char *function = frame->function ? frame->function : "(unknown)";

		if (frame->cut) {
			fprintf(out, "      ... cut here: %s\n", frame->cut);
			continue;
		}
		fputs("      ", out);
		torsh_text_function(out, function);
		if (strlen(function) > FUNCTION_COLUMNS)
			fprintf(out, "\n      %-*s ", FUNCTION_COLUMNS, "");
		else
			fprintf(out, "%-*s ", FUNCTION_COLUMNS - (int)strlen(function), "");
		print_place(out, frame);
	}
}

void torsh_text_frame(FILE *out, const struct frame *frame)
{
	fprintf(out, "%s, ", frame->function ? frame->function : "?");
	print_place(out, frame);
}

/*
 * Print the innermost Python line if the stack doesn't begin with it, because people look for it.
 */
static void print_python_line(FILE *out, const struct allocation_site *site)
{
	size_t i = 0;

	while (i < site->n_frames && !site->frames[i]->is_python)
		i++;
	if (i == 0 || i == site->n_frames)
		return;
	fputs("     at ", out);
	torsh_text_frame(out, site->frames[i]);
}

void torsh_text_scope(FILE *out, const struct allocation_site *site)
{
	const char *operator= torsh_site_operator(site), *module = torsh_site_module(site);

	if (operator|| module)
		fprintf(out, "     in %s%s%s\n", operator ? operator : "", operator && module ? ", " : "",
			module ? module : "");
	print_python_line(out, site);
	if (!site->last_step)
		return;
	if (!site->first_step)
		fprintf(out, "     up to step %" PRIu32 "\n", site->last_step - 1);
	else if (site->first_step == site->last_step)
		fprintf(out, "     in step %" PRIu32 "\n", site->last_step - 1);
	else
		fprintf(out, "     in steps %" PRIu32 " to %" PRIu32 "\n", site->first_step - 1,
			site->last_step - 1);
}

void torsh_text_recorded_stack(FILE *out, const struct recorded_process *process, uint32_t stack,
			       struct symbols *symbols, enum stack_view view)
{
	size_t n;
	const struct frame **frames = torsh_stack_frames(process, stack, symbols, view, &n);

	torsh_text_stack(out, frames, n);
	free(frames);
}

void torsh_text_site(FILE *out, size_t rank, const struct allocation_site *site,
		     uint64_t whole_bytes, bool with_pid)
{
	char bytes[SIZE_TEXT_BYTES], blocks[64];

	fprintf(out, "\n#%-3zu %s in %s", rank, torsh_size_exact(site->bytes, bytes),
		torsh_text_blocks(site->blocks, blocks));
	if (whole_bytes)
		fprintf(out, ", %s",
			torsh_size_percent((double)site->bytes, (double)whole_bytes, bytes));
	if (with_pid)
		fprintf(out, ", pid %" PRIu32, site->process->pid);
	if (site->what == SITE_OF_TENSORS)
		fputs(", tensors", out);
	if (site->what == SITE_OF_CACHE)
		fputs(", kept by the framework's allocator and not given out", out);
	fputs(site->is_arena ? ", CPython arena: the line that made it grow is shown\n" : "\n",
	      out);
	torsh_interval_text(out, "     ", site->bytes, site->blocks, site->variance);
	if (site->has_times) {
		char first[SIZE_TEXT_BYTES], last[SIZE_TEXT_BYTES];
		uint64_t start_ns = site->process->start_ns;
		uint64_t first_ns = site->first_ns > start_ns ? site->first_ns - start_ns : 0;
		uint64_t last_ns = site->last_ns > start_ns ? site->last_ns - start_ns : 0;

		if (site->first_ns == site->last_ns)
			fprintf(out, "     allocated %s after the start\n",
				torsh_size_duration(first_ns, first));
		else
			fprintf(out, "     allocated from %s to %s after the start\n",
				torsh_size_duration(first_ns, first),
				torsh_size_duration(last_ns, last));
	}
	torsh_text_scope(out, site);
	torsh_text_stack(out, site->frames, site->n_frames);
}

/* Print how and when it ended, if known. */
static void print_end(FILE *out, const struct recorded_process *process)
{
	uint64_t start_ns = process->start_ns, end_ns = process->end_ns;
	char end[32], duration[SIZE_TEXT_BYTES];

	torsh_recording_end_name(process, end, sizeof(end));
	if (process->end == TORSH__PROCESS__END_KIND__RUNNING)
		fputs(" had not ended when this was recorded", out);
	else if (process->has_end_ns)
		fprintf(out, ": %s after %s", end,
			torsh_size_duration(end_ns > start_ns ? end_ns - start_ns : 0, duration));
	else
		fprintf(out, ": %s", end);
}

void torsh_text_missing(FILE *out, const struct recording *recording,
			struct recorded_process *const *processes, size_t n)
{
	char *sentence = torsh_losses_sentence(recording, processes, n);

	if (sentence) {
		torsh_style_print(out, STYLE_BAD, "%s", sentence);
		fputc('\n', out);
	}
	free(sentence);
}

void torsh_text_caveats(FILE *out, const struct recording *recording,
			struct recorded_process *const *processes, size_t n)
{
	char *sentence = torsh_losses_sentence(recording, processes, n);

	torsh_text_missing(out, recording, processes, n);
	if (sentence)
		torsh_text_events(out, processes, n);
	free(sentence);
	torsh_text_notes(out, recording, processes, n);
}

void torsh_text_more(FILE *out, size_t n_left)
{
	char text[SIZE_TEXT_BYTES];

	if (!n_left)
		return;
	torsh_style_print(out, STYLE_DIM, "... and %s more; --limit 0 shows all",
			  torsh_size_grouped(n_left, text));
	fputc('\n', out);
}

void torsh_text_smaller(FILE *out, size_t n_left)
{
	char text[SIZE_TEXT_BYTES];

	if (!n_left)
		return;
	torsh_style_print(out, STYLE_DIM, "... and %s; --limit 0 shows all",
			  torsh_size_counted(n_left, "smaller one", text));
	fputc('\n', out);
}

void torsh_text_begin(FILE *out, const struct recording *recording,
		      struct recorded_process *const *processes, size_t n, size_t n_lines)
{
	torsh_text_missing(out, recording, processes, n);
	torsh_text_processes(out, processes, n, n_lines);
}

void torsh_text_processes(FILE *out, struct recorded_process *const *processes, size_t n,
			  size_t n_lines)
{
	char text[SIZE_TEXT_BYTES];

	for (size_t i = 0; i < n && i < n_lines; i++) {
		fprintf(out, "%s (pid %" PRIu32 ")", torsh_recording_program_name(processes[i]),
			processes[i]->pid);
		print_end(out, processes[i]);
		fputc('\n', out);
	}
	if (n > n_lines)
		fprintf(out, "... and %s\n", torsh_size_counted(n - n_lines, "more process", text));
}

void torsh_text_unfollowed(FILE *out, struct recorded_process *const *unfollowed, size_t n,
			   size_t n_lines)
{
	char text[SIZE_TEXT_BYTES];

	for (size_t i = 0; i < n && i < n_lines; i++) {
		fprintf(out, "%s (pid %" PRIu32 ")", torsh_recording_program_name(unfollowed[i]),
			unfollowed[i]->pid);
		print_end(out, unfollowed[i]);
		fprintf(out, "; not followed: %s\n", unfollowed[i]->not_followed);
	}
	if (n > n_lines)
		fprintf(out, "... not followed either: %s\n",
			torsh_size_counted(n - n_lines, "more program", text));
}

void torsh_text_unknown_heaps(FILE *out, struct recorded_process *const *processes, size_t n,
			      size_t n_lines)
{
	size_t n_unknown = 0;
	char text[SIZE_TEXT_BYTES];

	for (size_t i = 0; i < n; i++) {
		const char *problem = torsh_recording_heap_problem(processes[i]);

		if (problem && ++n_unknown <= n_lines)
			fprintf(out,
				"nothing is known about the heap of %s (pid %" PRIu32 "): %s\n",
				torsh_recording_program_name(processes[i]), processes[i]->pid,
				problem);
	}
	if (n_unknown > n_lines)
		fprintf(out, "... nor about the heaps of %s\n",
			torsh_size_counted(n_unknown - n_lines, "more process", text));
}

static void print_kept_part(FILE *out, bool *is_first, const char *what, uint64_t bytes)
{
	char text[SIZE_TEXT_BYTES];

	if (!bytes)
		return;
	fprintf(out, ", %s %s%s", torsh_size_human(bytes, text), *is_first ? "kept " : "", what);
	*is_first = false;
}

void torsh_text_resident(FILE *out, const struct recorded_process *process)
{
	const char *source = process->rss_peak_source;
	char bytes[SIZE_TEXT_BYTES];

	if (process->has_rss_peak)
		fprintf(out,
			"highest resident set, with code, stacks and what allocators keep: %s%s%s%s\n",
			torsh_size_exact(process->rss_peak_bytes, bytes), source ? " (" : "",
			source ? source : "", source ? ")" : "");
	else if (source)
		fprintf(out, "highest resident set: %s\n", source);
}

void torsh_text_alive(FILE *out, const struct leaks *leaks, const struct suppress *suppress)
{
	struct leaks_parts parts = torsh_leaks_parts(leaks, suppress);
	struct counted_sites kept = torsh_leaks_kept(leaks);
	char alive[SIZE_TEXT_BYTES], blocks[64];
	bool is_first = true;

	fprintf(out, "%s in %s alive at the end", torsh_size_human(leaks->alive_bytes, alive),
		torsh_text_blocks(leaks->alive_blocks, blocks));
	if (leaks->alive_blocks) {
		fprintf(out, ": %s leaked", torsh_size_human(leaks->bytes - kept.bytes, alive));
		print_kept_part(out, &is_first, "to the end", kept.bytes);
		print_kept_part(out, &is_first, "by imports", parts.imports);
		print_kept_part(out, &is_first, "by first uses", parts.first_uses);
		print_kept_part(out, &is_first, "by the interpreter", parts.interpreter);
		print_kept_part(out, &is_first, "by libraries", parts.libraries);
		print_kept_part(out, &is_first, "in use at _exit", parts.in_use);
		print_kept_part(out, &is_first, "by rules", parts.rules);
		print_kept_part(out, &is_first, "by shells and helpers", parts.helpers);
	}
	fputc('\n', out);
}

char *torsh_text_imports(const struct kept_imports *imports)
{
	char *text = NULL, bytes[SIZE_TEXT_BYTES];
	size_t n_text;
	FILE *out = torsh_need(open_memstream(&text, &n_text));

	for (size_t i = 0; i < imports->n && i < PACKAGES_SHOWN; i++)
		fprintf(out, "%s%s %s", i ? ", " : "", imports->items[i].package,
			torsh_size_human(imports->items[i].bytes, bytes));
	if (imports->n > PACKAGES_SHOWN)
		fputs(", ...", out);
	if (fclose(out) != 0)
		torsh_die("out of memory");
	return text;
}

void torsh_text_helpers(FILE *out, const struct helper_leaks *helpers)
{
	char bytes[SIZE_TEXT_BYTES], blocks[64], processes[SIZE_TEXT_BYTES];

	if (helpers->n_processes)
		fprintf(out,
			"Shells and helpers that the command went through: %s in %s of %s  (-v, --pid)\n",
			torsh_size_human(helpers->bytes, bytes),
			torsh_text_blocks(helpers->blocks, blocks),
			torsh_size_counted(helpers->n_processes, "process", processes));
}

void torsh_text_events(FILE *out, struct recorded_process *const *processes, size_t n)
{
	char a[SIZE_TEXT_BYTES], b[SIZE_TEXT_BYTES], c[SIZE_TEXT_BYTES];
	struct losses losses;

	torsh_losses_sum(&losses, processes, n);
	fprintf(out, "events: %s produced, %s delivered, %s dropped\n",
		torsh_size_grouped(losses.produced, a), torsh_size_grouped(losses.delivered, b),
		torsh_size_grouped(losses.dropped, c));
	if (losses.uncommitted)
		fprintf(out, "note: %s more %s under way when %s process ended\n",
			torsh_size_grouped(losses.uncommitted, a),
			losses.uncommitted == 1 ? "was" : "were",
			losses.uncommitted == 1 ? "its" : "their");
	for (size_t i = 0; i < losses.n; i++) {
		char *words = torsh_losses_words(&losses.items[i]);

		fprintf(out, "lost: %s\n", words);
		free(words);
	}
	torsh_losses_free(&losses);
}

void torsh_text_losses(FILE *out, struct recorded_process *const *processes, size_t n,
		       bool is_verbose)
{
	struct losses losses;
	bool is_shown;

	torsh_losses_sum(&losses, processes, n);
	is_shown = is_verbose || losses.dropped || losses.uncommitted || losses.n;
	torsh_losses_free(&losses);
	if (is_shown)
		torsh_text_events(out, processes, n);
}

static bool was_said(struct recorded_process *const *processes, size_t process, const char *note)
{
	for (size_t i = 0; i < process; i++) {
		for (size_t k = 0; k < processes[i]->n_notes; k++) {
			if (strcmp(processes[i]->notes[k], note) == 0)
				return true;
		}
	}
	return false;
}

static void visit_pauses(const struct recording *recording, torsh_text_note *visit, void *context)
{
	char from[SIZE_TEXT_BYTES], until[SIZE_TEXT_BYTES];

	for (size_t i = 0; i < recording->n_pauses; i++) {
		const struct recorded_pause *pause = &recording->pauses[i];
		char *note;

		torsh_size_duration(pause->from_ns, from);
		if (pause->lasts)
			snprintf(until, sizeof(until), " until the end");
		else
			torsh_size_duration(pause->until_ns - pause->from_ns, until);
		note = torsh_need_text(
			"recording was paused %s after the start%s%s: blocks that were allocated meanwhile are not in here",
			from, pause->lasts ? "" : ", for ", until);
		visit(context, note);
		free(note);
	}
}

static void visit_samplings(struct recorded_process *const *processes, size_t n,
			    torsh_text_note *visit, void *context)
{
	uint64_t before = 0;
	char rate[SIZE_TEXT_BYTES];

	for (size_t i = 0; i < n; i++) {
		uint64_t every = processes[i]->heap.sampled_every;
		char *note;

		if (!every || every == before)
			continue;
		before = every;
		note = torsh_need_text(
			"blocks of the heap were sampled, one in %s on average: what is alive, leaked or at a peak, and all by stack, is estimated, with its 95 %% interval; allocations, frees and sizes are exact",
			torsh_size_human(every, rate));
		visit(context, note);
		free(note);
	}
}

void torsh_text_visit_notes(const struct recording *recording,
			    struct recorded_process *const *processes, size_t n,
			    torsh_text_note *visit, void *context)
{
	char at[SIZE_TEXT_BYTES], *note;

	if (recording->snapshot_of) {
		note = torsh_need_text(
			"a snapshot, %s after the start; the recording went on in %s",
			torsh_size_duration(recording->snapshot_ns, at), recording->snapshot_of);
		visit(context, note);
		free(note);
	} else if (recording->is_being_written) {
		visit(context,
		      "this is being recorded still: the numbers are those of the last checkpoint");
	}
	visit_samplings(processes, n, visit, context);
	visit_pauses(recording, visit, context);
	for (size_t i = 0; i < recording->n_reasons; i++)
		visit(context, recording->reasons[i]);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < processes[i]->n_notes; k++) {
			if (!was_said(processes, i, processes[i]->notes[k]))
				visit(context, processes[i]->notes[k]);
		}
	}
}

static void print_note(void *context, const char *note)
{
	fprintf(context, "note: %s\n", note);
}

void torsh_text_notes(FILE *out, const struct recording *recording,
		      struct recorded_process *const *processes, size_t n)
{
	torsh_text_visit_notes(recording, processes, n, print_note, out);
}
