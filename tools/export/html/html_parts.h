/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The page without data, and the data as documents that it requests: what torsh serve sends. The
 * documents are the caller's. A function ends the program if the recording cannot be read.
 */
#ifndef TORSH_EXPORT_HTML_PARTS_H
#define TORSH_EXPORT_HTML_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/export/trace.h"

/* The document of the file that the export html writes, with the same limits. */
char *torsh_html_document(struct trace *trace);

/* Members of the document with all rows and nodes: memory; operators, modules, kernels, steps. */
char *torsh_html_memory(struct trace *trace);
char *torsh_html_time(struct trace *trace);

/*
 * The spans of a process (its index in the trace) between two times, the longest if there are many.
 */
char *torsh_html_window(struct trace *trace, size_t process, uint64_t from_ns, uint64_t to_ns);

/*
 * Write the page of torsh diff with its JSON. Returns false, with nothing written, where the file
 * would be too large.
 */
bool torsh_html_put_diff(FILE *out, const char *document);

/* Write the page without data, which may connect to its own origin. */
void torsh_html_put_empty(FILE *out);

/* The content security policy of the page that holds its data: n bytes, not terminated. */
const char *torsh_html_policy(size_t *n);

#endif
