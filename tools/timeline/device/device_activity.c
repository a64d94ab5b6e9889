/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/device/device_activity.h"

#include <stdio.h>

const char *const torsh_device_what_names[N_DEVICE_WHATS] = {"kernel", "copy", "memset", "graph"};

const char *torsh_copy_name(uint32_t kind)
{
	static const char *const names[N_COPY_KINDS] = {
		[COPY_HTOD] = "HtoD",	      [COPY_DTOH] = "DtoH",
		[COPY_HTOA] = "HtoA",	      [COPY_ATOH] = "AtoH",
		[COPY_ATOA] = "AtoA",	      [COPY_ATOD] = "AtoD",
		[COPY_DTOA] = "DtoA",	      [COPY_DTOD] = "DtoD",
		[COPY_HTOH] = "HtoH",	      [COPY_PTOP] = "PtoP",
		[COPY_PREFETCH] = "prefetch", [COPY_DECOMPRESSION] = "decompression",
	};

	return kind < N_COPY_KINDS && names[kind] ? names[kind] : "?";
}

/* Fields that kernels, copies and memsets share. */
#define COMMON(event)                                                                      \
	.is_timed = true, .begin_ns = (event)->begin, .duration_ns = (event)->duration_ns, \
	.correlation = (event)->correlation, .device = (event)->device,                    \
	.context = (event)->context, .stream = (event)->stream, .graph = (event)->graph,   \
	.node = (event)->node

static void make_submission(const struct event_submission *submission,
			    struct activity_record *record)
{
	static const enum device_what whats[] = {
		[SUBMISSION_KERNEL] = DEVICE_KERNEL,
		[SUBMISSION_COPY] = DEVICE_COPY,
		[SUBMISSION_MEMSET] = DEVICE_MEMSET,
		[SUBMISSION_GRAPH] = DEVICE_GRAPH,
	};

	*record = (struct activity_record){
		.what = submission->what < N_DEVICE_WHATS ? whats[submission->what] : DEVICE_KERNEL,
		.name = submission->name,
		.kind = submission->kind,
		.bytes = submission->bytes,
		.is_timed = submission->is_timed != 0,
		.begin_ns = submission->begin,
		.duration_ns = submission->is_timed ? submission->duration_ns : 0,
		.correlation = submission->correlation,
		.device = submission->device,
		.context = submission->context,
		.stream = submission->stream,
	};
}

bool torsh_activity_untimed(const struct event *event, struct activity_record *record)
{
	if (event->id != EVENT_SUBMISSION || event->submission.is_timed)
		return false;
	make_submission(&event->submission, record);
	return true;
}

bool torsh_activity_record(const struct event *event, struct activity_record *record)
{
	switch (event->id) {
	case EVENT_KERNEL:
		*record = (struct activity_record){
			.what = DEVICE_KERNEL, .name = event->kernel.name, COMMON(&event->kernel)};
		return true;
	case EVENT_COPY:
		*record = (struct activity_record){.what = DEVICE_COPY,
						   .kind = event->copy.kind,
						   .bytes = event->copy.bytes,
						   COMMON(&event->copy)};
		return true;
	case EVENT_MEMSET:
		*record = (struct activity_record){.what = DEVICE_MEMSET,
						   .bytes = event->memset.bytes,
						   COMMON(&event->memset)};
		return true;
	case EVENT_SUBMISSION:
		/* Other timed launches have activities of their own. */
		if (!event->submission.is_timed || event->submission.what != SUBMISSION_GRAPH)
			return false;
		make_submission(&event->submission, record);
		return true;
	default:
		return false;
	}
}

#undef COMMON

const char *torsh_memory_name(uint32_t memory)
{
	static const char *const names[] = {
		[MEMORY_UNKNOWN] = "Unknown",
		[MEMORY_PAGEABLE] = "Pageable",
		[MEMORY_PINNED] = "Pinned",
		[MEMORY_DEVICE] = "Device",
		[MEMORY_ARRAY] = "Array",
		[MEMORY_MANAGED] = "Managed",
		[MEMORY_DEVICE_STATIC] = "Device Static",
		[MEMORY_MANAGED_STATIC] = "Managed Static",
	};

	return names[memory < sizeof(names) / sizeof(*names) ? memory : MEMORY_UNKNOWN];
}

bool torsh_activity_title(const struct event *event, char *out)
{
	if (event->id == EVENT_COPY)
		snprintf(out, DEVICE_TITLE_BYTES, "Memcpy %s (%s -> %s)",
			 torsh_copy_name(event->copy.kind), torsh_memory_name(event->copy.from),
			 torsh_memory_name(event->copy.to));
	else if (event->id == EVENT_MEMSET)
		snprintf(out, DEVICE_TITLE_BYTES, "Memset (%s)",
			 torsh_memory_name(event->memset.to));
	else if (event->id == EVENT_SUBMISSION)
		snprintf(out, DEVICE_TITLE_BYTES, "CUDA graph");
	return event->id != EVENT_KERNEL;
}
