/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Folded stacks, "program;main (app.c:12);grow (app.c:7) 123" per line, with the bytes (of processor
 * time nanoseconds) at the end, as flame graph tools read them. Streams.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/exporter.h"
#include "tools/frames/short_name.h"
#include "tools/symbols/frame_text.h"

struct folded {
	const struct frame **frames;
	size_t capacity;
};

static void begin_folded(struct export *export)
{
	export->state = torsh_need(calloc(1, sizeof(struct folded)));
}

/* A semicolon separates frames, and the last blank precedes the number. */
static void put_name(FILE *file, const char *name)
{
	for (; *name; name++)
		putc(*name == ';' ? ':' : (unsigned char)*name <= ' ' ? '_' : *name, file);
}

static void put_frame(FILE *file, const struct frame *frame)
{
	char *place, name[256];

	putc(';', file);
	put_name(file, torsh_frame_name(frame, name, sizeof(name)));
	if (frame->cut || !frame->function)
		return;
	place = torsh_short_place(frame, torsh_working_directory());
	fputs(" (", file);
	put_name(file, place);
	putc(')', file);
	free(place);
}

static void sample_folded(struct export *export, const struct export_sample *sample)
{
	struct folded *folded = export->state;
	size_t n = torsh_export_frames(export, sample, &folded->frames, &folded->capacity);
	uint64_t bytes = sample->values[export->what].bytes;

	if (!bytes)
		return;
	put_name(export->file, torsh_recording_program_name(sample->process));
	if (export->n_processes > 1)
		fprintf(export->file, "_(%" PRIu32 ")", sample->process->pid);
	for (size_t i = 0; i < n; i++)
		put_frame(export->file, folded->frames[i]);
	if (sample->merged)
		fprintf(export->file, ";%s", sample->merged);
	else if (!n)
		fputs(";[no_stack]", export->file);
	fprintf(export->file, " %" PRIu64 "\n", bytes);
}

static int end_folded(struct export *export)
{
	struct folded *folded = export->state;

	free(folded->frames);
	free(folded);
	return 0;
}

const struct exporter torsh_export_folded = {
	.name = "folded",
	.default_what = EXPORT_LEAKED,
	.begin = begin_folded,
	.sample = sample_folded,
	.end = end_folded,
};
