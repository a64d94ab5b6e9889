/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Chrome's JSON in the dialect of PyTorch's Kineto, for HTA, TensorBoard's plugin, chrome://tracing and Perfetto: an event
 * a line, times in microseconds since baseTimeNanoseconds. Calls of a thread nest strictly; those that don't are
 * asynchronous events. Streams; what is held are labels as they are printed, and the open calls.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/die.h"
#include "tools/export/chrome_collective.h"
#include "tools/export/chrome_inputs.h"
#include "tools/export/trace.h"

#define STEP_TID_BASE 0x40000000u /* beyond any thread's: the row of the steps */
#define LAST_STEP_NS 1000 /* of the step that stands for the end: TensorBoard's plugin divides by it */
#define NAME_BYTES_MAX 1000 /* of a name that is shown */
#define LABEL_BYTES_MAX (SINK_ROOM_MAX / 8) /* of a text as it is printed: an event has to fit into the sink's room */

/* The longest escape stands for one byte. */
_Static_assert(6 * NAME_BYTES_MAX < LABEL_BYTES_MAX, "no name is cut when it is printed");

/* Labels of a process as they are printed, made when they are first needed. */
struct texts {
	const struct profile_process *process;
	char **names, **inputs; /* by label */
	char **threads; /* by row: "pid": ..., "tid": ... */
	size_t n_threads;
	const struct steps *steps;
	int64_t *held_bytes; /* by device, of its tensors */
	size_t n_devices;
};

struct chrome {
	struct trace *trace;
	struct sink *sink;
	struct texts *texts;
	struct texts *last;
	struct forward_calls *forward;
	struct inputs inputs;
	struct process_groups groups;
	uint64_t n_memory;
	uint64_t n_flows;
};

static struct texts *find_texts(struct chrome *chrome, const struct profile_process *process)
{
	struct texts *texts = chrome->last;

	if (texts && texts->process == process)
		return texts;
	for (texts = chrome->texts; texts->process != process; texts++)
		;
	return chrome->last = texts;
}

static const char *name_of(struct texts *texts, uint32_t label)
{
	if (label > texts->process->n_functions)
		label = 0;
	if (!texts->names[label]) {
		const char *name = torsh_timeline_label(texts->process, label);
		char *shown = torsh_need(strndup(name && *name ? name : "?", NAME_BYTES_MAX));

		texts->names[label] = torsh_trace_escape(shown);
		free(shown);
	}
	return texts->names[label];
}

static const char *inputs_of(struct chrome *chrome, struct texts *texts, uint32_t label)
{
	if (!label || label > texts->process->n_functions)
		return "";
	if (!texts->inputs[label]) {
		torsh_inputs_parse(&chrome->inputs, torsh_timeline_label(texts->process, label));
		texts->inputs[label] = torsh_chrome_inputs(&chrome->inputs);
	}
	return texts->inputs[label];
}

/* Rows that the recording doesn't have are all the process's first thread. */
static const char *thread_of(struct texts *texts, uint32_t thread)
{
	if (thread >= texts->n_threads)
		thread = (uint32_t)texts->n_threads - 1;
	if (!texts->threads[thread])
		texts->threads[thread] = torsh_need_text("\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, texts->process->pid,
							 torsh_trace_tid(texts->process, thread));
	return texts->threads[thread];
}

static void start_texts(struct texts *texts, const struct profile_process *process, const struct survey *survey)
{
	texts->process = process;
	texts->names = torsh_need_items(NULL, 0, process->n_functions + 1, sizeof(*texts->names));
	texts->inputs = torsh_need_items(NULL, 0, process->n_functions + 1, sizeof(*texts->inputs));
	texts->n_threads = process->n_threads + 1;
	texts->threads = torsh_need_items(NULL, 0, texts->n_threads, sizeof(*texts->threads));
	texts->steps = &torsh_survey_of(survey, process)->steps;
}

