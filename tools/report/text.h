/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Pieces that several reports have in common, for people: headings, stacks, the processes, what to
 * keep in mind.
 */
#ifndef TORSH_REPORT_TEXT_H
#define TORSH_REPORT_TEXT_H

#include <stdio.h>

#include "tools/memory/leaks/leaks.h"

/* A text in bold where out is a terminal. */
void torsh_text_heading(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "1,234 blocks", "1 block". Returns out, which holds 64 bytes. */
const char *torsh_text_blocks(uint64_t blocks, char *out);

/* A blank, and a column of ten characters, which UTF-8 may take more bytes for. */
void torsh_text_cell(FILE *out, const char *text);

/* Print "function, file:line" of a frame, as exact as possible, and the line's end. */
void torsh_text_frame(FILE *out, const struct frame *frame);

/*
 * The name of a function or a kernel; what templates of C++ make of it is cut, and what a terminal
 * would obey is '?' (JSON has it whole).
 */
void torsh_text_function(FILE *out, const char *function);

/* Frames as lines: function, file:line or module. */
void torsh_text_stack(FILE *out, const struct frame *const *frames, size_t n);

/* The same of a stack as it was recorded. */
void torsh_text_recorded_stack(FILE *out, const struct recorded_process *process, uint32_t stack,
			       struct symbols *symbols, enum stack_view view);

/*
 * Print the operator, module and Python line that an allocation site's blocks were allocated in, if
 * known.
 */
void torsh_text_scope(FILE *out, const struct allocation_site *site);

/* A allocation site: rank, bytes, blocks, share of the whole; then its stack. */
void torsh_text_site(FILE *out, size_t rank, const struct allocation_site *site,
		     uint64_t whole_bytes, bool with_pid);

/* The line that every report begins with where something is missing. */
void torsh_text_missing(FILE *out, const struct recording *recording,
			struct recorded_process *const *processes, size_t n);

/*
 * Print what a reader has to consider: that line with the events, and the notes. Processes are
 * listed by `torsh report` only.
 */
void torsh_text_caveats(FILE *out, const struct recording *recording,
			struct recorded_process *const *processes, size_t n);

/* "... and 12 more; --limit 0 shows all" if n_left isn't 0. */
void torsh_text_more(FILE *out, size_t n_left);

/* "... and 12 smaller ones; --limit 0 shows all" if n_left isn't 0. */
void torsh_text_smaller(FILE *out, size_t n_left);

/* That line, and the processes, a line for each; at most n_lines. */
void torsh_text_begin(FILE *out, const struct recording *recording,
		      struct recorded_process *const *processes, size_t n, size_t n_lines);

/* "train (pid 12) ended with exit 0 after 1.2 s", a line for each process; at most n_lines. */
void torsh_text_processes(FILE *out, struct recorded_process *const *processes, size_t n,
			  size_t n_lines);

/* A line for each process without heap data, with the reason; at most n_lines. */
void torsh_text_unknown_heaps(FILE *out, struct recorded_process *const *processes, size_t n,
			      size_t n_lines);

/*
 * Print the highest resident set of the process with what it was read from, or why it is not
 * recorded; nothing if neither is known.
 */
void torsh_text_resident(FILE *out, const struct recorded_process *process);

/*
 * "57.7 MiB in 120,974 blocks were alive at the end: 25.0 MiB leaked, ...", what the summary of a
 * run ends with, in its parts.
 */
void torsh_text_alive(FILE *out, const struct leaks *leaks, const struct suppress *suppress);

/*
 * "Shells and helpers that the command went through: 12.0 KiB in 300 blocks of 5 processes"; nothing
 * if none leaked.
 */
void torsh_text_helpers(FILE *out, const struct helper_leaks *helpers);

/* The same of programs that were not followed, with the reason. */
void torsh_text_unfollowed(FILE *out, struct recorded_process *const *unfollowed, size_t n,
			   size_t n_lines);

/*
 * Print the line about events and the lost ones by cause; then notes on what was not recorded.
 */
void torsh_text_events(FILE *out, struct recorded_process *const *processes, size_t n);

/* The same, unless nothing was lost and is_verbose is false. */
void torsh_text_losses(FILE *out, struct recorded_process *const *processes, size_t n,
		       bool is_verbose);

/* Call visit with each note of the recording and of these processes, each once. */
typedef void torsh_text_note(void *context, const char *note);
void torsh_text_visit_notes(const struct recording *recording,
			    struct recorded_process *const *processes, size_t n,
			    torsh_text_note *visit, void *context);

/* Print these notes, a line each. */
void torsh_text_notes(FILE *out, const struct recording *recording,
		      struct recorded_process *const *processes, size_t n);

#endif
