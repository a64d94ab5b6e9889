/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What torsh whatif shows. */
#ifndef TORSH_COMMAND_WHATIF_WHATIF_VIEW_H
#define TORSH_COMMAND_WHATIF_WHATIF_VIEW_H

#include "tools/command/reading.h"
#include "tools/memory/whatif/whatif.h"

/* The options, as they were given; NULL: not. */
struct whatif_request {
	const char *batch, *allocator, *capacity;
};

struct whatif_view {
	const struct reading *reading;
	struct whatif_request request;
	struct whatif_question question;
	struct whatif whatif;
};

/* Whether anything but the recorded run itself was requested. */
static inline bool torsh_whatif_has_change(const struct whatif_view *view)
{
	return view->request.batch || view->request.allocator || view->question.checkpoint;
}

/* Print the report as JSON. */
void torsh_whatif_json(const struct whatif_view *view);

/* Print the report as text. */
void torsh_whatif_text(const struct whatif_view *view);

#endif