static void free_texts(struct texts *texts)
{
	for (size_t i = 0; i <= texts->process->n_functions; i++) {
		free(texts->names[i]);
		free(texts->inputs[i]);
	}
	for (size_t i = 0; i < texts->n_threads; i++)
		free(texts->threads[i]);
	free(texts->names);
	free(texts->inputs);
	free(texts->threads);
	free(texts->held_bytes);
}

/* ---- pieces of an event ------------------------------------------------------------------------------------------ */

#define PUT(at, literal) (memcpy(at, literal, sizeof(literal) - 1), (at) + sizeof(literal) - 1)

static char *put_text(char *at, const char *text)
{
	size_t n = strnlen(text, LABEL_BYTES_MAX);

	memcpy(at, text, n);
	return at + n;
}

/* Begin a line in the sink's room: kind is its ph and cat. prefix and name are its name. */
static char *begin_event(struct chrome *chrome, const char *kind, const char *prefix, const char *name,
			 const char *thread, uint64_t at_ns)
{
	char *at = torsh_sink_room(chrome->sink, SINK_ROOM_MAX);

	at = PUT(at, ",\n{\"ph\":");
	at = put_text(at, kind);
	at = PUT(at, ",\"name\":\"");
	at = put_text(at, prefix);
	at = put_text(at, name);
	at = PUT(at, "\",");
	at = put_text(at, thread);
	at = PUT(at, ",\"ts\":");
	return torsh_digits_us(at, at_ns);
}

static void end_event(struct chrome *chrome, char *at)
{
	at = PUT(at, "}");
	chrome->sink->n = (size_t)(at - chrome->sink->buffer);
}

static char *put_number(char *at, const char *name, size_t n_name, uint64_t number)
{
	memcpy(at, name, n_name);
	return torsh_digits(at + n_name, number);
}

#define NUMBER(at, name, number) put_number(at, name, sizeof(name) - 1, number)

/* Which processes it connects, and how much it moves. */
static char *put_collective(char *at, struct chrome *chrome, const struct call *call)
{
	struct collective collective;
	char *text;

	torsh_inputs_parse(&chrome->inputs, torsh_timeline_label(call->process, call->inputs));
	if (!torsh_collective_read(&collective, &chrome->groups, call, &chrome->inputs))
		return at;
	text = torsh_chrome_collective(&collective);
	if (strlen(text) <= LABEL_BYTES_MAX)
		at = put_text(PUT(at, ","), text);
	free(text);
	return at;
}

static char *put_operator_args(char *at, struct chrome *chrome, struct texts *texts, const struct call *call)
{
	const char *inputs = inputs_of(chrome, texts, call->inputs);
	size_t n_inputs = strlen(inputs);

	at = NUMBER(at, "\"External id\":", call->ordinal + 1);
	at = NUMBER(at, ",\"Record function id\":", call->record);
	at = NUMBER(at, ",\"Ev Idx\":", call->ordinal);
	if (call->sequence != OP_NO_SEQUENCE) {
		at = NUMBER(at, ",\"Sequence number\":", call->sequence);
		at = NUMBER(at, ",\"Fwd thread id\":", call->scope == OP_BACKWARD ? call->forward_thread : 0);
	}
	if (call->overload) {
		at = PUT(at, ",\"Overload Name\":\"");
		at = put_text(at, name_of(texts, call->overload));
		at = PUT(at, "\"");
	}
	if (n_inputs && n_inputs <= LABEL_BYTES_MAX) {
		at = PUT(at, ",");
		memcpy(at, inputs, n_inputs);
		at += n_inputs;
	}
	if (chrome->groups.n && torsh_call_is_collective(call))
		at = put_collective(at, chrome, call);
	if (call->module) {
		at = PUT(at, ",\"Module Hierarchy\":\"");
		at = put_text(at, name_of(texts, call->module));
		at = PUT(at, "\"");
	}
	return at;
}

static const struct call *outer_module(const struct call *call)
{
	do
		call = call->outer;
	while (call && !call->is_module);
	return call;
}

