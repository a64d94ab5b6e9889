/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/export/html writes a recording as one self-contained HTML file: page/ is the page itself,
 * and the recording's data is one JSON document in it. Read this file first.
 *
 * The data is collected once; the document is then written with limits that are halved until it
 * fits (html.c). Each part of it has a collect, a put and a free function.
 */
#ifndef TORSH_EXPORT_HTML_PAGE_H
#define TORSH_EXPORT_HTML_PAGE_H

#include "tools/export/html/html_moments.h"
#include "tools/export/html/html_tree.h"
#include "tools/export/trace.h"
#include "tools/memory/growth/growth.h"
#include "tools/memory/leaks/leaks.h"
#include "tools/memory/peak.h"

/* A list of allocation sites, each with its node in the pruned tree of merged stacks. */
struct html_sites {
	const struct allocation_sites *sites;
	uint32_t *nodes;
};

/* How many nodes of each tree the page has at most. */
#define HTML_NODES_MERGED 36000u
#define HTML_NODES_NATIVE 20000u
#define HTML_NODES_SCOPES 4000u

struct html_memory {
	struct peak peak;
	const struct recorded_process *mapper; /* of the weight HTML_MAPPED */
	struct leaks leaks;
	struct growth growth;
	struct html_sites leaked, grown;
	struct html_moments *moments; /* of each process */
	struct html_tree merged, native, scopes; /* pruned */
	bool has_native; /* it differs from the merged view */
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
	struct html_processor *processor; /* NULL: nothing was sampled, and no waits recorded */
	unsigned n_halved; /* how often the limits have been halved */
	bool is_whole; /* without limits: for a part that is served */
};

/* Returns a limit of the page after the halvings. */
static inline size_t torsh_html_limit(const struct html_page *page, size_t limit)
{
	return page->is_whole ? SIZE_MAX : limit >> page->n_halved;
}

/* Returns the index of a process in trace->processes, which is its number on the page. */
size_t torsh_html_process(const struct html_page *page, const struct recorded_process *process);

/* Put the number of a text, 0 for NULL. */
void torsh_html_put_text(struct html_page *page, const char *name, const char *text);

/* What holds memory: trees of stacks, leaks, growth, curves, sizes. */
void torsh_html_memory_collect(struct html_page *page);
void torsh_html_memory_put(struct html_page *page);
void torsh_html_memory_free(struct html_page *page);

/* Who owned resident memory: collected when it is put. */
void torsh_html_rss_put(struct html_page *page);

/* Python's small objects near the peaks, by type: likewise. */
void torsh_html_census_put(struct html_page *page);

/* Operators, modules, kernels and steps. */
void torsh_html_time_collect(struct html_page *page);
void torsh_html_time_put(struct html_page *page);
void torsh_html_time_free(struct html_page *page);

/* Samples of processor time, and waits; parts of the above. */
void torsh_html_processor_collect(struct html_page *page);
void torsh_html_processor_put(struct html_page *page);
void torsh_html_processor_free(struct html_page *page);

/* The findings of tools/analysis. */
void torsh_html_findings_collect(struct html_page *page);
void torsh_html_findings_put(struct html_page *page);
void torsh_html_findings_free(struct html_page *page);

/* Returns what the analysis collected for a process of the trace; NULL: nothing. */
const struct metrics_process *torsh_html_metrics(const struct html_page *page, size_t process);

/* Returns finding i, the worst first; NULL: there are fewer. */
const struct finding *torsh_html_finding(const struct html_page *page, size_t i);

/* The spans of a few steps and around findings, and the memory of tensors over time. */
void torsh_html_timeline_collect(struct html_page *page);
void torsh_html_timeline_put(struct html_page *page);
void torsh_html_timeline_free(struct html_page *page);

/* The timeline of a single window of a process, without curves; the longest spans are put. */
void torsh_html_window_collect(struct html_page *page, size_t process, uint64_t from_ns,
			       uint64_t to_ns);
void torsh_html_window_put(struct html_page *page);

/* The devices, and their memory. */
void torsh_html_devices_collect(struct html_page *page);
void torsh_html_devices_put(struct html_page *page);
void torsh_html_devices_free(struct html_page *page);

/* Put the member "work" of a device: its utilisation; null if no activity of it was timed. */
void torsh_html_device_work_put(struct html_page *page, size_t process, uint32_t device);

/* The processes, what is missing, and how it was recorded. */
void torsh_html_overview_put(struct html_page *page);

#endif
