/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/symbols/frame_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/symbols/cuda_frames.h"
#include "tools/symbols/stack_view.h"

const char *torsh_frame_name(const struct frame *frame, char *out, size_t n)
{
	const char *slash;

	if (frame->function)
		return frame->function;
	if (frame->cut) {
		snprintf(out, n, "[cut: %s]", frame->cut);
		return out;
	}
	if (!frame->module) {
		snprintf(out, n, "0x%" PRIx64, frame->address);
		return out;
	}
	slash = strrchr(frame->module, '/');
	snprintf(out, n, "%s+0x%" PRIx64, slash ? slash + 1 : frame->module, frame->module_offset);
	return out;
}

static void print_frame(FILE *out, const struct frame *frame)
{
	char name[256];

	if (frame->file && frame->line > 0)
		fprintf(out, "%s(%d): ", frame->file, frame->line);
	else if (frame->file)
		fprintf(out, "%s: ", frame->file);
	fputs(torsh_frame_name(frame, name, sizeof(name)), out);
}

char *torsh_stack_text(const struct recorded_process *process, uint32_t stack,
		       struct symbols *symbols)
{
	enum stack_view view = process->tables->has_python ? STACK_VIEW_PYTHON : STACK_VIEW_NATIVE;
	size_t n, n_text;
	const struct frame **frames = torsh_stack_frames(process, stack, symbols, view, &n);
	char *text = NULL;
	FILE *out = torsh_need(open_memstream(&text, &n_text));

	for (size_t i = 0; i < n; i++) {
		fputs(i ? ";" : "", out);
		print_frame(out, frames[i]);
	}
	if (fclose(out))
		torsh_die("out of memory");
	free(frames);
	return torsh_need(text);
}

char *torsh_stack_line_text(const struct recorded_process *process, uint32_t stack,
			    struct symbols *symbols)
{
	const struct frame *frame = torsh_cuda_frames_line(process, stack, symbols);
	char *text = NULL;
	size_t n_text;
	FILE *out = torsh_need(open_memstream(&text, &n_text));

	if (frame)
		print_frame(out, frame);
	if (fclose(out))
		torsh_die("out of memory");
	return torsh_need(text);
}
