/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/process/config.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "agent/launch/launcher.h"
#include "agent/process/values/value.h"
#include "agent/process/text_buffer.h"
#include "agent/wire/channel.h"
#include "agent/wire/event.h"
#include "shim/hot.h"
#include "shim/sys.h"

#define PREFIX "TORSH_PROFILER_"
#define N_NAMES(names) (sizeof(names) / sizeof((names)[0]))

HOT struct config torsh_config = {
	.enabled = 1,
	.profile_memory = 1,
	.with_stack = 1,
	.follow = 1,
	.summary = 1,
	.reachability = 1,
	.record_shapes = 1,
	.with_modules = 1,
	.with_flops = 1,
	.activities = ACTIVITIES_OF_HOST | ACTIVITY_CUDA,
	.ring_bytes = CHANNEL_RING_DEFAULT_BYTES,
	.cpu_hz = CPU_HZ_DEFAULT,
	.reserve_bytes = UINT64_C(256) << 20,
	.checkpoint_ns = UINT64_C(5000000000),
	.keep = {.slow_percent = KEEP_SLOW_PERCENT, .on_memory = true, .hang_ns = KEEP_HANG_NS},
};

/* Each parse_KIND stores the value and returns 0, or stores nothing and returns -1. */

static int parse_flag(const char *value, bool *flag)
{
	if ((value[0] != '0' && value[0] != '1') || value[1])
		return -1;
	*flag = value[0] == '1';
	return 0;
}

static int parse_enabled(const char *value, bool *enabled)
{
	torsh_config.is_dormant = !strcmp(value, "dormant");
	if (!torsh_config.is_dormant)
		return parse_flag(value, enabled);
	*enabled = true;
	return 0;
}

static int parse_words(const char *value, const char **words)
{
	*words = *value ? value : NULL;
	return 0;
}

static int parse_labels(const char *value, const char **labels)
{
	if (!torsh_launcher_are_labels(value))
		return -1;
	*labels = value;
	return 0;
}

static int parse_number(const char *value, uint64_t *number)
{
	return torsh_value_number(value, number);
}

static int parse_size(const char *value, uint64_t *bytes)
{
	return torsh_value_size(value, bytes);
}

static int parse_ring(const char *value, uint32_t *ring_bytes)
{
	uint32_t rounded = CHANNEL_RING_MIN_BYTES;
	uint64_t bytes;

	if (parse_size(value, &bytes) || bytes < CHANNEL_RING_MIN_BYTES ||
	    bytes > CHANNEL_RING_MAX_BYTES)
		return -1;
	while (rounded < bytes)
		rounded *= 2;
	*ring_bytes = rounded;
	return 0;
}

static int parse_hertz(const char *value, uint32_t *hertz)
{
	uint64_t number;

	if (parse_number(value, &number) || number < 1 || number > CPU_HZ_MAX)
		return -1;
	*hertz = (uint32_t)number;
	return 0;
}

static int parse_one_of(const char *value, const char *no, const char *yes, bool *flag)
{
	if (strcmp(value, no) && strcmp(value, yes))
		return -1;
	*flag = !strcmp(value, yes);
	return 0;
}

/* Call each() for every piece between commas; stops at the first that it refuses. */
static int for_each_name(const char *value,
			 int (*each)(const char *name, size_t length, uint32_t *set), uint32_t *set)
{
	while (*value) {
		size_t length = strcspn(value, ",");

		if (each(value, length, set))
			return -1;
		value += length + (value[length] == ',');
	}
	return 0;
}

static bool is_name(const char *name, size_t length, const char *known)
{
	return strlen(known) == length && !strncmp(name, known, length);
}

static int add_activity(const char *name, size_t length, uint32_t *set)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} known[] = {
		{"heap", ACTIVITY_HEAP},       {"vm", ACTIVITY_VM},
		{"python", ACTIVITY_PYTHON},   {"cpu", ACTIVITIES_OF_HOST | ACTIVITY_SAMPLES},
		{"torch", ACTIVITY_TORCH},     {"cuda", ACTIVITY_CUDA},
		{"nvtx", ACTIVITY_NVTX},       {"itt", ACTIVITY_ITT},
		{"nccl", ACTIVITY_NCCL},       {"nccl:full", ACTIVITY_NCCL | ACTIVITY_NCCL_FULL},
		{"samples", ACTIVITY_SAMPLES}, {"mpi", ACTIVITY_MPI},
		{"waits", ACTIVITY_WAITS},     {"blas", ACTIVITY_BLAS},
		{"perf", ACTIVITY_PERF},
	};

	for (size_t i = 0; i < N_NAMES(known); i++)
		if (is_name(name, length, known[i].name)) {
			*set |= known[i].bit;
			return 0;
		}
	return -1;
}

static int parse_activities(const char *value, uint32_t *activities)
{
	uint32_t set = 0;

	if (for_each_name(value, add_activity, &set))
		return -1;
	*activities = set;
	return 0;
}

static int add_forward(const char *name, size_t length, uint32_t *set)
{
	static const char *const known[] = {"operators", "modules", "steps"};

	for (size_t i = 0; i < N_NAMES(known); i++)
		if (is_name(name, length, known[i])) {
			*set |= 1u << i;
			return 0;
		}
	return -1;
}

