/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The parts of PyTorch that are only accessible from Python: the moment when its import is complete
 * enough to read class layouts, and the names of modules. torch_script.py does that and calls the
 * functions below. All runs on Python's threads, with the GIL.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/process/text_buffer.h"
#include "agent/producer/label.h"
#include "agent/producer/schedule.h"
#include "agent/wire/channel.h"
#include "collectors/perf/thread_counters.h"
#include "collectors/ranges/forward.h"
#include "collectors/torch/operator_events.h"
#include "shim/cpython/cpython_api.h"
#include "shim/cpython/cpython_gc.h"
#include "shim/hooks.h"
#include "shim/loader/objects.h"
#include "shim/torch/torch.h"
#include "shim/torch/torch_calibration.h"

#define NOTE_MAX 256u

extern const char torsh_torch_script[]; /* collectors/torch/torch_script.py */

static void *boolean(int value)
{
	return torsh_cpython_api.PyBool_FromLong(value);
}

/* "" for anything but a text. */
static const char *text_of(void *object)
{
	const char *text = torsh_cpython_api.PyUnicode_AsUTF8(object);

	if (text)
		return text;
	torsh_cpython_api.PyErr_Clear();
	return "";
}

static void *call_observe(void *self, void *unused)
{
	(void)self;
	(void)unused;
	return boolean(torsh_torch_start());
}

static void *call_begin(void *self, void *unused)
{
	(void)self;
	(void)unused;
	return boolean(torsh_config.record_shapes && !torsh_torch_calibration_begin());
}

static void *call_expect(void *self, void *step)
{
	(void)self;
	return boolean(torsh_torch_calibration_expect(text_of(step)));
}

static void *call_fitted(void *self, void *unused)
{
	(void)self;
	(void)unused;
	return boolean(torsh_torch_calibration_fitted());
}

static bool is_on(void)
{
	return atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON &&
	       torsh_process->pid;
}

/* Besides shapes, which were found. */
static void note_what_is_missing(void)
{
	const struct torch_layout *at = &torsh_torch_layout;
	const struct {
		bool is_missing;
		const char *what;
	} parts[] = {
		{at->type == TORCH_UNKNOWN, "types of tensors"},
		{at->device == TORCH_UNKNOWN, "devices of tensors"},
		{at->sequence == TORCH_UNKNOWN, "numbers of autograd's nodes"},
		{at->forward_thread == TORCH_UNKNOWN, "which thread ran forward"},
		{at->list == TORCH_UNKNOWN, "lists among inputs"},
		{!torsh_torch_has_overloads(), "overloads of operators"},
	};
	char bytes[NOTE_MAX] = "";
	struct text text = TEXT_IN(bytes);

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (!parts[i].is_missing)
			continue;
		torsh_text_put(&text,
			       text.length
				       ? ", "
				       : "torch: not found in this PyTorch, and not recorded: ");
		torsh_text_put(&text, parts[i].what);
	}
	if (text.length && is_on())
		torsh_channel_note(&torsh_process->channel, bytes);
}

static void *call_finish(void *self, void *unused)
{
	bool is_known = torsh_torch_calibration_finish();

	(void)self;
	(void)unused;
	if (is_known)
		note_what_is_missing();
	return boolean(is_known);
}

static void *call_note(void *self, void *sentence)
{
	(void)self;
	if (is_on())
		torsh_channel_note(&torsh_process->channel, text_of(sentence));
	return boolean(1);
}

static void *call_label(void *self, void *name)
{
	const char *text = text_of(name);

	(void)self;
	return torsh_cpython_api.PyLong_FromLong(is_on() ? (long)torsh_label(text, strlen(text))
							 : 0);
}

/* like the keys of collectors/ranges/ranges.c, without a domain */
#define MODULE_KEY ((open_key)RANGE_BY_MODULE << 33)

/* may_send: torsh_schedule_begin or _end; NULL: send whatever the schedule. */
static bool send(const struct event *event,
		 bool (*may_send)(struct producer *producer, enum open_kind kind, open_key key))
{
	int saved = errno;
	struct producer *producer = torsh_producer_enter();
	bool is_sent = false;

	if (producer) {
		is_sent = !may_send || may_send(producer, OPEN_RANGES, MODULE_KEY);
		if (is_sent) {
			torsh_thread_counters_take(producer);
			torsh_producer_event(producer, event, NULL);
		} else {
			torsh_thread_counters_skip(producer);
		}
		torsh_thread_counters_go_on(producer);
		torsh_producer_leave(producer);
	}
	errno = saved;
	return is_sent;
}

static void *call_push(void *self, void *label)
{
	struct event event = {
		.id = EVENT_RANGE_PUSH,
		.range_push = {.name = (uint32_t)torsh_cpython_api.PyLong_AsLong(label),
			       .source = RANGE_BY_MODULE},
	};

	(void)self;
	if (send(&event, torsh_schedule_begin) && torsh_forward_wants(FORWARD_MODULES))
		torsh_forward_module(event.range_push.name);
	return boolean(1);
}

static void *call_pop(void *self, void *unused)
{
	static const struct event event = {.id = EVENT_RANGE_POP,
					   .range_pop = {.source = RANGE_BY_MODULE}};

	(void)self;
	(void)unused;
	if (send(&event, torsh_schedule_end) && torsh_forward_wants(FORWARD_MODULES))
		torsh_forward_module_end();
	return boolean(1);
}

static void *call_begin_groups(void *self, void *unused)
{
	(void)self;
	(void)unused;
	return boolean(!torsh_torch_calibration_begin_groups());
}

static void *call_take_group(void *self, void *group)
{
	(void)self;
	torsh_torch_calibration_take_group(group);
	return boolean(1);
}

