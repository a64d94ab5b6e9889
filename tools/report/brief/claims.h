/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The hypotheses of a brief as claims that a later recording can bear out: how they travel. The
 * JSON form has them as "hypotheses"; the Markdown form as a comment at its end, which renders as
 * nothing:
 *
 *	<!-- torsh-claims [{"rule":"step_waits","figure":"step_time","gain_pct":89.1}] -->
 */
#ifndef TORSH_REPORT_BRIEF_CLAIMS_H
#define TORSH_REPORT_BRIEF_CLAIMS_H

#include "tools/report/brief/brief.h"

#define CLAIMS_MAX 256u /* a brief has fewer */

struct claim {
	char *rule; /* as torsh_brief_rule returns it */
	enum brief_figure figure;
	double gain_pct; /* at most; NAN: none was predicted */
};

struct claims {
	struct claim *items;
	size_t n, n_room;
};

/* Take those of a brief. */
void torsh_claims_take(struct claims *claims, const struct brief *brief);

/*
 * Read those of a brief's file, either form. Ends the program with a sentence if it can't be read,
 * or is no brief.
 */
void torsh_claims_read(struct claims *claims, const char *path);

/* Write the first n hypotheses of a brief as a comment of Markdown. */
void torsh_claims_write(FILE *out, const struct brief *brief, size_t n);

/* Free them. */
void torsh_claims_free(struct claims *claims);

#endif