static char *put_module_args(char *at, const struct call *call)
{
	const struct call *outer = outer_module(call);

	at = NUMBER(at, "\"Python id\":", call->ordinal + 1);
	if (outer)
		at = NUMBER(at, ",\"Python parent id\":", outer->ordinal + 1);
	return NUMBER(at, ",\"Python module id\":", call->name);
}

static char *put_range_args(char *at, struct texts *texts, const struct call *call)
{
	static const char *const sources[] = {"torsh", "NVTX", "ITT", "module"};
	double payload;

	at += sprintf(at, "\"Source\":\"%s\"",
		      call->source < sizeof(sources) / sizeof(*sources) ? sources[call->source] : "?");
	if (call->domain) {
		at = PUT(at, ",\"Domain\":\"");
		at = put_text(at, name_of(texts, call->domain));
		at = PUT(at, "\"");
	}
	if (call->category) {
		at = PUT(at, ",\"Category\":\"");
		at = put_text(at, name_of(texts, call->category));
		at = PUT(at, "\"");
	}
	if (torsh_trace_payload(call->payload_type, call->payload, &payload))
		at += sprintf(at, ",\"Payload\":%.17g", payload);
	return at;
}

static char *put_args(char *at, struct chrome *chrome, struct texts *texts, const struct call *call)
{
	at = PUT(at, ",\"args\":{");
	if (call->kind == CALL_OPERATOR)
		at = put_operator_args(at, chrome, texts, call);
	else if (call->is_module)
		at = put_module_args(at, call);
	else
		at = put_range_args(at, texts, call);
	return PUT(at, "}");
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void put_nested(struct chrome *chrome, struct texts *texts, const struct call *call)
{
	const char *kind = call->is_module					? "\"X\",\"cat\":\"python_function\""
			   : call->kind == CALL_RANGE || call->scope == OP_USER ? "\"X\",\"cat\":\"user_annotation\""
										: "\"X\",\"cat\":\"cpu_op\"";
	char *at = begin_event(chrome, kind, call->is_module ? "nn.Module: " : "", name_of(texts, call->name),
			       thread_of(texts, call->thread), call->start_ns);

	at = PUT(at, ",\"dur\":");
	at = torsh_digits_us(at, call->end_ns - call->start_ns);
	end_event(chrome, put_args(at, chrome, texts, call));
}

/* A pair of begin and end that viewers show on a track of its own. */
static void put_async(struct chrome *chrome, struct texts *texts, const struct call *call)
{
	const char *name = name_of(texts, call->name), *thread = thread_of(texts, call->thread);
	char *at = begin_event(chrome, "\"b\",\"cat\":\"async\"", "", name, thread, call->start_ns);

	at += sprintf(at, ",\"id\":\"%" PRIu32 ".%" PRIu64 "\"", call->process->number, call->ordinal);
	end_event(chrome, put_args(at, chrome, texts, call));
	at = begin_event(chrome, "\"e\",\"cat\":\"async\"", "", name, thread, call->end_ns);
	at += sprintf(at, ",\"id\":\"%" PRIu32 ".%" PRIu64 "\"", call->process->number, call->ordinal);
	end_event(chrome, at);
}

/* An arrow from a forward operator to its backward. Both slices are written: arrows bind to what came before. */
static void put_arrow(struct chrome *chrome, struct texts *texts, const struct call *call)
{
	struct forward forward;
	char *at;

	if (!torsh_forward_take(chrome->forward, call, &forward) || !torsh_trace_has(chrome->trace, forward.start_ns))
		return;
	chrome->n_flows++;
	at = begin_event(chrome, "\"s\",\"cat\":\"fwdbwd\"", "", "fwdbwd", thread_of(texts, forward.thread),
			 forward.start_ns);
	end_event(chrome, NUMBER(at, ",\"id\":", chrome->n_flows));
	at = begin_event(chrome, "\"f\",\"cat\":\"fwdbwd\",\"bp\":\"e\"", "", "fwdbwd", thread_of(texts, call->thread),
			 call->start_ns);
	end_event(chrome, NUMBER(at, ",\"id\":", chrome->n_flows));
}

static void see_begin(void *context, struct call *call)
{
	struct chrome *chrome = context;

	torsh_forward_add(chrome->forward, call);
}

static void see_end(void *context, struct call *call)
{
	struct chrome *chrome = context;
	struct texts *texts = find_texts(chrome, call->process);

	if (!torsh_trace_has(chrome->trace, call->start_ns))
		return;
	if (call->is_async) {
		put_async(chrome, texts, call);
		return;
	}
	put_nested(chrome, texts, call);
	put_arrow(chrome, texts, call);
}

/* ---- other events ------------------------------------------------------------------------------------------------ */

/* What the allocator says that it has given out; where it says nothing, what its events add up to. */
static uint64_t held_bytes(struct texts *texts, const struct event_tensor *tensor)
{
	size_t device = tensor->device & 0xffff;

	if (device >= texts->n_devices) {
		texts->held_bytes =
			torsh_need_items(texts->held_bytes, texts->n_devices, device + 1, sizeof(*texts->held_bytes));
		texts->n_devices = device + 1;
	}
	texts->held_bytes[device] += tensor->is_free ? -(int64_t)tensor->bytes : (int64_t)tensor->bytes;
	if (tensor->allocated)
		return tensor->allocated;
	/* What was given out before the recording began is freed in it. */
	return texts->held_bytes[device] > 0 ? (uint64_t)texts->held_bytes[device] : 0;
}

static void put_tensor(struct chrome *chrome, struct texts *texts, const struct timeline_event *event)
{
	const struct event_tensor *tensor = &event->event.tensor;
	uint64_t held = held_bytes(texts, tensor);
	uint32_t type = tensor->device >> 8;
	char *at;

	if (!torsh_trace_has(chrome->trace, event->at_ns))
		return;
	at = begin_event(chrome, "\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\"", "", "[memory]",
			 thread_of(texts, event->thread), event->at_ns);
	at = NUMBER(at, ",\"args\":{\"Total Reserved\":", tensor->reserved);
	at = NUMBER(at, ",\"Total Allocated\":", held);
	at = tensor->is_free ? NUMBER(at, ",\"Bytes\":-", tensor->bytes) : NUMBER(at, ",\"Bytes\":", tensor->bytes);
	at = NUMBER(at, ",\"Addr\":", tensor->address);
	at = NUMBER(at, ",\"Device Type\":", type);
	/* PyTorch numbers no CPU. */
	at = type ? NUMBER(at, ",\"Device Id\":", tensor->device & 0xff) : PUT(at, ",\"Device Id\":-1");
	at = NUMBER(at, ",\"Ev Idx\":", chrome->n_memory++);
	end_event(chrome, PUT(at, "}"));
}

static void put_out_of_memory(struct chrome *chrome, struct texts *texts, const struct timeline_event *event)
{
	const struct event_out_of_memory *failed = &event->event.out_of_memory;
	char *at = begin_event(chrome, "\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\"", "", "[OutOfMemory]",
			       thread_of(texts, event->thread), event->at_ns);

	at = NUMBER(at, ",\"args\":{\"Total Reserved\":", failed->reserved);
	at = NUMBER(at, ",\"Total Allocated\":", failed->allocated);
	at = NUMBER(at, ",\"Bytes\":", failed->bytes);
	at = NUMBER(at, ",\"Device Type\":", failed->device >> 8);
	at = NUMBER(at, ",\"Device Id\":", failed->device & 0xff);
	end_event(chrome, PUT(at, "}"));
}

static void put_mark(struct chrome *chrome, struct texts *texts, const struct timeline_event *event)
{
	const struct event_mark *mark = &event->event.mark;
	char *at = begin_event(chrome, "\"i\",\"s\":\"t\",\"cat\":\"mark\"", "", name_of(texts, mark->name),
			       thread_of(texts, event->thread), event->at_ns);

	end_event(chrome, at);
}

static void put_value(struct chrome *chrome, struct texts *texts, const struct timeline_event *event)
{
	const struct event_value *value = &event->event.value;
	double number;
	char *at;

	/* Viewers hang on counters that are infinite. */
	if (!torsh_trace_payload(value->payload_type, value->payload, &number))
		return;
	at = begin_event(chrome, "\"C\",\"cat\":\"value\"", "", name_of(texts, value->name),
			 thread_of(texts, event->thread), event->at_ns);
	at += sprintf(at, ",\"args\":{\"value\":%.17g}", number);
	end_event(chrome, at);
}

static void see_event(void *context, const struct profile_process *process, const struct timeline_event *event,
		      struct call *innermost)
{
	struct chrome *chrome = context;
	struct texts *texts = find_texts(chrome, process);

	(void)innermost;
	if (event->event.id == EVENT_TENSOR)
		put_tensor(chrome, texts, event);
	else if (event->event.id == EVENT_PROCESS_GROUP)
		torsh_groups_add(&chrome->groups, process, &event->event.process_group);
	else if (!torsh_trace_has(chrome->trace, event->at_ns))
		return;
	else if (event->event.id == EVENT_OUT_OF_MEMORY)
		put_out_of_memory(chrome, texts, event);
	else if (event->event.id == EVENT_MARK)
		put_mark(chrome, texts, event);
	else if (event->event.id == EVENT_VALUE)
		put_value(chrome, texts, event);
}

/* ---- what is said once ------------------------------------------------------------------------------------------- */

static void put_metadata(struct sink *sink, const char *name, uint32_t pid, uint64_t tid, const char *argument)
{
	torsh_sink_print(sink,
			 ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu64
			 ",\"ts\":0.000,\"args\":{%s}}",
			 name, pid, tid, argument);
}

static void put_named(struct sink *sink, const char *what, uint32_t pid, uint64_t tid, const char *name)
{
	char *escaped = torsh_trace_escape(name), *argument = torsh_need_text("\"name\":\"%s\"", escaped);

	put_metadata(sink, what, pid, tid, argument);
	free(argument);
	free(escaped);
}

static void put_thread(struct sink *sink, const struct profile_process *process, size_t row)
{
	uint32_t tid = torsh_trace_tid(process, (uint32_t)row);
	const char *name = process->threads[row].name;
	char *shown = torsh_need_text("thread %" PRIu32 " (%s)", tid, name ? name : "");

	put_named(sink, "thread_name", process->pid, tid, shown);
	free(shown);
}

static void put_process(struct sink *sink, const struct profile_process *process)
{
	char order[48];

	put_named(sink, "process_name", process->pid, 0, torsh_profile_program_name(process));
	put_metadata(sink, "process_labels", process->pid, 0, "\"labels\":\"CPU\"");
	snprintf(order, sizeof(order), "\"sort_index\":%" PRIu32, process->pid);
	put_metadata(sink, "process_sort_index", process->pid, 0, order);
	for (size_t i = 0; i < process->n_threads; i++)
		put_thread(sink, process, i);
}

static void put_step(struct chrome *chrome, uint32_t pid, const struct step *step, const char *rule)
{
	char start[32], duration[32];

	*torsh_digits_us(start, step->start_ns) = '\0';
	*torsh_digits_us(duration, step->end_ns - step->start_ns) = '\0';
	torsh_sink_print(chrome->sink,
			 ",\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%" PRIu64
			 "\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"ts\":%s,\"dur\":%s,\"args\":{\"Rule\":\"%s\"}}",
			 step->number, pid, STEP_TID_BASE + pid, start, duration, rule);
}

/* Steps as torch.profiler's schedule would mark them, where it didn't: on a row of their own, as they need not nest. */
static void put_steps(struct chrome *chrome, const struct texts *texts)
{
	const struct steps *steps = texts->steps;
	uint32_t pid = texts->process->pid;
	struct step last;
	char *name;

	if (!steps->n || steps->rule == STEPS_BY_PROFILER)
		return;
	name = torsh_need_text("steps (%s)", torsh_step_rule_texts[steps->rule]);
	put_named(chrome->sink, "thread_name", pid, (uint64_t)STEP_TID_BASE + pid, name);
	free(name);
	for (size_t i = 0; i < steps->n; i++) {
		struct step step = steps->items[i];

		/* Readers add in floating point: what ends where the next begins would overlap it. */
		step.end_ns -=
			i + 1 < steps->n && step.end_ns == steps->items[i + 1].start_ns && step.end_ns > step.start_ns;
		if (torsh_trace_has(chrome->trace, step.start_ns))
			put_step(chrome, pid, &step, torsh_step_rule_names[steps->rule]);
	}
	/* HTA leaves out what began with the last step or after it, which torch.profiler leaves unfinished. */
	last.number = steps->items[steps->n - 1].number + 1;
	last.start_ns = torsh_survey_of(chrome->trace->survey, texts->process)->last_ns + 1;
	if (last.start_ns > chrome->trace->to_ns)
		last.start_ns = chrome->trace->to_ns;
	last.end_ns = last.start_ns + LAST_STEP_NS;
	put_step(chrome, pid, &last, "end of the recording");
}

/* A process that no launcher gave a rank is the only one of its run. */
static void put_distributed(const struct trace *trace, struct sink *sink)
{
	uint32_t rank = 0;
	bool has_rank = false;

	for (size_t i = 0; i < trace->n_processes && !has_rank; i++)
		has_rank = torsh_profile_rank(trace->processes[i]->rank, &rank);
	/* HTA finds the rank by this text, with its blank, in the first bytes of the file. */
	torsh_sink_print(sink, "\"distributedInfo\": {\"rank\": %" PRIu32 "%s},\n", rank,
			 has_rank ? "" : ",\"world_size\":1");
}

static void put_header(struct chrome *chrome)
{
	struct trace *trace = chrome->trace;
	bool has_tensors = false;
	char *host = torsh_trace_escape(trace->profile->host);

	for (size_t i = 0; i < trace->n_processes; i++)
		has_tensors = has_tensors || trace->survey->items[i].n_tensors;
	torsh_sink_text(chrome->sink, "{\n\"schemaVersion\": 1,\n\"deviceProperties\": [],\n");
	put_distributed(trace, chrome->sink);
	torsh_sink_print(chrome->sink,
			 "\"record_shapes\": %d,\n\"profile_memory\": %d,\n\"with_stack\": 0,\n\"host_name\": \"%s\",\n"
			 "\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": %" PRIu64 ",\n\"traceEvents\":[\n"
			 "{\"ph\":\"M\",\"name\":\"torsh\",\"pid\":0,\"tid\":0,\"ts\":0.000,\"args\":{}}",
			 trace->survey->has_inputs, has_tensors, host, trace->profile->start_realtime_ns);
	free(host);
}

static int write_chrome(struct trace *trace)
{
	static const struct calls_visitor visitor = {.begin = see_begin, .end = see_end, .event = see_event};
	struct chrome chrome = {.trace = trace, .sink = trace->sink, .forward = torsh_forward_create()};
	int rc;

	chrome.texts = torsh_need_items(NULL, 0, trace->n_processes, sizeof(*chrome.texts));
	put_header(&chrome);
	for (size_t i = 0; i < trace->n_processes; i++) {
		start_texts(&chrome.texts[i], trace->processes[i], trace->survey);
		put_process(trace->sink, trace->processes[i]);
		put_steps(&chrome, &chrome.texts[i]);
	}
	rc = torsh_trace_walk(trace, &visitor, &chrome);
	torsh_sink_text(trace->sink, "\n],\n\"traceName\":\"");
	if (trace->path) {
		char *name = torsh_trace_escape(trace->path);

		torsh_sink_text(trace->sink, name);
		free(name);
	}
	torsh_sink_text(trace->sink, "\"\n}\n");
	for (size_t i = 0; i < trace->n_processes; i++)
		free_texts(&chrome.texts[i]);
	free(chrome.texts);
	torsh_groups_free(&chrome.groups);
	torsh_forward_destroy(chrome.forward);
	return rc;
}

const struct trace_format torsh_trace_chrome = {.name = "chrome", .ending = ".json", .write = write_chrome};