static void *call_finish_groups(void *self, void *unused)
{
	(void)self;
	(void)unused;
	return boolean(torsh_torch_calibration_finish_groups());
}

/* Returns its number, 0: unknown. */
static void *call_add_group(void *self, void *group)
{
	uintptr_t pointer = torsh_torch_group_of(group);

	(void)self;
	return torsh_cpython_api.PyLong_FromLong(pointer ? (long)torsh_torch_group_add(pointer)
							 : 0);
}

/* The label of the text up to the next end of line; *text moves past it. */
static uint32_t take_line(const char **text)
{
	size_t n = strcspn(*text, "\n");
	const char *line = *text;

	*text += n + (line[n] != '\0');
	return torsh_label(line, n);
}

/*
 * "number of ranks, number, own rank + 1, is it the default group, name, description, backend,
 * ranks", one per line.
 */
static void *call_report_group(void *self, void *lines)
{
	struct event event = {.id = EVENT_PROCESS_GROUP};
	struct event_process_group *group = &event.process_group;
	char *rest;
	const char *text;

	(void)self;
	group->n_ranks = (uint32_t)strtoul(text_of(lines), &rest, 10);
	group->number = (uint32_t)strtoul(rest, &rest, 10);
	group->own_rank = (uint32_t)strtoul(rest, &rest, 10);
	group->is_world = (uint32_t)strtoul(rest, &rest, 10);
	if (!is_on() || *rest != '\n')
		return boolean(0);
	text = rest + 1;
	group->name = take_line(&text);
	group->description = take_line(&text);
	group->backend = take_line(&text);
	group->ranks = take_line(&text);
	send(&event, NULL);
	return boolean(1);
}

/* "name, value", one per line. */
static void *call_report_attribute(void *self, void *lines)
{
	struct event event = {.id = EVENT_FACT};
	const char *text = text_of(lines);

	(void)self;
	if (!is_on())
		return boolean(0);
	event.fact.name = take_line(&text);
	event.fact.value = take_line(&text);
	send(&event, NULL);
	return boolean(1);
}

static void *call_wants_modules(void *self, void *unused)
{
	(void)self;
	(void)unused;
	return boolean(torsh_config.with_modules);
}

static struct cpython_method methods[] = {
	{"observe", call_observe, CPYTHON_NO_ARGUMENT, NULL},
	{"begin", call_begin, CPYTHON_NO_ARGUMENT, NULL},
	{"expect", call_expect, CPYTHON_ONE_ARGUMENT, NULL},
	{"fitted", call_fitted, CPYTHON_NO_ARGUMENT, NULL},
	{"finish", call_finish, CPYTHON_NO_ARGUMENT, NULL},
	{"note", call_note, CPYTHON_ONE_ARGUMENT, NULL},
	{"label", call_label, CPYTHON_ONE_ARGUMENT, NULL},
	{"push", call_push, CPYTHON_ONE_ARGUMENT, NULL},
	{"pop", call_pop, CPYTHON_NO_ARGUMENT, NULL},
	{"begin_groups", call_begin_groups, CPYTHON_NO_ARGUMENT, NULL},
	{"take_group", call_take_group, CPYTHON_ONE_ARGUMENT, NULL},
	{"finish_groups", call_finish_groups, CPYTHON_NO_ARGUMENT, NULL},
	{"add_group", call_add_group, CPYTHON_ONE_ARGUMENT, NULL},
	{"report_group", call_report_group, CPYTHON_ONE_ARGUMENT, NULL},
	{"report_attribute", call_report_attribute, CPYTHON_ONE_ARGUMENT, NULL},
	{"wants_modules", call_wants_modules, CPYTHON_NO_ARGUMENT, NULL},
	{0},
};

/* torch/_C.cpython-311-x86_64-linux-gnu.so, and similar files. */
static bool is_extension_of_torch(const char *path)
{
	static const char folder[] = "torch/_C.";
	const char *slash = strrchr(path, '/');
	size_t n_before = slash ? (size_t)(slash - path) : 0, n_folder = sizeof("torch") - 1;

	return slash && n_before >= n_folder &&
	       !strncmp(slash - n_folder, folder, sizeof(folder) - 1) &&
	       (n_before == n_folder || slash[-(ptrdiff_t)n_folder - 1] == '/');
}

static _Atomic bool is_script_run;

static void run_script(void)
{
	if (torsh_cpython_api_run(torsh_torch_script, AGENT_PYTHON_FILE, methods))
		torsh_channel_note(
			&torsh_process->channel,
			"torch: operators have names and times only, and modules no names: the agent's "
			"Python script could not be run");
}

/*
 * No later event certainly precedes the program's first operator on a thread that may run Python:
 * here the importing thread holds the GIL.
 */
void torsh_torch_loading(const char *path)
{
	if (!path || !(torsh_config.activities & ACTIVITY_TORCH) || !is_on() ||
	    !is_extension_of_torch(path) || !torsh_cpython_api_is_ready() ||
	    atomic_exchange(&is_script_run, true))
		return;
	run_script();
}

/* On the main thread, which has the GIL, between two instructions of Python. */
static int run_pending(void *unused)
{
	(void)unused;
	if (torsh_cpython_api_is_ready() && is_on())
		run_script();
	return 0;
}

/* PyTorch was loaded while the process was dormant. */
void torsh_torch_armed(void)
{
	if (torsh_config.activities & ACTIVITY_TORCH && torsh_objects_has("/torch/_C.") &&
	    !atomic_exchange(&is_script_run, true) && torsh_cpython_add_pending_call(run_pending))
		torsh_channel_note(&torsh_process->channel,
				   "torch: operators are not recorded: Python took no call of the "
				   "agent's when the process was armed");
}
