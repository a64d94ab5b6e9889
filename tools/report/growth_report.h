/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* `torsh leaks --growth`, in its two renderings: what grows from step to step. */
#ifndef TORSH_REPORT_GROWTH_REPORT_H
#define TORSH_REPORT_GROWTH_REPORT_H

#include "tools/memory/growth/growth.h"
#include "tools/report/overview.h"
#include "tools/report/sites/holder_report.h"

struct growth_view {
	const struct recording *recording;
	struct recorded_process *const *processes;
	size_t n_processes;
	const struct growth *growth;
	size_t n_shown; /* allocation sites, named */
	size_t max_rows; /* of frames per site; 0: all */
	struct holder_view holders;
};

/* Print what grew on stdout, as text. */
void torsh_growth_text(const struct growth_view *view);

/* Print it on stdout as JSON: tools/schema/leaks-growth.json. */
void torsh_growth_json(const struct growth_view *view);

/*
 * Find what grows, which matters most if nothing leaked: nothing is looked for otherwise. The
 * largest site is named. The caller frees it with torsh_growth_free.
 */
void torsh_overview_growth(struct growth *growth, const struct overview *overview);

/* The same, also where something leaked. */
void torsh_overview_all_growth(struct growth *growth, const struct overview *overview);

#endif
