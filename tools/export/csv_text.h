/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Texts in comma-separated values (RFC 4180). */
#ifndef TORSH_EXPORT_CSV_TEXT_H
#define TORSH_EXPORT_CSV_TEXT_H

#include "tools/export/output_stream.h"

/*
 * Put the n bytes of a text, quoted if it contains a comma, a quote or a line end. A text that a
 * spreadsheet would evaluate as a formula gets a leading apostrophe.
 */
void torsh_csv_put(struct output_stream *output, const char *text, size_t n);

#endif
