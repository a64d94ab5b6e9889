/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Parts of several text reports: headings, stacks, processes, caveats. */
#ifndef TORSH_REPORT_TEXT_H
#define TORSH_REPORT_TEXT_H

#include <stdio.h>

#include "tools/memory/leaks/leaks.h"

/* Print a text, in bold on a terminal. */
void torsh_text_heading(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns "1,234 blocks" or "1 block" in out, which holds 64 bytes. */
const char *torsh_text_blocks(uint64_t blocks, char *out);

/* Print a blank, and the text padded to ten columns. */
void torsh_text_cell(FILE *out, const char *text);

/* Print "function, file:line" of a frame, as exact as possible, and the line's end. */
void torsh_text_frame(FILE *out, const struct frame *frame);

/*
 * Print the name of a function or a kernel; long C++ templates are cut, and control characters
 * become '?' (JSON has all of it).
 */
void torsh_text_function(FILE *out, const char *function);

/* Print frames as lines: function, file:line or module. */
void torsh_text_stack(FILE *out, const struct frame *const *frames, size_t n);

/* Print a recorded stack likewise. */
void torsh_text_recorded_stack(FILE *out, const struct recorded_process *process, uint32_t stack,
			       struct symbols *symbols, enum stack_view view);

/*
 * Print the operator, module and Python line that an allocation site's blocks were allocated in, if
 * known.
 */
void torsh_text_scope(FILE *out, const struct allocation_site *site);

/* Print an allocation site: rank, bytes, blocks, share of the whole; then its stack. */
void torsh_text_site(FILE *out, size_t rank, const struct allocation_site *site,
		     uint64_t whole_bytes, bool with_pid);

/* Print the first line of every report if something is missing. */
void torsh_text_missing(FILE *out, const struct recording *recording,
			struct recorded_process *const *processes, size_t n);

/*
 * Print caveats: that line with the events, and the notes. Processes are listed by `torsh report`
 * only.
 */
void torsh_text_caveats(FILE *out, const struct recording *recording,
			struct recorded_process *const *processes, size_t n);

/* Print "... and 12 more; --limit 0 shows all" if n_left isn't 0. */
void torsh_text_more(FILE *out, size_t n_left);

/* "... and 12 smaller ones; --limit 0 shows all" if n_left isn't 0. */
void torsh_text_smaller(FILE *out, size_t n_left);

/* That line, and the processes, a line for each; at most n_lines. */
void torsh_text_begin(FILE *out, const struct recording *recording,
		      struct recorded_process *const *processes, size_t n, size_t n_lines);

/* Print "train (pid 12) ended with exit 0 after 1.2 s" for each process; at most n_lines. */
void torsh_text_processes(FILE *out, struct recorded_process *const *processes, size_t n,
			  size_t n_lines);

/* Print a line for each process without heap data, with the reason; at most n_lines. */
void torsh_text_unknown_heaps(FILE *out, struct recorded_process *const *processes, size_t n,
			      size_t n_lines);

/*
 * Print the process's maximum resident set size with its source, or why it is not recorded;
 * nothing if neither is known.
 */
void torsh_text_resident(FILE *out, const struct recorded_process *process);

/*
 * Print "57.7 MiB in 120,974 blocks were alive at the end: 25.0 MiB leaked, ...", as the summary
 * of a run does.
 */
void torsh_text_alive(FILE *out, const struct leaks *leaks, const struct suppress *suppress);

/*
 * Returns "torch 131 MiB, encodings 57.2 KiB", the packages with most first and "..." for the
 * others. The caller frees it.
 */
char *torsh_text_imports(const struct kept_imports *imports);

/*
 * Print "Shells and helpers that the command went through: 12.0 KiB in 300 blocks of 5 processes";
 * nothing if none leaked.
 */
void torsh_text_helpers(FILE *out, const struct helper_leaks *helpers);

/* Print a line per program that was not followed, with the reason. */
void torsh_text_unfollowed(FILE *out, struct recorded_process *const *unfollowed, size_t n,
			   size_t n_lines);

/*
 * Print the line about events and the lost ones by cause; then notes on what was not recorded.
 */
void torsh_text_events(FILE *out, struct recorded_process *const *processes, size_t n);

/* Likewise, but nothing if nothing was lost and is_verbose is false. */
void torsh_text_losses(FILE *out, struct recorded_process *const *processes, size_t n,
		       bool is_verbose);

/* Call visit with each note of the recording and of these processes, each once. */
typedef void torsh_text_note(void *context, const char *note);
void torsh_text_visit_notes(const struct recording *recording,
			    struct recorded_process *const *processes, size_t n,
			    torsh_text_note *visit, void *context);

/* Print these notes, one per line. */
void torsh_text_notes(FILE *out, const struct recording *recording,
		      struct recorded_process *const *processes, size_t n);

#endif
