/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/sentence.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/findings_json.h"
#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/frames/short_name.h"

struct writer {
	FILE *out;
	const struct finding *finding;
	struct symbols *symbols;
};

static bool is_word(const char *name, size_t n, const char *word)
{
	return strlen(word) == n && memcmp(name, word, n) == 0;
}

static const struct evidence *find_evidence(const struct finding *finding, const char *name,
					    size_t n)
{
	for (size_t i = 0; i < finding->n_evidence; i++) {
		if (is_word(name, n, finding->evidence[i].name))
			return &finding->evidence[i];
	}
	return NULL;
}

static const char *find_text(const struct finding *finding, const char *name, size_t n)
{
	if (is_word(name, n, "operator"))
		return finding->operator_name;
	if (is_word(name, n, "kernel"))
		return finding->kernel;
	if (is_word(name, n, "api"))
		return finding->api;
	return is_word(name, n, "note") ? finding->note : NULL;
}

static bool has_value(const struct finding *finding, const char *name, size_t n)
{
	if (is_word(name, n, "device"))
		return finding->has_device;
	return find_text(finding, name, n) || find_evidence(finding, name, n);
}

/* Saturates: a sum may exceed UINT64_MAX. */
static uint64_t whole(double value)
{
	return value < 0x1p63 ? (uint64_t)fmax(value, 0) : UINT64_C(1) << 63;
}

/* "1 copy a step", "12,345 calls", "1.5 calls a step": the first word of the unit is plural. */
static void put_count(FILE *out, double value, const char *unit)
{
	size_t n = strcspn(unit, " "), n_word = n;
	const char *ending = "";
	char text[SIZE_TEXT_BYTES];

	if (value == 1 && n > 3 && strncmp(unit + n - 3, "ies", 3) == 0) {
		n -= 3;
		ending = "y";
	} else if (value == 1 && n && unit[n - 1] == 's') {
		n--;
	}
	if (value == floor(value) && value >= 0)
		fputs(torsh_size_grouped(whole(value), text), out);
	else
		fprintf(out, "%.3g", value);
	fprintf(out, " %.*s%s%s", (int)n, unit, ending, unit + n_word);
}

static void put_evidence(FILE *out, const struct evidence *evidence)
{
	const char *unit = evidence->unit;
	char text[SIZE_TEXT_BYTES];

	if (strncmp(unit, "ns", 2) == 0)
		fputs(torsh_size_duration(whole(evidence->value), text), out);
	else if (strcmp(unit, "bytes") == 0)
		fputs(torsh_size_human(whole(evidence->value), text), out);
	else if (strcmp(unit, "rank") == 0 || strcmp(unit, "step") == 0)
		fprintf(out, "%s %.0f", unit, evidence->value);
	else if (strcmp(unit, "generation") == 0)
		fprintf(out, "%.0f", evidence->value);
	else if (strncmp(unit, "percent", 7) == 0)
		fputs(torsh_size_percent(evidence->value, 100, text), out);
	else
		put_count(out, evidence->value, unit);
}

static void put_value(const struct writer *writer, const char *name, size_t n)
{
	const struct finding *finding = writer->finding;
	const char *text = find_text(finding, name, n);

	if (is_word(name, n, "device")) {
		fprintf(writer->out, "%" PRIu32, finding->device);
	} else if (is_word(name, n, "kernel") && text) {
		char *kernel = torsh_short_function(torsh_finding_kernel(finding, writer->symbols));

		fputs(kernel, writer->out);
		free(kernel);
	} else if (text) {
		fputs(text, writer->out);
	} else if (has_value(finding, name, n)) {
		put_evidence(writer->out, find_evidence(finding, name, n));
	} else {
		fputs("an unknown one", writer->out);
	}
}

/* Returns whether each name up to the next ] has a value. */
static bool has_all(const struct finding *finding, const char *text)
{
	for (; *text != ']'; text++) {
		if (*text == '{' && !has_value(finding, text + 1, strcspn(text + 1, "}")))
			return false;
	}
	return true;
}

char *torsh_finding_sentence(const struct finding *finding, struct symbols *symbols)
{
	const char *start = torsh_rules[finding->rule].sentence, *at = start;
	struct writer writer = {.finding = finding, .symbols = symbols};
	bool is_capital = false;
	char *text = NULL;
	size_t n_text, n;

	writer.out = torsh_need(open_memstream(&text, &n_text));
	for (; *at; at++) {
		if (*at == '[' && !has_all(finding, at)) {
			is_capital = at == start;
			at = strchr(at, ']');
		} else if (*at == '{') {
			n = strcspn(at + 1, "}");
			put_value(&writer, at + 1, n);
			at += n + 1;
		} else if (*at != '[' && *at != ']') {
			fputc(is_capital ? toupper(*at) : *at, writer.out);
			is_capital = false;
		}
	}
	if (fclose(writer.out))
		torsh_die("out of memory");
	return torsh_need(text);
}

char *torsh_finding_place(const struct finding *finding, struct symbols *symbols)
{
	char *line = torsh_finding_line(finding, symbols), *text = NULL;
	bool is_named = strstr(torsh_rules[finding->rule].sentence, "{operator}");
	const char *parts[] = {is_named ? NULL : finding->operator_name, line}, *separator = "";
	size_t n_text;
	FILE *out = torsh_need(open_memstream(&text, &n_text));

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (!parts[i])
			continue;
		fprintf(out, "%s%s", separator, parts[i]);
		separator = ", ";
	}
	if (fclose(out))
		torsh_die("out of memory");
	free(line);
	torsh_need(text);
	if (n_text)
		return text;
	free(text);
	return NULL;
}

bool torsh_finding_is_remark(const struct finding *finding)
{
	return finding->rule == RULE_PROFILER_TOO_HEAVY && finding->severity < SEVERITY_HIGH;
}
