/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A finding in words, made from the sentence of its rule in rules.def. There {name} is a number of
 * its evidence with its unit, or operator, kernel, api, device or note; what is between [ and ] is
 * left out where one of its names has no value.
 */
#ifndef TORSH_ANALYSIS_SENTENCE_H
#define TORSH_ANALYSIS_SENTENCE_H

#include "tools/analysis/analysis.h"
#include "tools/symbols/symbols.h"

/*
 * What was found, with its numbers: "Device 0 was idle for 1.20 s, at work for 12.0% of the
 * time." Line, step and process are not in it. symbols may be NULL. The caller frees it.
 */
char *torsh_finding_sentence(const struct finding *finding, struct symbols *symbols);

/*
 * Where it is: "aten::mm, train.py(30): main"; NULL: nowhere in particular. An operator
 * that the sentence names is not repeated. symbols may be NULL.
 * The caller frees it.
 */
char *torsh_finding_place(const struct finding *finding, struct symbols *symbols);

/*
 * Returns true if the finding is what the recording cost, at most MEDIUM: a remark about the
 * recorder, not about the program.
 */
bool torsh_finding_is_remark(const struct finding *finding);

#endif
