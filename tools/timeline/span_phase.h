/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The traits that a span's name implies, and the training phase of a span. */
#ifndef TORSH_TIMELINE_SPAN_PHASE_H
#define TORSH_TIMELINE_SPAN_PHASE_H

#include "tools/timeline/spans.h"

/* Returns bits of enum name_trait, always with NAME_SEEN. */
uint8_t torsh_name_traits(const char *name);

/* Set the phase of a span that has its traits; outer is around it, or NULL. */
void torsh_span_set_phase(struct span *span, const struct span *outer);

#endif