static int parse_forward(const char *value, uint32_t *forward)
{
	uint32_t set = 0;

	if (!*value || (strcmp(value, "none") && for_each_name(value, add_forward, &set)))
		return -1;
	*forward = set;
	return 0;
}

static int add_format(const char *name, size_t length, uint32_t *set)
{
	enum { ON_REQUEST, AT_END };
	static const struct {
		const char *name;
		int when;
	} known[] = {
#define FORMAT(name, holds, ending, when, ...) {#name, when},
#include "agent/wire/formats.def"
#undef FORMAT
	};

	for (size_t i = 0; i < N_NAMES(known); i++)
		if (known[i].when == AT_END && is_name(name, length, known[i].name)) {
			*set |= 1u << i;
			return 0;
		}
	return -1;
}

static int parse_formats(const char *value, const char **formats)
{
	uint32_t set = 0;

	if (for_each_name(value, add_format, &set))
		return -1;
	*formats = value;
	return 0;
}

static int parse_record(const char *value, struct record_config *record)
{
	return torsh_config_record(value, record);
}

static int parse_keep(const char *value, struct keep_config *keep)
{
	return torsh_config_keep(value, keep);
}

static int parse_signal(const char *value, uint32_t *signal)
{
	return torsh_config_signal(value, signal);
}

static int parse_allocator(const char *value, bool *is_jemalloc)
{
	return parse_one_of(value, "system", "jemalloc", is_jemalloc);
}

/* "exact", "sampled", "sampled:64K" */
static int parse_heap(const char *value, uint64_t *rate)
{
	static const char sampled[] = "sampled:";
	uint64_t bytes = HEAP_RATE_DEFAULT;

	if (!strncmp(value, sampled, sizeof(sampled) - 1)) {
		if (parse_size(value + sizeof(sampled) - 1, &bytes) || bytes < HEAP_RATE_MIN ||
		    bytes > HEAP_RATE_MAX)
			return -1;
	} else if (!strcmp(value, "exact")) {
		bytes = 0;
	} else if (strcmp(value, "sampled")) {
		return -1;
	}
	*rate = bytes;
	return 0;
}

static int parse_every(const char *value, uint32_t *every)
{
	uint64_t number;

	if (torsh_value_number(value, &number) || number > UINT32_MAX)
		return -1;
	*every = (uint32_t)number;
	return 0;
}

/* "100us", "1ms", "1s" */
static int parse_interval(const char *value, uint64_t *interval_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	size_t n_digits = strspn(value, "0123456789");
	uint64_t number;

	if (torsh_value_digits(value, n_digits, &number))
		return -1;
	for (size_t i = 0; i < N_NAMES(units); i++)
		if (!strcmp(value + n_digits, units[i].name) &&
		    !__builtin_mul_overflow(number, units[i].ns, &number) &&
		    number >= COUNTERS_INTERVAL_MIN_NS && number <= COUNTERS_INTERVAL_MAX_NS) {
			*interval_ns = number;
			return 0;
		}
	return -1;
}

static int parse_pause(const char *value, uint64_t *pause_ns)
{
	return torsh_value_time(value, CHECKPOINT_MIN_NS, CHECKPOINT_MAX_NS, pause_ns);
}

static int parse_counters(const char *value, struct counters_config *counters)
{
	static const char timeline[] = "timeline:";
	struct counters_config parsed = {.n_passes = 1, .interval_ns = COUNTERS_INTERVAL_NS};

	if (!strcmp(value, "off")) {
		parsed.mode = COUNTERS_OFF;
	} else if (!strcmp(value, "operators") || !strcmp(value, "operators:2")) {
		parsed.mode = COUNTERS_OF_OPERATORS;
		parsed.n_passes = value[sizeof("operators") - 1] ? 2 : 1;
	} else if (!strcmp(value, "operators:full")) {
		parsed.mode = COUNTERS_OF_OPERATORS;
		parsed.n_passes = COUNTERS_ALL_PASSES;
	} else if (!strcmp(value, "timeline")) {
		parsed.mode = COUNTERS_OF_TIMELINE;
	} else if (!strncmp(value, timeline, sizeof(timeline) - 1)) {
		parsed.mode = COUNTERS_OF_TIMELINE;
		if (parse_interval(value + sizeof(timeline) - 1, &parsed.interval_ns))
			return -1;
	} else {
		return -1;
	}
	*counters = parsed;
	return 0;
}

/*
 * "skip:N,wait:N,warmup:N,active:N,repeat:N": each at most once, in any order; active is required.
 */
