/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/compare/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/frames/blamed_line.h"

const char *torsh_place_file(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* NULL: no frame is the user's, or its line is unknown. */
static const struct frame *find_user_frame(const struct frame *const *frames, size_t n_frames)
{
	const struct blamed_line blamed =
		torsh_blamed_line(frames, n_frames, torsh_working_directory());
	const struct frame *user = blamed.is_own ? frames[blamed.where] : NULL;

	return user && user->file && user->line ? user : NULL;
}

const char *torsh_place_file_of(const struct frame *frame)
{
	const char *path = frame->file ? frame->file : frame->module ? frame->module : "?";

	return torsh_place_file(path);
}

char *torsh_place_shape(const struct place *place)
{
	char *text = NULL;
	size_t n_text;
	FILE *out = torsh_need(open_memstream(&text, &n_text));

	if (place->operator_name)
		fprintf(out, "%s\n", place->operator_name);
	for (size_t i = 0; i < place->n_frames; i++) {
		const struct frame *frame = place->frames[i];
		const char *function = frame->function ? frame->function : "?";

		if (!frame->cut)
			fprintf(out, "%s\t%s\n", function, torsh_place_file_of(frame));
	}
	if (fclose(out) != 0)
		torsh_die("out of memory");
	return text;
}

/* Returns the next frame from number *i on, and moves *i behind it; NULL after the last one. */
static const struct frame *next_frame(const struct place *place, size_t *i)
{
	while (*i < place->n_frames && place->frames[*i]->cut)
		(*i)++;
	return *i < place->n_frames ? place->frames[(*i)++] : NULL;
}

bool torsh_place_has_same_files(const struct place *one, const struct place *other)
{
	size_t i = 0, k = 0;

	if (one->operator_name != other->operator_name)
		return false;
	for (;;) {
		const struct frame *x = next_frame(one, &i), *y = next_frame(other, &k);

		if (!x || !y)
			return !x && !y;
		if (strcmp(torsh_place_file_of(x), torsh_place_file_of(y)) != 0)
			return false;
	}
}

void torsh_place_make(struct place *place, const struct frame *const *frames, size_t n_frames,
		      const char *operator_name)
{
	place->operator_name = operator_name;
	place->frames = torsh_need_items(NULL, 0, n_frames, sizeof(struct frame *));
	place->n_frames = n_frames;
	for (size_t i = 0; i < n_frames; i++)
		place->frames[i] = frames[i];
	place->user = find_user_frame(frames, n_frames);
	place->shape = NULL;
}

bool torsh_place_make_line(struct place *place, const struct frame *const *frames, size_t n_frames)
{
	const struct frame *user = find_user_frame(frames, n_frames);

	if (user)
		torsh_place_make(place, &user, 1, NULL);
	return user;
}

void torsh_place_free(struct place *place)
{
	free(place->frames);
	*place = (struct place){0};
}

int torsh_place_line(const struct place *place)
{
	return place->user ? place->user->line : 0;
}
