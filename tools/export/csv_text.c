/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/csv_text.h"

#include <stdbool.h>
#include <string.h>

void torsh_csv_put(struct output_stream *output, const char *text, size_t n)
{
	bool is_formula = n && memchr("=+-@\t\r", *text, 6),
	     is_quoted = n && strcspn(text, ",\"\r\n") < n;

	torsh_stream_text(output, is_quoted ? "\"" : "");
	torsh_stream_text(output, is_formula ? "'" : "");
	for (size_t i = 0; is_quoted && i < n; i++)
		torsh_stream_put(output, text[i] == '"' ? "\"\"" : text + i,
				 text[i] == '"' ? 2 : 1);
	if (!is_quoted)
		torsh_stream_put(output, text, n);
	torsh_stream_text(output, is_quoted ? "\"" : "");
}
