/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the rules about the host share. */
#ifndef TORSH_ANALYSIS_HOST_HOST_RULES_H
#define TORSH_ANALYSIS_HOST_HOST_RULES_H

#include <math.h>

#include "tools/analysis/rules.h"

/*
 * Decide for a rule about the whole steps after the first of a program without devices. reason: a
 * further one why not; NULL: none. Sets what findings are a share of.
 */
bool torsh_host_can_evaluate(struct evaluation *evaluation, const char *reason);

/* Returns why there is no whole step after the first, or NULL. */
const char *torsh_host_no_steps(const struct metrics_process *of);

/* The number of these steps; not 0 after torsh_host_can_evaluate. */
double torsh_host_steady_steps(const struct metrics_process *of);

/* Returns why the process's use of the machine is not known, or NULL. */
const char *torsh_host_no_usage(const struct metrics_process *of);

#endif
