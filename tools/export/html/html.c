/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The export html: the page of page/ with the recording's data, in one file of at most
 * HTML_BYTES_MAX.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/export/html/html_page.h"
#include "tools/export/html/html_parts.h"

#define HTML_BYTES_MAX ((size_t)20 << 20)
#define DATA_BYTES_MAX (HTML_BYTES_MAX - ((size_t)1 << 20)) /* the page itself has the rest */
#define HALVINGS_MAX 12u
#define TEXT_BYTES_MAX 1000u
#define TEXT_BYTES_WHOLE 20000u

/* The page without data, embedded by html_page.S: the parts before and after the data. */
extern const char torsh_html_page_head[], torsh_html_page_tail[];
extern const uint64_t torsh_html_page_head_bytes, torsh_html_page_tail_bytes;
extern const char torsh_html_diff_head[], torsh_html_diff_tail[];
extern const uint64_t torsh_html_diff_head_bytes, torsh_html_diff_tail_bytes;
extern const char torsh_html_job_head[], torsh_html_job_tail[];
extern const uint64_t torsh_html_job_head_bytes, torsh_html_job_tail_bytes;

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

/* Begin a JSON document of the page with the current limits. */
static void begin(struct html_page *page)
{
	page->texts = (struct html_texts){
		.n_max = page->is_whole ? TEXT_BYTES_WHOLE : TEXT_BYTES_MAX >> page->n_halved / 2};
	torsh_html_frames_restart(&page->frames);
	torsh_json_open_memory(&page->json);
	torsh_json_begin_object(&page->json, NULL);
	torsh_json_put_u64(&page->json, "version", 1);
}

/* Returns the document, which the caller frees. */
static char *finish(struct html_page *page)
{
	torsh_html_frames_put(&page->frames, &page->texts, &page->json);
	torsh_html_texts_put(&page->texts, &page->json);
	torsh_json_end_object(&page->json);
	torsh_html_texts_free(&page->texts);
	return torsh_json_close_memory(&page->json);
}

static char *make_document(struct html_page *page)
{
	begin(page);
	torsh_json_put_u64(&page->json, "n_halved", page->n_halved);
	torsh_html_overview_put(page);
	torsh_html_memory_put(page);
	torsh_html_rss_put(page);
	torsh_html_census_put(page);
	torsh_html_time_put(page);
	torsh_html_findings_put(page);
	torsh_html_timeline_put(page);
	torsh_html_devices_put(page);
	return finish(page);
}

/* Returns its length in the page, where "<" takes six bytes. */
static size_t count_bytes(const char *document)
{
	size_t n = 0;

	for (; *document; document++)
		n += *document == '<' ? 6 : 1;
	return n;
}

/* Only "<" can end a script element or begin a comment in it; in JSON it occurs only in texts. */
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

char *torsh_html_document(struct trace *trace)
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
	torsh_html_devices_free(&page);
	torsh_html_timeline_free(&page);
	torsh_html_findings_free(&page);
	torsh_html_time_free(&page);
	torsh_html_memory_free(&page);
	torsh_html_frames_free(&page.frames);
	return document;
}

static char *make_part(struct html_page *page, void (*collect)(struct html_page *page),
		       void (*put)(struct html_page *page), void (*release)(struct html_page *page))
{
	char *document;

	page->is_whole = true;
	torsh_html_frames_create(&page->frames);
	if (collect)
		collect(page);
	begin(page);
	put(page);
	document = finish(page);
	release(page);
	torsh_html_frames_free(&page->frames);
	return document;
}

char *torsh_html_memory(struct trace *trace)
{
	return make_part(&(struct html_page){.trace = trace}, torsh_html_memory_collect,
			 torsh_html_memory_put, torsh_html_memory_free);
}

char *torsh_html_time(struct trace *trace)
{
	return make_part(&(struct html_page){.trace = trace}, torsh_html_time_collect,
			 torsh_html_time_put, torsh_html_time_free);
}

char *torsh_html_window(struct trace *trace, size_t process, uint64_t from_ns, uint64_t to_ns)
{
	struct html_page page = {.trace = trace};

	torsh_html_window_collect(&page, process, from_ns, to_ns);
	return make_part(&page, NULL, torsh_html_window_put, torsh_html_timeline_free);
}

const char *torsh_html_policy(size_t *n)
{
	static const char before[] = "Content-Security-Policy\" content=\"";
	const char *policy = memmem(torsh_html_page_head, torsh_html_page_head_bytes, before,
				    sizeof(before) - 1);

	assert(policy);
	policy += sizeof(before) - 1;
	*n = strcspn(policy, "\"");
	return policy;
}

void torsh_html_put_empty(FILE *out)
{
	static const char directive[] = "connect-src 'self'; ";
	size_t n;
	const char *policy = torsh_html_policy(&n),
		   *end = torsh_html_page_head + torsh_html_page_head_bytes;

	fwrite(torsh_html_page_head, 1, (size_t)(policy - torsh_html_page_head), out);
	fputs(directive, out);
	fwrite(policy, 1, (size_t)(end - policy), out);
	fwrite(torsh_html_page_tail, 1, torsh_html_page_tail_bytes, out);
}

/* JSON inside of the page's script element, which no "<" may end. */
static void put_data(FILE *out, const char *document)
{
	for (; *document; document++) {
		if (*document == '<')
			fputs("\\u003c", out);
		else
			putc(*document, out);
	}
}

bool torsh_html_put_diff(FILE *out, const char *document)
{
	if (count_bytes(document) > DATA_BYTES_MAX)
		return false;
	fwrite(torsh_html_diff_head, 1, torsh_html_diff_head_bytes, out);
	put_data(out, document);
	fwrite(torsh_html_diff_tail, 1, torsh_html_diff_tail_bytes, out);
	return true;
}

bool torsh_html_put_job(FILE *out, const char *document)
{
	if (count_bytes(document) > DATA_BYTES_MAX)
		return false;
	fwrite(torsh_html_job_head, 1, torsh_html_job_head_bytes, out);
	put_data(out, document);
	fwrite(torsh_html_job_tail, 1, torsh_html_job_tail_bytes, out);
	return true;
}

static int write_html(struct trace *trace)
{
	char *document = torsh_html_document(trace);

	torsh_stream_put(trace->output, torsh_html_page_head, torsh_html_page_head_bytes);
	put_document(trace->output, document);
	torsh_stream_put(trace->output, torsh_html_page_tail, torsh_html_page_tail_bytes);
	free(document);
	return 0;
}

const struct trace_format torsh_trace_html = {
	.name = "html",
	.ending = ".html",
	.needs_heap = true,
	.needs = TRACE_NEEDS_NOTHING,
	.write = write_html,
};
