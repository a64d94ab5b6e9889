/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The place of memory or time in a program, in a form that is equal in another build: functions
 * and file names, without addresses, folders and line numbers.
 */
#ifndef TORSH_COMPARE_PLACE_H
#define TORSH_COMPARE_PLACE_H

#include "tools/symbols/symbols.h"

/* The frames are owned by the symbols of a run, which must outlive the place. */
struct place {
	const struct frame **frames; /* innermost first; the place owns the array */
	size_t n_frames;
	const char *operator_name; /* that ran there, interned; NULL: none */
	const struct frame *user; /* the user's line; NULL: none */
	const char *shape; /* of torsh_place_shape; whoever sets it owns it */
};

/* Fill a place from frames, which are copied; without its shape. */
void torsh_place_make(struct place *place, const struct frame *const *frames, size_t n_frames,
		      const char *operator_name);

/* Fill a place with only the user's line of these frames. Returns false if there is none. */
bool torsh_place_make_line(struct place *place, const struct frame *const *frames, size_t n_frames);

/* Returns a line for each frame, its function and file name, which the caller frees. */
char *torsh_place_shape(const struct place *place);

/* Returns whether two places have the same operator and, one after the other, the same files. */
bool torsh_place_has_same_files(const struct place *one, const struct place *other);

/* Free what the place owns. */
void torsh_place_free(struct place *place);

/* Returns the line number of the user's line; 0: unknown. */
int torsh_place_line(const struct place *place);

/* Returns the file name of a frame, or of its module if the file is unknown. */
const char *torsh_place_file_of(const struct frame *frame);

/* Returns the last component of a path. */
const char *torsh_place_file(const char *path);

#endif
