/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/traffic/uncore_pmus.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

#define SOURCES "sys/bus/event_source/devices"
#define TEXT_BYTES 512u
#define NAMES_MAX 2u /* a channel may count its halves apart */
#define SOURCES_MAX 256u

/*
 * Sources of memory controllers, and what they call reads and writes. The first kind of which all
 * sources have all events is counted, and no other: some machines have two that count the same.
 *
 * Intel's kernel driver shows its events with their scale. That of AMD's shows only how an event is
 * put together; event 0x0a of a memory controller is a column access of 64 bytes, by the manuals of
 * family 19h from model 10h on (PPR, UMC performance monitors), and rdwrmask chooses the direction.
 */
static const struct kind {
	const char *source;
	const char *reads[NAMES_MAX], *writes[NAMES_MAX];
	const char *read_terms, *write_terms; /* in place of names */
	double bytes; /* of a count of these */
} kinds[] = {
	{.source = "uncore_imc", .reads = {"cas_count_read"}, .writes = {"cas_count_write"}},
	{.source = "uncore_imc",
	 .reads = {"cas_count_read_sch0", "cas_count_read_sch1"},
	 .writes = {"cas_count_write_sch0", "cas_count_write_sch1"}},
	{.source = "uncore_imc", .reads = {"data_reads"}, .writes = {"data_writes"}},
	{.source = "uncore_imc_free_running", .reads = {"data_read"}, .writes = {"data_write"}},
	{.source = "uncore_imc_free_running", .reads = {"read"}, .writes = {"write"}},
	{.source = "amd_umc",
	 .read_terms = "event=0x0a,rdwrmask=0x1",
	 .write_terms = "event=0x0a,rdwrmask=0x2",
	 .bytes = 64},
};

#define N_KINDS (sizeof(kinds) / sizeof(*kinds))

/* Sources that belong to memory: of the last ones it isn't shown what their events count. */
static const char *const of_memory[] = {
	"uncore_imc", "uncore_imc_free_running", "amd_umc", "amd_df", "arm_cmn", "arm_dmc620"};

#define N_OF_MEMORY (sizeof(of_memory) / sizeof(*of_memory))

struct source {
	const char *root;
	char name[UNCORE_NAME_BYTES];
	uint32_t type;
};

/* ---- files ----------------------------------------------------------------------------------- */

/* Read a file of a source, without the end of its line; false: there is none. */
static bool read_text(const struct source *source, const char *folder, const char *name,
		      const char *ending, char text[TEXT_BYTES])
{
	char path[PATH_MAX];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/%s/%s/%s%s%s%s", source->root, SOURCES, source->name,
		 folder, *folder ? "/" : "", name, ending);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, TEXT_BYTES - 1);
		close(fd);
	}
	if (n <= 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return true;
}

/* Read a number, decimal or hexadecimal, and go on after it. */
static bool take_number(const char **text, uint64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	*number = strtoull(*text, &end, 0);
	*text = end;
	return true;
}

static bool read_number(const struct source *source, const char *name, uint64_t *number)
{
	char text[TEXT_BYTES];
	const char *at = text;

	return read_text(source, "", name, "", text) && take_number(&at, number) && !*at;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Put the lowest bits of the value into bits first to last. Returns the value's other bits. */
static uint64_t put_bits(uint64_t *config, uint64_t value, uint64_t first, uint64_t last)
{
	uint64_t n = last - first + 1, mask = n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;

	*config = (*config & ~(mask << first)) | (value & mask) << first;
	return n < 64 ? value >> n : 0;
}

/* Put a term's value where its format, as "config1:0-7,32-35", wants it. */
static bool put_formatted(uint64_t config[UNCORE_CONFIGS], const char *format, uint64_t value)
{
	uint64_t which = 0, first, last;

	if (strncmp(format, "config", strlen("config")))
		return false;
	format += strlen("config");
	take_number(&format, &which);
	if (which >= UNCORE_CONFIGS || *format != ':')
		return false;
	do {
		format++;
		if (!take_number(&format, &first))
			return false;
		last = first;
		if (*format == '-' && (format++, !take_number(&format, &last)))
			return false;
		if (last < first || last > 63)
			return false;
		value = put_bits(&config[which], value, first, last);
	} while (*format == ',');
	return !*format && !value;
}

/* Put all terms of an event, as "event=0x04,umask=0x0f,edge": without a value it is 1. */
static bool put_terms(const struct source *source, const char *terms, struct uncore_event *event)
{
	char name[UNCORE_NAME_BYTES], format[TEXT_BYTES];

	while (*terms) {
		size_t n = strcspn(terms, "=,");
		uint64_t value = 1;

		if (!n || n >= sizeof(name))
			return false;
		memcpy(name, terms, n);
		name[n] = '\0';
		terms += n;
		if (*terms == '=' && (terms++, !take_number(&terms, &value)))
			return false;
		if (*terms == ',')
			terms++;
		else if (*terms)
			return false;
		if (!read_text(source, "format", name, "", format) ||
		    !put_formatted(event->config, format, value))
			return false;
	}
	return true;
}

/* The bytes of a unit; 0: it is none of bytes. */
static double bytes_of(const char *unit)
{
	static const struct {
		const char *name;
		double bytes;
	} units[] = {{"Bytes", 1},    {"B", 1},	   {"KiB", 0x1p10}, {"MiB", 0x1p20},
		     {"GiB", 0x1p30}, {"KB", 1e3}, {"MB", 1e6},	    {"GB", 1e9}};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (!strcmp(unit, units[i].name))
			return units[i].bytes;
	}
	return 0;
}

