/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The page without data, and the documents that it requests from torsh serve. The caller frees the
 * documents. Each function ends the program if the recording cannot be read.
 */
#ifndef TORSH_EXPORT_HTML_PARTS_H
#define TORSH_EXPORT_HTML_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/export/trace.h"

/* Returns the document of the export html's file, with the same limits. */
char *torsh_html_document(struct trace *trace);

/*
 * Return members of the document with all rows and nodes: memory; operators, modules, kernels,
 * steps.
 */
char *torsh_html_memory(struct trace *trace);
char *torsh_html_time(struct trace *trace);

/*
 * Returns the spans of a process (its index in the trace) between two times, the longest if there
 * are many.
 */
char *torsh_html_window(struct trace *trace, size_t process, uint64_t from_ns, uint64_t to_ns);

/*
 * Write the page of torsh diff with its JSON. Returns false, with nothing written, if the file
 * would be too large.
 */
bool torsh_html_put_diff(FILE *out, const char *document);

/* Likewise the page of torsh ranks. */
bool torsh_html_put_job(FILE *out, const char *document);

/* Write the page without data, which may connect to its own origin. */
void torsh_html_put_empty(FILE *out);

/* Returns the content security policy of the page with embedded data: n bytes, not terminated. */
const char *torsh_html_policy(size_t *n);

#endif
