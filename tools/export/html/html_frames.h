/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Frames and texts of the page, each once: trees and tables refer to them by number. Frames with
 * equal function, file and line are one frame, at any address.
 */
#ifndef TORSH_EXPORT_HTML_FRAMES_H
#define TORSH_EXPORT_HTML_FRAMES_H

#include "tools/base/containers/hash_map.h"
#include "tools/base/containers/intern.h"
#include "tools/base/containers/key_index.h"
#include "tools/base/json_writer.h"
#include "tools/symbols/symbols.h"

enum html_frame_kind {
	HTML_FRAME_NATIVE,
	HTML_FRAME_PYTHON,
	HTML_FRAME_CUT, /* no frame: why further frames are unknown */
	HTML_FRAME_LABEL, /* a process, a module, an operator */
	HTML_FRAME_OTHERS, /* what is too small for the page */
	HTML_FRAME_IMPORT, /* consecutive frames of Python's import system */
};

/* The kinds of tools/frames/frame_kind.h, merged for the page; names are in page/frames.js. */
enum html_frame_category {
	HTML_CATEGORY_OWN, /* the user's */
	HTML_CATEGORY_LIBRARY, /* Python of a package or of the standard library */
	HTML_CATEGORY_IMPORTS,
	HTML_CATEGORY_NATIVE, /* code of a library */
	HTML_CATEGORY_RUNTIME, /* the C and C++ libraries, the interpreter, the agent */
	HTML_CATEGORY_LABEL, /* no frame */
};

struct html_frame {
	const char *function, *file, *module; /* interned; NULL: unknown */
	uint32_t line; /* 0: unknown */
	uint16_t kind, category;
};

/* Numbers of predefined frames. */
enum { HTML_FRAME_NUMBER_ROOT, HTML_FRAME_NUMBER_OTHERS, HTML_FRAME_NUMBER_IMPORT };

struct html_frames {
	struct html_frame *items;
	uint32_t *emitted; /* by frame: number on the page + 1; 0: not on the page */
	size_t n, n_room, n_emitted;
	struct key_index by_pointer; /* keyed by pointer to struct frame */
	struct hash_map by_value;
	struct intern texts; /* names of frames without one */
};

/* Create and free the table. */
void torsh_html_frames_create(struct html_frames *frames);
void torsh_html_frames_free(struct html_frames *frames);

/* Returns the category of a frame, as torsh_frame_kind decides it. */
enum html_frame_category torsh_html_frame_category(const struct frame *frame);

/* Returns the number of a frame, whose texts must outlive the table. */
uint32_t torsh_html_frame(struct html_frames *frames, const struct frame *frame);

/* Returns the number of a frame that consists of a text, which is copied. */
uint32_t torsh_html_frame_text(struct html_frames *frames, enum html_frame_kind kind,
			       const char *text);

/* Texts of the page: NULL is 0, the others are numbered from 1. */
struct html_texts {
	struct hash_map map;
	const char **items; /* keys of the map */
	size_t n, n_room;
	size_t n_max; /* length limit of each text in bytes */
};

/* Returns the number of a text. */
uint32_t torsh_html_text(struct html_texts *texts, const char *text);

/* Put the member "texts"; longer texts are cut. */
void torsh_html_texts_put(const struct html_texts *texts, struct json_writer *json);
void torsh_html_texts_free(struct html_texts *texts);

/* Clear which frames are on the page. */
void torsh_html_frames_restart(struct html_frames *frames);

/* Returns the frame's number on the page, and puts it there. */
uint32_t torsh_html_frames_use(struct html_frames *frames, uint32_t frame);

/* Put the member "frames": columns of all frames on the page, in the order of their numbers. */
void torsh_html_frames_put(struct html_frames *frames, struct html_texts *texts,
			   struct json_writer *json);

#endif