static bool read_event(const struct source *source, const char *name, struct uncore_event *event)
{
	char terms[TEXT_BYTES], scale[TEXT_BYTES], unit[TEXT_BYTES], *end;

	if (!read_text(source, "events", name, "", terms) ||
	    !read_text(source, "events", name, ".scale", scale) ||
	    !read_text(source, "events", name, ".unit", unit))
		return false;
	/* The writer has the locale "C". */
	event->bytes = strtod(scale, &end) * bytes_of(unit);
	return end != scale && !*end && event->bytes > 0 && event->bytes < 0x1p30 &&
	       put_terms(source, terms, event);
}

/* ---- sources --------------------------------------------------------------------------------- */

/* Add the event once for each CPU of a list as "0,28-29". */
static bool add_event(struct uncore_pmus *pmus, size_t *room, struct uncore_event event,
		      const char *cpus)
{
	uint64_t first, last;

	do {
		cpus += *cpus == ',';
		if (!take_number(&cpus, &first))
			return false;
		last = first;
		if (*cpus == '-' && (cpus++, !take_number(&cpus, &last)))
			return false;
		for (; first <= last; first++) {
			if (pmus->n_events == UNCORE_COUNTERS_MAX || first > INT32_MAX)
				return false;
			pmus->events = torsh_array_reserve(pmus->events, pmus->n_events, room,
							   sizeof(*pmus->events));
			event.cpu = (uint32_t)first;
			pmus->events[pmus->n_events++] = event;
		}
	} while (*cpus == ',');
	return !*cpus;
}

/* Add what counts one direction. */
static bool add_direction(struct uncore_pmus *pmus, size_t *room, const struct source *source,
			  const struct kind *kind, bool is_write, const char *cpus)
{
	const char *const *names = is_write ? kind->writes : kind->reads;
	const char *terms = is_write ? kind->write_terms : kind->read_terms;
	struct uncore_event event = {
		.type = source->type, .bytes = kind->bytes, .is_write = is_write};

	if (terms)
		return put_terms(source, terms, &event) && add_event(pmus, room, event, cpus);
	for (size_t i = 0; i < NAMES_MAX && names[i]; i++) {
		struct uncore_event named = event;

		if (!read_event(source, names[i], &named) || !add_event(pmus, room, named, cpus))
			return false;
	}
	return true;
}

static bool add_source(struct uncore_pmus *pmus, size_t *room, const struct source *source,
		       const struct kind *kind)
{
	char cpus[TEXT_BYTES];

	return read_text(source, "", "cpumask", "", cpus) &&
	       add_direction(pmus, room, source, kind, false, cpus) &&
	       add_direction(pmus, room, source, kind, true, cpus);
}

/* Whether the name is that, or that and a number: uncore_imc, uncore_imc_0. */
static bool is_named(const char *name, const char *source)
{
	size_t n = strlen(source);

	if (strncmp(name, source, n))
		return false;
	return !name[n] ||
	       (name[n] == '_' && name[n + 1] && !name[n + 1 + strspn(name + n + 1, "0123456789")]);
}

/* Add all sources of a kind. Returns false, with none added, if there are none or one is amiss. */
static bool add_kind(struct uncore_pmus *pmus, const struct source *sources, uint32_t n,
		     const struct kind *kind)
{
	size_t room = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!is_named(sources[i].name, kind->source))
			continue;
		if (!add_source(pmus, &room, &sources[i], kind)) {
			torsh_uncore_pmus_free(pmus);
			return false;
		}
		pmus->n_sources++;
	}
	snprintf(pmus->name, sizeof(pmus->name), "%s", pmus->n_sources ? kind->source : "");
	return pmus->n_sources;
}

/* Returns which of these it is; N_OF_MEMORY: none. */
static size_t of_which(const char *name)
{
	size_t i = 0;

	while (i < N_OF_MEMORY && !is_named(name, of_memory[i]))
		i++;
	return i;
}

static uint32_t list_sources(struct source sources[SOURCES_MAX], const char *root)
{
	char path[PATH_MAX];
	struct dirent *entry;
	uint32_t n = 0;
	uint64_t type;
	DIR *folder;

	snprintf(path, sizeof(path), "%s/%s", root, SOURCES);
	folder = opendir(path);
	while (folder && n < SOURCES_MAX && (entry = readdir(folder))) {
		struct source *source = &sources[n];

		*source = (struct source){.root = root};
		if (strlen(entry->d_name) >= sizeof(source->name) ||
		    of_which(entry->d_name) == N_OF_MEMORY)
			continue;
		strcpy(source->name, entry->d_name);
		if (!read_number(source, "type", &type) || type > UINT32_MAX)
			continue;
		source->type = (uint32_t)type;
		n++;
	}
	if (folder)
		closedir(folder);
	return n;
}

void torsh_uncore_pmus_find(struct uncore_pmus *pmus, const char *root)
{
	struct source *sources = torsh_memory_new(SOURCES_MAX, sizeof(*sources));
	uint32_t n = list_sources(sources, root);

	*pmus = (struct uncore_pmus){.problem = TRAFFIC_COUNTED};
	for (size_t k = 0; k < N_KINDS && n < SOURCES_MAX && !pmus->n_sources; k++)
		add_kind(pmus, sources, n, &kinds[k]);
	if (!pmus->n_sources) {
		pmus->problem = n ? TRAFFIC_UNNAMED : TRAFFIC_NO_SOURCE;
		if (n)
			strcpy(pmus->name, of_memory[of_which(sources[0].name)]);
	}
	free(sources);
}

void torsh_uncore_pmus_free(struct uncore_pmus *pmus)
{
	free(pmus->events);
	*pmus = (struct uncore_pmus){0};
}
