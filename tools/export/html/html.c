/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The export html: the page of page/ with the recording's data in it, in one file. Whatever the
 * run, the file is no larger than HTML_BYTES_MAX.
 */
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/html/html_page.h"

#define HTML_BYTES_MAX ((size_t)20 << 20)
#define DATA_BYTES_MAX (HTML_BYTES_MAX - ((size_t)1 << 20)) /* the page itself has the rest */
#define HALVINGS_MAX 12u
#define TEXT_BYTES_MAX 1000u

/* The page in two halves, embedded by html_page.S: what is before the data, and after. */
extern const char torsh_html_page_head[], torsh_html_page_tail[];
extern const uint64_t torsh_html_page_head_bytes, torsh_html_page_tail_bytes;

size_t torsh_html_process(const struct html_page *page, const struct recorded_process *process)
{
	for (size_t i = 0; i < page->trace->n_processes; i++) {
		if (page->trace->processes[i] == process)
			return i;
	}
	return 0;
}

void torsh_html_put_text(struct html_page *page, const char *name, const char *text)
{
	torsh_json_put_u64(&page->json, name, torsh_html_text(&page->texts, text));
}

/* The document, the caller's; with limits as they are. */
static char *make_document(struct html_page *page)
{
	struct json_writer *json = &page->json;

	page->texts = (struct html_texts){.n_max = TEXT_BYTES_MAX >> page->n_halved / 2};
	torsh_html_frames_restart(&page->frames);
	torsh_json_open_memory(json);
	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "version", 1);
	torsh_json_put_u64(json, "n_halved", page->n_halved);
	torsh_html_overview_put(page);
	torsh_html_memory_put(page);
	torsh_html_time_put(page);
	torsh_html_findings_put(page);
	torsh_html_timeline_put(page);
	torsh_html_devices_put(page);
	torsh_html_frames_put(&page->frames, &page->texts, json);
	torsh_html_texts_put(&page->texts, json);
	torsh_json_end_object(json);
	torsh_html_texts_free(&page->texts);
	return torsh_json_close_memory(json);
}

/* How long it is in the page: "<" takes six bytes there. */
static size_t count_bytes(const char *document)
{
	size_t n = 0;

	for (; *document; document++)
		n += *document == '<' ? 6 : 1;
	return n;
}

/* Nothing but "<" can end a script element or begin a comment in it; in JSON only texts have it. */
static void put_document(struct output_stream *output, const char *document)
{
	while (*document) {
		size_t n = strcspn(document, "<");

		torsh_stream_put(output, document, n);
		document += n;
		if (*document) {
			torsh_stream_text(output, "\\u003c");
			document++;
		}
	}
}

static int write_html(struct trace *trace)
{
	struct html_page page = {.trace = trace};
	char *document = NULL;

	torsh_html_frames_create(&page.frames);
	torsh_html_memory_collect(&page);
	torsh_html_time_collect(&page);
	torsh_html_findings_collect(&page);
	torsh_html_timeline_collect(&page);
	torsh_html_devices_collect(&page);
	do {
		free(document);
		document = make_document(&page);
	} while (count_bytes(document) > DATA_BYTES_MAX && page.n_halved++ < HALVINGS_MAX);
	torsh_stream_put(trace->output, torsh_html_page_head, torsh_html_page_head_bytes);
	put_document(trace->output, document);
	torsh_stream_put(trace->output, torsh_html_page_tail, torsh_html_page_tail_bytes);
	free(document);
	torsh_html_devices_free(&page);
	torsh_html_timeline_free(&page);
	torsh_html_findings_free(&page);
	torsh_html_time_free(&page);
	torsh_html_memory_free(&page);
	torsh_html_frames_free(&page.frames);
	return 0;
}

const struct trace_format torsh_trace_html = {
	.name = "html",
	.ending = ".html",
	.needs = TRACE_NEEDS_NOTHING,
	.write = write_html,
};