static int parse_schedule(const char *value, struct schedule *schedule)
{
	static const char *const names[] = {"skip", "wait", "warmup", "active", "repeat"};
	struct schedule parsed = {0};
	uint32_t *const numbers[] = {&parsed.skip, &parsed.wait, &parsed.warmup, &parsed.active,
				     &parsed.repeat};
	uint32_t seen = 0;

	for (;;) {
		size_t length = strcspn(value, ":"), i = 0;
		uint64_t n_steps;

		while (i < N_NAMES(names) && !is_name(value, length, names[i]))
			i++;
		if (i == N_NAMES(names) || seen & 1u << i || value[length] != ':')
			return -1;
		seen |= 1u << i;
		value += length + 1;
		length = strcspn(value, ",");
		if (torsh_value_digits(value, length, &n_steps) || n_steps > UINT32_MAX)
			return -1;
		*numbers[i] = (uint32_t)n_steps;
		value += length;
		if (!*value)
			break;
		value++;
	}
	if (!parsed.active)
		return -1;
	*schedule = parsed;
	return 0;
}

static int store(const char *name, const char *value)
{
#define VARIABLE(NAME, kind, field, accepted) \
	if (!strcmp(name, #NAME))             \
		return parse_##kind(value, &torsh_config.field);
#include "agent/process/variables.def"
#undef VARIABLE
	return -1;
}

/* What TORSH_PROFILER_EXPORT_FORMAT accepts. */
static const char format_names[] = "a comma list of"
#define AT_END(name) " " #name
#define ON_REQUEST(name)
#define FORMAT(name, holds, ending, when, ...) when(name)
#include "agent/wire/formats.def"
#undef FORMAT
#undef ON_REQUEST
#undef AT_END
	;

static const struct variable {
	const char *name, *accepted;
} variables[] = {
#define NOW 0
#define LATER 1
#define VARIABLE(NAME, kind, field, accepted) {#NAME, accepted},
#include "agent/process/variables.def"
#undef VARIABLE
};

static const struct variable *find_variable(const char *name)
{
	for (size_t i = 0; i < N_NAMES(variables); i++)
		if (!strcmp(variables[i].name, name))
			return &variables[i];
	return NULL;
}

static void warn_unknown(const char *name)
{
	char buffer[512];
	struct text text = TEXT_IN(buffer);

	for (size_t i = 0; i < N_NAMES(variables); i++) {
		torsh_text_put(&text, i ? " " : "");
		torsh_text_put(&text, variables[i].name);
	}
	torsh_message(PREFIX, name,
		      " is not a variable of this agent and is ignored; there are " PREFIX "... ",
		      buffer, NULL);
}

static void read_variable(const char *definition, bool may_warn)
{
	const char *equals = strchr(definition, '=');
	const struct variable *variable;
	char name[64];
	struct text text = TEXT_IN(name);

	if (!equals)
		return;
	name[0] = '\0';
	torsh_text_put_bytes(&text, definition, (size_t)(equals - definition));
	variable = find_variable(name);
	if (!variable) {
		if (may_warn)
			warn_unknown(name);
		return;
	}
	if (store(name, equals + 1) && may_warn)
		torsh_message(PREFIX, name, "=", equals + 1,
			      " is not understood and is ignored; accepted: ", variable->accepted,
			      NULL);
}

void torsh_config_read(char *const *environment)
{
	static const char session[] = PREFIX "SESSION=";
	size_t prefix = sizeof(PREFIX) - 1;
	bool may_warn = true;

	for (char *const *e = environment; e && *e; e++)
		if (!strncmp(*e, session, sizeof(session) - 1))
			may_warn = false;
	for (char *const *e = environment; e && *e; e++)
		if (!strncmp(*e, PREFIX, prefix))
			read_variable(*e + prefix, may_warn);
	if (may_warn && torsh_config.counters.mode != COUNTERS_OFF &&
	    !(torsh_config.activities & ACTIVITY_CUDA))
		torsh_message(PREFIX "COUNTERS: nothing is measured without the activity cuda",
			      NULL);
	if (!torsh_config.profile_memory)
		torsh_config.activities &= ~(uint32_t)(ACTIVITY_HEAP | ACTIVITY_VM);
	if (!(torsh_config.activities & ACTIVITY_HEAP))
		torsh_config.heap_rate = 0;
}

void torsh_config_expand(const char *pattern, const char *program, struct text *out)
{
	struct timespec now = {0};
	struct utsname host;

	out->bytes[out->length] = '\0';
	for (; *pattern; pattern++) {
		if (*pattern != '%') {
			torsh_text_put_bytes(out, pattern, 1);
			continue;
		}
		switch (*++pattern) {
		case 'p':
			torsh_text_put_number(out, (uint64_t)torsh_sys_getpid());
			break;
		case 'n':
			torsh_text_put(out, program);
			break;
		case 'r':
			torsh_text_put(out, torsh_launcher_rank() ? torsh_launcher_rank() : "0");
			break;
		case 'h':
			torsh_text_put(out, uname(&host) ? "unknown" : host.nodename);
			break;
		case 't':
			clock_gettime(CLOCK_REALTIME, &now);
			torsh_text_put_number(out, (uint64_t)now.tv_sec);
			break;
		case '%':
			torsh_text_put(out, "%");
			break;
		case '\0':
			torsh_text_put(out, "%");
			return;
		default:
			torsh_text_put_bytes(out, pattern - 1, 2);
		}
	}
}

bool torsh_config_matches(const char *program)
{
	return !torsh_config.filter || fnmatch(torsh_config.filter, program, 0) == 0;
}
