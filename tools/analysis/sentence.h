/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A finding as a sentence, from its rule's template in rules.def. There {name} is a number of the
 * evidence with its unit, or operator, kernel, api, device or note; a part in [ and ] is left out
 * if one of its names has no value.
 */
#ifndef TORSH_ANALYSIS_SENTENCE_H
#define TORSH_ANALYSIS_SENTENCE_H

#include "tools/analysis/analysis.h"
#include "tools/symbols/symbols.h"

/*
 * Returns the finding with its numbers: "Device 0 was idle for 1.20 s, at work for 12.0% of the
 * time.", without line, step and process. symbols may be NULL. The caller frees it.
 */
char *torsh_finding_sentence(const struct finding *finding, struct symbols *symbols);

/*
 * Returns the finding's place: "aten::mm, train.py(30): main"; NULL: none in particular. An
 * operator that the sentence names is not repeated. symbols may be NULL. The caller frees it.
 */
char *torsh_finding_place(const struct finding *finding, struct symbols *symbols);

/*
 * Returns true if the finding is what the recording cost, at most MEDIUM: a remark about the
 * recorder, not about the program.
 */
bool torsh_finding_is_remark(const struct finding *finding);

#endif
