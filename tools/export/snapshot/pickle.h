/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Writes Python's pickle, protocol 4, with the opcodes that torch/utils/viz/MemoryViz.js
 * understands as well: dicts and lists of strings and whole numbers, and values that come again by
 * their number (the memo).
 */
#ifndef TORSH_EXPORT_SNAPSHOT_PICKLE_H
#define TORSH_EXPORT_SNAPSHOT_PICKLE_H

#include "tools/export/output_stream.h"

/* items of a list that are added at once, as Python does: readers hold them on a stack */
#define PICKLE_BATCH 1000u

struct pickle {
	struct output_stream *output;
	uint32_t n_memo; /* values that were remembered */
};

/* A list that is written item by item. */
struct pickle_list {
	uint32_t n; /* items since the last batch */
};

/* Begin a file with one value, in a stream that stays the caller's. */
void torsh_pickle_begin(struct pickle *pickle, struct output_stream *output);
/* The value that was written is the file's. */
void torsh_pickle_end(struct pickle *pickle);

/* Write an integer. */
void torsh_pickle_number(struct pickle *pickle, uint64_t number);
/* Bytes that are no UTF-8 become U+FFFD. */
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
