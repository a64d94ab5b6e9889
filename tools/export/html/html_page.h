/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/export/html writes a recording as one HTML file that needs nothing else: page/ is the page
 * itself, and what the recording holds is one JSON document in it. Read this file first.
 *
 * What the page shows is collected once; the document is then put with limits that are halved until
 * it fits (html.c). Each part of it has a collect, a put and a free.
 */
#ifndef TORSH_EXPORT_HTML_PAGE_H
#define TORSH_EXPORT_HTML_PAGE_H

#include "tools/export/html/html_moments.h"
#include "tools/export/html/html_tree.h"
#include "tools/export/trace.h"
#include "tools/memory/growth.h"
#include "tools/memory/leaks/leaks.h"
#include "tools/memory/peak.h"

/* A list of allocation sites with the node of the tree of merged stacks that each ends at. */
struct html_sites {
	const struct allocation_sites *sites;
	uint32_t *nodes;
};

struct html_memory {
	struct peak peak;
	const struct recorded_process *mapper; /* of the weight HTML_MAPPED */
	struct leaks leaks;
	struct growth growth;
	struct html_sites leaked, grown;
	struct html_moments *moments; /* of each process */
	struct html_tree merged, native, scopes;
	bool has_native; /* it differs from merged */
};

struct html_page {
	struct trace *trace;
	struct html_frames frames;
	struct html_texts texts;
	struct json_writer json;
	struct html_memory memory;
	struct html_time *time;
	struct html_findings *findings;
	struct html_timeline *timeline;
	struct html_devices *devices;
	unsigned n_halved; /* how often the limits were */
	bool is_whole; /* without limits: a part of a page that is served */
};

/* A limit of the page, as small as it has become. */
static inline size_t torsh_html_limit(const struct html_page *page, size_t limit)
{
	return page->is_whole ? SIZE_MAX : limit >> page->n_halved;
}

/* The place of a process in trace->processes; what the page calls its number. */
size_t torsh_html_process(const struct html_page *page, const struct recorded_process *process);

/* Put a text by its number, 0 for NULL. */
void torsh_html_put_text(struct html_page *page, const char *name, const char *text);

/* Who holds memory: trees of stacks, leaks, growth, curves, sizes. */
void torsh_html_memory_collect(struct html_page *page);
void torsh_html_memory_put(struct html_page *page);
void torsh_html_memory_free(struct html_page *page);

/* Operators, modules, kernels and steps. */
void torsh_html_time_collect(struct html_page *page);
void torsh_html_time_put(struct html_page *page);
void torsh_html_time_free(struct html_page *page);

/* What the rules of tools/analysis found. */
void torsh_html_findings_collect(struct html_page *page);
void torsh_html_findings_put(struct html_page *page);
void torsh_html_findings_free(struct html_page *page);

/* Returns what the analysis collected for a process of the trace; NULL: nothing. */
const struct metrics_process *torsh_html_metrics(const struct html_page *page, size_t process);

/* The spans of a few steps, and the memory of tensors over time. */
void torsh_html_timeline_collect(struct html_page *page);
void torsh_html_timeline_put(struct html_page *page);
void torsh_html_timeline_free(struct html_page *page);

/* The same for a window of a process alone, without curves; the longest spans are put. */
void torsh_html_window_collect(struct html_page *page, size_t process, uint64_t from_ns,
			       uint64_t to_ns);
void torsh_html_window_put(struct html_page *page);

/* What devices there were, and the memory that was got from them. */
void torsh_html_devices_collect(struct html_page *page);
void torsh_html_devices_put(struct html_page *page);
void torsh_html_devices_free(struct html_page *page);

/* Put the member "work" of a device: how busy it was; null where no work of it is timed. */
void torsh_html_device_work_put(struct html_page *page, size_t process, uint32_t device);

/* What ran, what is missing, and how it was recorded. */
void torsh_html_overview_put(struct html_page *page);

#endif
