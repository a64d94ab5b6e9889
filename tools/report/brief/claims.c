/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/brief/claims.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/json_reader.h"
#include "tools/base/json_writer.h"
#include "tools/base/regular.h"

#define FILE_BYTES_MAX (16u << 20) /* the JSON form of a long command has some kilobytes */
#define COMMENT "<!-- torsh-claims "

static struct claim *add(struct claims *claims)
{
	claims->items = torsh_array_reserve(claims->items, claims->n, &claims->n_room,
					    sizeof(*claims->items));
	claims->items[claims->n] = (struct claim){.figure = N_FIGURES, .gain_pct = NAN};
	return &claims->items[claims->n++];
}

void torsh_claims_take(struct claims *claims, const struct brief *brief)
{
	for (size_t i = 0; i < brief->n_hypotheses; i++) {
		const struct brief_hypothesis *hypothesis = &brief->hypotheses[i];
		struct claim *claim = add(claims);

		claim->rule = torsh_need(strdup(torsh_brief_rule(hypothesis)));
		claim->figure = hypothesis->figure;
		claim->gain_pct = hypothesis->gain_pct;
	}
}

void torsh_claims_free(struct claims *claims)
{
	for (size_t i = 0; i < claims->n; i++)
		free(claims->items[i].rule);
	free(claims->items);
	*claims = (struct claims){0};
}

void torsh_claims_write(FILE *out, const struct brief *brief, size_t n)
{
	struct json_writer json;
	char *text;

	torsh_json_open_memory(&json);
	torsh_json_begin_with(&json, NULL, false, &torsh_json_compact);
	for (size_t i = 0; i < n; i++) {
		const struct brief_hypothesis *hypothesis = &brief->hypotheses[i];

		torsh_json_begin_object(&json, NULL);
		torsh_json_put_text(&json, "rule", torsh_brief_rule(hypothesis));
		if (hypothesis->figure != N_FIGURES)
			torsh_json_put_text(&json, "figure",
					    torsh_brief_figure_names[hypothesis->figure]);
		if (!isnan(hypothesis->gain_pct))
			torsh_json_put_rounded(&json, "gain_pct", hypothesis->gain_pct, 4);
		torsh_json_end_object(&json);
	}
	torsh_json_end_array(&json);
	text = torsh_json_close_memory(&json);
	fprintf(out, "\n" COMMENT "%s -->\n", text);
	free(text);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct bytes {
	const char *text;
	size_t at, n;
};

static size_t fill(void *source, char *out, size_t n)
{
	struct bytes *bytes = source;

	n = n < bytes->n - bytes->at ? n : bytes->n - bytes->at;
	memcpy(out, bytes->text + bytes->at, n);
	bytes->at += n;
	return n;
}

static enum brief_figure figure_of(struct json_slice name)
{
	for (enum brief_figure figure = 0; figure < N_FIGURES; figure++) {
		const char *known = torsh_brief_figure_names[figure];

		if (strlen(known) == name.n && memcmp(known, name.text, name.n) == 0)
			return figure;
	}
	return N_FIGURES;
}

/* Read a member of a hypothesis; what a claim has no need of is skipped. */
static void read_member(struct json_reader *json, struct json_slice name, struct claim *claim)
{
	struct json_slice text;
	bool is_whole;

	if (torsh_json_is(name, "rule") && torsh_json_peek(json) == JSON_TEXT) {
		free(claim->rule);
		claim->rule = torsh_json_text(json, &text) ? torsh_need(strndup(text.text, text.n))
							   : NULL;
	} else if (torsh_json_is(name, "figure") && torsh_json_peek(json) == JSON_TEXT) {
		if (torsh_json_text(json, &text))
			claim->figure = figure_of(text);
	} else if (torsh_json_is(name, "gain_pct") && torsh_json_peek(json) == JSON_NUMBER) {
		torsh_json_number(json, &claim->gain_pct, &is_whole);
	} else {
		torsh_json_skip(json);
	}
}

/* Returns false if it is no array of claims. */
static bool read_array(struct json_reader *json, struct claims *claims)
{
	bool is_open = false;

	if (!torsh_json_enter(json, JSON_ARRAY))
		return false;
	while (torsh_json_item(json, &is_open)) {
		struct claim *claim = add(claims);
		struct json_slice name;
		bool is_inner_open = false;

		if (claims->n > CLAIMS_MAX || !torsh_json_enter(json, JSON_OBJECT))
			return false;
		while (torsh_json_member(json, &is_inner_open, &name))
			read_member(json, name, claim);
		if (!claim->rule)
			return false;
	}
	return !json->fault;
}

static bool read_document(struct json_reader *json, struct claims *claims)
{
	struct json_slice name;
	bool is_open = false, is_read = false;

	if (!torsh_json_enter(json, JSON_OBJECT))
		return false;
	while (torsh_json_member(json, &is_open, &name)) {
		if (!torsh_json_is(name, "hypotheses"))
			torsh_json_skip(json);
		else if (is_read || !read_array(json, claims))
			return false;
		else
			is_read = true;
	}
	return is_read && !json->fault;
}

/* The last comment counts: what the brief quotes comes before it. */
static const char *find_comment(const char *text)
{
	const char *found = NULL;

	for (const char *at = text; (at = strstr(at, "\n" COMMENT)); at++)
		found = at + strlen("\n" COMMENT);
	return found;
}

/* Returns the file as a text, which the caller frees. */
static char *read_file(const char *path)
{
	int fd = torsh_open_regular(path);
	char *text = torsh_need(malloc(FILE_BYTES_MAX + 1));
	size_t n = 0;
	ssize_t got = 0;

	if (fd < 0)
		torsh_die("%s can't be read: %s", path, strerror(-fd));
	while (n < FILE_BYTES_MAX && (got = read(fd, text + n, FILE_BYTES_MAX - n)) > 0)
		n += (size_t)got;
	close(fd);
	if (got < 0 || n == FILE_BYTES_MAX)
		torsh_die("%s can't be read: %s", path,
			  got < 0 ? strerror(errno) : "it is too large");
	text[n] = '\0';
	return text;
}

void torsh_claims_read(struct claims *claims, const char *path)
{
	char *text = read_file(path);
	bool is_json = text[strspn(text, " \t\r\n")] == '{', is_read;
	const char *begin = is_json ? text : find_comment(text), *end;
	struct json_reader json;
	struct bytes bytes = {0};

	if (!begin)
		torsh_die("%s is no brief: it has no claims (torsh brief DIR -o %s writes one)",
			  path, path);
	end = is_json ? NULL : strstr(begin, " -->");
	bytes = (struct bytes){.text = begin, .n = end ? (size_t)(end - begin) : strlen(begin)};
	torsh_json_reader_start(&json, fill, &bytes);
	is_read = is_json ? read_document(&json, claims) : read_array(&json, claims);
	if (!is_read)
		torsh_die("%s is no brief: its claims can't be read%s%s", path,
			  json.fault ? ": " : "", json.fault ? json.fault : "");
	torsh_json_reader_free(&json);
	free(text);
}
