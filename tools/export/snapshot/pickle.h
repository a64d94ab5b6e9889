/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Writes Python's pickle, protocol 4, with only the opcodes that torch/utils/viz/MemoryViz.js
 * supports: dicts and lists of strings and integers, and repeated values by their number in the
 * memo.
 */
#ifndef TORSH_EXPORT_SNAPSHOT_PICKLE_H
#define TORSH_EXPORT_SNAPSHOT_PICKLE_H

#include "tools/export/output_stream.h"

/* list items per APPENDS opcode, as in Python: readers hold them on a stack */
#define PICKLE_BATCH 1000u

struct pickle {
	struct output_stream *output;
	uint32_t n_memo; /* values in the memo */
};

/* A list that is written item by item. */
struct pickle_list {
	uint32_t n; /* items since the last batch */
};

/* Begin a file with one value, in a stream that stays the caller's. */
void torsh_pickle_begin(struct pickle *pickle, struct output_stream *output);
/* End the file: the value written is its result. */
void torsh_pickle_end(struct pickle *pickle);

/* Write an integer. */
void torsh_pickle_number(struct pickle *pickle, uint64_t number);
/* Write a text; bytes that are not UTF-8 become U+FFFD. */
void torsh_pickle_text(struct pickle *pickle, const char *text);

/* Begin a dictionary: keys and values alternate until its end. */
void torsh_pickle_dict_begin(struct pickle *pickle);

/* End the dictionary. */
void torsh_pickle_dict_end(struct pickle *pickle);

/* Begin a list. */
void torsh_pickle_list_begin(struct pickle *pickle, struct pickle_list *list);

/* Call before each item. */
void torsh_pickle_item(struct pickle *pickle, struct pickle_list *list);

/* End the list. */
void torsh_pickle_list_end(struct pickle *pickle, struct pickle_list *list);

/* Remember the value that was just written. Returns its number, for torsh_pickle_again. */
uint32_t torsh_pickle_remember(struct pickle *pickle);

/* Write a remembered value again, by its number. */
void torsh_pickle_again(struct pickle *pickle, uint32_t memo);

#endif
