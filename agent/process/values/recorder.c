/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/process/values/recorder.h"

#include <signal.h>
#include <string.h>

#include "agent/process/values/value.h"
#include "agent/process/text_buffer.h"

#define RING_LEAST_NS UINT64_C(1000000000)
#define RING_MOST_NS UINT64_C(604800000000000) /* a week */
#define RING_MOST_STEPS 1000000u
#define RING_LEAST_BYTES (UINT64_C(1) << 20)
#define RING_MOST_BYTES (UINT64_C(1) << 40)
#define HANG_LEAST_NS UINT64_C(1000000000)
#define REAL_TIME_SIGNALS 30u /* after SIGRTMIN */
#define SLOW_LEAST_PERCENT 110u
#define SLOW_MOST_PERCENT 100000u

static const char *const mode_names[N_RECORD_MODES] = {
#define RECORD_MODE(NAME, name, text) name,
	RECORD_MODES
#undef RECORD_MODE
};

/* The text after `start` if value begins with it, else NULL. */
static const char *after(const char *value, const char *start)
{
	size_t length = strlen(start);

	return strncmp(value, start, length) ? NULL : value + length;
}

static int parse_ring(const char *value, struct record_config *record)
{
	size_t n_digits = strspn(value, "0123456789");
	struct record_config parsed = {.mode = RECORD_LAST_STEPS};

	if (!strcmp(value + n_digits, "steps")) {
		if (torsh_value_digits(value, n_digits, &parsed.amount) || !parsed.amount ||
		    parsed.amount > RING_MOST_STEPS)
			return -1;
	} else if (value[n_digits] && strchr("smh", value[n_digits])) {
		parsed.mode = RECORD_LAST_NS;
		if (torsh_value_time(value, RING_LEAST_NS, RING_MOST_NS, &parsed.amount))
			return -1;
	} else {
		parsed.mode = RECORD_LAST_BYTES;
		if (torsh_value_size(value, &parsed.amount) || parsed.amount < RING_LEAST_BYTES ||
		    parsed.amount > RING_MOST_BYTES)
			return -1;
	}
	*record = parsed;
	return 0;
}

int torsh_config_record(const char *value, struct record_config *record)
{
	const char *ring = after(value, "ring:");

	if (ring)
		return parse_ring(ring, record);
	for (int mode = RECORD_FOLDED; mode <= RECORD_FULL; mode++) {
		if (!strcmp(value, mode_names[mode])) {
			*record = (struct record_config){.mode = (enum record_mode)mode};
			return 0;
		}
	}
	return -1;
}

/* "2", "2.5", "1.25" */
static int parse_factor(const char *value, uint32_t *percent)
{
	size_t n_whole = strspn(value, "0123456789"), n_part = 0;
	uint64_t whole, part = 0;

	if (torsh_value_digits(value, n_whole, &whole) || whole > SLOW_MOST_PERCENT)
		return -1;
	if (value[n_whole] == '.') {
		n_part = strspn(value + n_whole + 1, "0123456789");
		if (n_part > 2 || torsh_value_digits(value + n_whole + 1, n_part, &part))
			return -1;
		part *= n_part == 1 ? 10 : 1;
		n_part++;
	}
	whole = whole * 100 + part;
	if (value[n_whole + n_part] || whole < SLOW_LEAST_PERCENT || whole > SLOW_MOST_PERCENT)
		return -1;
	*percent = (uint32_t)whole;
	return 0;
}

int torsh_config_signal(const char *value, uint32_t *signal)
{
	const char *real_time = after(value, "RTMIN+");
	uint64_t number;

	if (!strcmp(value, "USR1") || !strcmp(value, "USR2")) {
		*signal = value[3] == '1' ? SIGUSR1 : SIGUSR2;
		return 0;
	}
	if (!real_time || torsh_value_number(real_time, &number) || !number ||
	    number > REAL_TIME_SIGNALS)
		return -1;
	*signal = (uint32_t)SIGRTMIN + (uint32_t)number;
	return 0;
}

static int parse_trigger(const char *name, struct keep_config *keep)
{
	const char *slow = after(name, "slow:"), *hang = after(name, "hang:"),
		   *signal = after(name, "signal:");

	if (!strcmp(name, "memory")) {
		keep->on_memory = true;
		return 0;
	}
	if (slow)
		return parse_factor(slow, &keep->slow_percent);
	if (signal)
		return torsh_config_signal(signal, &keep->signal);
	return hang ? torsh_value_time(hang, HANG_LEAST_NS, RING_MOST_NS, &keep->hang_ns) : -1;
}

int torsh_config_keep(const char *value, struct keep_config *keep)
{
	struct keep_config parsed = {0};
	bool is_none = !strcmp(value, "none");

	while (!is_none && *value) {
		size_t length = strcspn(value, ",");
		char name[32];

		if (length >= sizeof(name))
			return -1;
		memcpy(name, value, length);
		name[length] = '\0';
		if (parse_trigger(name, &parsed))
			return -1;
		value += length + (value[length] == ',');
	}
	*keep = parsed;
	return 0;
}

void torsh_config_put_record(const struct record_config *record, struct text *text)
{
	torsh_text_put(text, mode_names[record->mode]);
	if (record->mode < RECORD_LAST_NS)
		return;
	torsh_text_put(text, ":");
	torsh_text_put_number(text, record->amount);
}

void torsh_config_put_keep(const struct keep_config *keep, struct text *text)
{
	torsh_text_put_number(text, keep->slow_percent);
	torsh_text_put(text, ":");
	torsh_text_put_number(text, keep->hang_ns);
	torsh_text_put(text, keep->on_memory ? ":1" : ":0");
}
