/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/allocator/allocator_settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define MIB_MAX (UINT64_C(1) << 32) /* upper bound of a size in MiB */
#define DEFAULT_ROUNDING_BYTES (20 * MIB)
#define MIN_SPLIT_MIB 20 /* PyTorch refuses a smaller one */

void torsh_allocator_settings_default(struct allocator_settings *settings)
{
	*settings = (struct allocator_settings){
		.is_native = true,
		.max_split_bytes = UINT64_MAX,
		.max_rounding_bytes = DEFAULT_ROUNDING_BYTES,
	};
}

/* Parse a decimal number. Returns what follows it, or NULL. */
static const char *parse_number(const char *at, uint64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)*at))
		return NULL;
	errno = 0;
	*number = strtoull(at, &end, 10);
	return errno || *number > MIB_MAX ? NULL : end;
}

static const char *parse_mib(const char *at, uint64_t *bytes)
{
	at = parse_number(at, bytes);
	*bytes *= MIB;
	return at;
}

static const char *parse_bool(const char *at, bool *is_true)
{
	*is_true = strncmp(at, "True", strlen("True")) == 0;
	if (*is_true)
		return at + strlen("True");
	return strncmp(at, "False", strlen("False")) == 0 ? at + strlen("False") : NULL;
}

static const char *parse_fraction(const char *at, double *fraction)
{
	char *end;

	if (!isdigit((unsigned char)*at) && *at != '.')
		return NULL;
	*fraction = strtod(at, &end);
	return *fraction > 0 && *fraction < 1 ? end : NULL;
}

static unsigned log2_of(uint64_t number)
{
	return 63u - (unsigned)__builtin_clzll(number | 1);
}

static void fill(uint64_t *divisions, unsigned first, unsigned end, uint64_t value)
{
	for (unsigned i = first; i < end && i < ROUNDUP_INTERVALS; i++)
		divisions[i] = value;
}

/* Parse "256:1,512:2,>:8]": divisions from a size in MiB on; ">" is all larger sizes. */
static const char *parse_division_list(const char *at, uint64_t *divisions)
{
	uint64_t mib, value;
	unsigned interval = 0;

	for (bool is_first = true;; is_first = false) {
		bool is_rest = *at == '>';

		at = is_rest ? at + 1 : parse_number(at, &mib);
		if (!at || *at != ':')
			return NULL;
		at = parse_number(at + 1, &value);
		if (!at || (!is_rest && !mib))
			return NULL;
		if (is_rest) {
			fill(divisions, is_first ? 0 : interval + 1, ROUNDUP_INTERVALS, value);
		} else {
			unsigned next = log2_of(mib);

			fill(divisions, is_first ? 0 : next, next + 1, value);
			interval = next;
		}
		if (*at == ']')
			return at + 1;
		if (*at++ != ',')
			return NULL;
	}
}

static const char *parse_divisions(const char *at, uint64_t *divisions)
{
	uint64_t value;

	if (*at == '[')
		return parse_division_list(at + 1, divisions);
	at = parse_number(at, &value);
	if (at)
		fill(divisions, 0, ROUNDUP_INTERVALS, value);
	return at;
}

/* Skip the value of a key that the model doesn't need. */
static const char *skip_value(const char *at)
{
	return *at == '[' ? at + strcspn(at, "]") + (strchr(at, ']') != NULL)
			  : at + strcspn(at, ",");
}

static bool is_key(const char *at, size_t n, const char *key)
{
	return strlen(key) == n && strncmp(at, key, n) == 0;
}

/* Returns what follows the value, or NULL if it is malformed. */
static const char *parse_value(struct allocator_settings *settings, const char *key, size_t n,
			       const char *at)
{
	if (is_key(key, n, "expandable_segments"))
		return parse_bool(at, &settings->is_expandable);
	if (is_key(key, n, "max_split_size_mb")) {
		at = parse_mib(at, &settings->max_split_bytes);
		return settings->max_split_bytes < MIN_SPLIT_MIB * MIB ? NULL : at;
	}
	if (is_key(key, n, "max_non_split_rounding_mb"))
		return parse_mib(at, &settings->max_rounding_bytes);
	if (is_key(key, n, "garbage_collection_threshold"))
		return parse_fraction(at, &settings->collection_threshold);
	if (is_key(key, n, "roundup_power2_divisions"))
		return parse_divisions(at, settings->roundup_divisions);
	if (is_key(key, n, "backend"))
		settings->is_native = strncmp(at, "native", strlen("native")) == 0;
	return skip_value(at);
}

int torsh_allocator_settings_parse(struct allocator_settings *settings, const char *text,
				   const char **at)
{
	for (*at = text; **at; *at += **at == ',') {
		size_t n = strcspn(*at, ":,");
		const char *end;

		if ((*at)[n] != ':' || n == 0)
			return -EINVAL;
		end = parse_value(settings, *at, n, *at + n + 1);
		if (!end || (*end && *end != ','))
			return -EINVAL;
		*at = end;
	}
	return 0;
}
