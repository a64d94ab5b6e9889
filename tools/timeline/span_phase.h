/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What names imply about spans, and the phase of a training that a span is part of. */
#ifndef TORSH_TIMELINE_SPAN_PHASE_H
#define TORSH_TIMELINE_SPAN_PHASE_H

#include "tools/timeline/spans.h"

/* enum name_trait, NAME_SEEN always. */
uint8_t torsh_name_traits(const char *name);

/* Set the phase of a span that has its traits; outer is around it, or NULL. */
void torsh_span_set_phase(struct span *span, const struct span *outer);

#endif
