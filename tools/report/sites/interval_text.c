/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/sites/interval_text.h"

#include "tools/base/size.h"

void torsh_interval_text(FILE *out, const char *indent, uint64_t bytes, uint64_t blocks,
			 struct estimate_variance variance)
{
	struct estimate_interval of_bytes = torsh_estimate_interval(bytes, variance.bytes);
	struct estimate_interval of_blocks = torsh_estimate_interval(blocks, variance.blocks);
	char low[SIZE_TEXT_BYTES], high[SIZE_TEXT_BYTES];

	if (!(variance.bytes > 0) && !(variance.blocks > 0))
		return;
	fprintf(out, "%s95 %%: %s to %s", indent, torsh_size_human(of_bytes.low, low),
		torsh_size_human(of_bytes.high, high));
	fprintf(out, " in %s to %s\n", torsh_size_grouped(of_blocks.low, low),
		torsh_size_counted(of_blocks.high, "block", high));
}
