/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh export's exports of stacks. */
#ifndef TORSH_COMMAND_EXPORT_EXPORT_STACKS_H
#define TORSH_COMMAND_EXPORT_EXPORT_STACKS_H

#include "tools/command/reading.h"
#include "tools/export/exporter.h"

/* Its options. */
struct stacks_export {
	const struct exporter *exporter;
	const char *output; /* NULL: standard output */
	bool has_what;
	unsigned what; /* enum export_weight, if has_what */
	bool is_all; /* stacks are not merged: see tools/export/stacks/merged_stacks.h */
};

/* Write the stacks of the reading. Ends the program with a message on failure. */
void torsh_stacks_export(const struct stacks_export *own, struct reading *reading,
			 struct read_options *options);

#endif
