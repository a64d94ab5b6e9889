/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh dump: the contents of a recording, one JSON object per line. Messages are described by
 * protobuf and events by events.def: no field is listed here a second time.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/wire/event.h"
#include "tools/base/die.h"
#include "tools/base/json_writer.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/options.h"
#include "tools/recording/read.h"
#include "tools/store/events_columns.h"
#include "tools/store/recording_read.h"
#include "tools/store/timeline_columns.h"
#include "tools/terminal/page.h"
#include "tools/terminal/terminal_options.h"

static const char doc[] =
	"Print everything in a recording, one JSON object a line: the messages of "
	"tools/store/recording.proto, and each event of a full recording by its name.";

enum { KEY_NO_EVENTS = 0x1000, KEY_ONLY, KEY_JSON };

struct dump_options {
	const char *path;
	uint64_t left_out; /* bit i: field i of the descriptor of Torsh__Chunk */
};

static const struct argp_option options_dump[] = {
	{"no-events", KEY_NO_EVENTS, NULL, 0, "leave out the events of a full recording", 0},
	{"only", KEY_ONLY, "NAME,...", 0,
	 "print only the messages of these names in recording.proto, as functions; events of the heap are \"events\", "
	 "all others \"timeline\"",
	 0},
	{"json", KEY_JSON, NULL, 0, "print JSON, which it does anyway", 0},
	{0},
};

static uint64_t bit_of(const char *name)
{
	const ProtobufCFieldDescriptor *field =
		protobuf_c_message_descriptor_get_field_by_name(&torsh__chunk__descriptor, name);

	return field ? UINT64_C(1) << (field - torsh__chunk__descriptor.fields) : 0;
}

static uint64_t all_but(const char *names, const struct argp_state *state)
{
	char *copy = torsh_need(strdup(names)), *rest = copy, *name;
	uint64_t named = 0;

	while ((name = strsep(&rest, ","))) {
		uint64_t bit = bit_of(name);

		if (!bit)
			argp_error(
				state,
				"recordings have no \"%s\": see Chunk in tools/store/recording.proto",
				name);
		named |= bit;
	}
	free(copy);
	return ~named;
}

static bool is_left_out(const struct dump_options *options, const char *name)
{
	return options->left_out & bit_of(name);
}

static error_t parse_dump(int key, char *argument, struct argp_state *state)
{
	struct dump_options *options = state->input;

	switch (key) {
	case KEY_NO_EVENTS:
		options->left_out |= bit_of("events") | bit_of("timeline");
		return 0;
	case KEY_ONLY:
		options->left_out |= all_but(argument, state);
		return 0;
	case KEY_JSON:
		return 0;
	default:
		return torsh_argument_path(key, argument, state, &options->path);
	}
}

static void emit_message(struct json_writer *json, const char *name,
			 const ProtobufCMessage *message);

static void emit_bytes(struct json_writer *json, const char *name, const ProtobufCBinaryData *bytes)
{
	char pair[3];

	torsh_json_begin_text(json, name);
	for (size_t i = 0; i < bytes->len; i++) {
		snprintf(pair, sizeof(pair), "%02x", bytes->data[i]);
		torsh_json_add_text_n(json, pair, 2);
	}
	torsh_json_end_text(json);
}

/* Memory addresses are printed as hexadecimal texts, for people. */
static bool is_address(const ProtobufCFieldDescriptor *field)
{
	static const char *const names[] = {"ip", "bias", "start", "end"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (field->type == PROTOBUF_C_TYPE_UINT64 && strcmp(field->name, names[i]) == 0)
			return true;
	}
	return false;
}

static void emit_enum(struct json_writer *json, const char *name,
		      const ProtobufCFieldDescriptor *field, int value)
{
	const ProtobufCEnumValue *named =
		protobuf_c_enum_descriptor_get_value(field->descriptor, value);

	if (named)
		torsh_json_put_text(json, name, named->name);
	else
		torsh_json_put_i64(json, name, value);
}

static void emit_value(struct json_writer *json, const char *name,
		       const ProtobufCFieldDescriptor *field, const void *at)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_UINT32:
		torsh_json_put_u64(json, name, *(const uint32_t *)at);
		break;
	case PROTOBUF_C_TYPE_UINT64:
		if (is_address(field))
			torsh_json_put_hex(json, name, *(const uint64_t *)at);
		else
			torsh_json_put_u64(json, name, *(const uint64_t *)at);
		break;
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_INT32:
		torsh_json_put_i64(json, name, *(const int32_t *)at);
		break;
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_INT64:
		torsh_json_put_i64(json, name, *(const int64_t *)at);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		torsh_json_put_bool(json, name, *(const protobuf_c_boolean *)at);
		break;
	case PROTOBUF_C_TYPE_ENUM:
		emit_enum(json, name, field, *(const int *)at);
		break;
	case PROTOBUF_C_TYPE_STRING:
		torsh_json_put_text(json, name, *(char *const *)at);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		emit_bytes(json, name, at);
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		emit_message(json, name, *(ProtobufCMessage *const *)at);
		break;
	default:
		torsh_json_put_null(json, name);
	}
}

static size_t item_bytes(const ProtobufCFieldDescriptor *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_INT64:
		return 8;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	default:
		return 4;
	}
}

static void emit_repeated(struct json_writer *json, const ProtobufCFieldDescriptor *field,
			  const char *message)
{
	size_t n = *(const size_t *)(message + field->quantifier_offset);
	const char *items = *(char *const *)(message + field->offset);

	torsh_json_begin_array(json, field->name);
	for (size_t i = 0; i < n; i++)
		emit_value(json, NULL, field, items + i * item_bytes(field));
	torsh_json_end_array(json);
}

static bool is_there(const ProtobufCFieldDescriptor *field, const char *message)
{
	if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE)
		return *(void *const *)(message + field->offset);
	return *(const protobuf_c_boolean *)(message + field->quantifier_offset);
}

static void emit_message(struct json_writer *json, const char *name,
			 const ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *descriptor;
	const char *at = (const char *)message;

	if (!message) {
		torsh_json_put_null(json, name);
		return;
	}
	descriptor = message->descriptor;
	torsh_json_begin_object(json, name);
	for (unsigned i = 0; i < descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &descriptor->fields[i];

		if (field->label == PROTOBUF_C_LABEL_REPEATED)
			emit_repeated(json, field, at);
		else if (is_there(field, at))
			emit_value(json, field->name, field, at + field->offset);
	}
	torsh_json_end_object(json);
}

static void emit_line(struct json_writer *json, const char *name, const ProtobufCMessage *message)
{
	torsh_json_begin_object(json, NULL);
	emit_message(json, name, message);
	torsh_json_end_object(json);
}

static void emit_u64(struct json_writer *json, const char *name, uint64_t value)
{
	if (strstr(name, "address") || strstr(name, "_break"))
		torsh_json_put_hex(json, name, value);
	else
		torsh_json_put_u64(json, name, value);
}

static void emit_fields(struct json_writer *json, const struct event *event)
{
	switch (event->id) {
#define torsh_emit_u32(name, value) torsh_json_put_u64(json, name, value)
#define torsh_emit_i32(name, value) torsh_json_put_i64(json, name, value)
#define torsh_emit_u64(name, value) emit_u64(json, name, value)
#define torsh_emit_label(name, value) torsh_emit_u32(name, value)
#define torsh_emit_moment(name, value) emit_u64(json, name "_ns", value)
#define EVENT(id, NAME, name, text) \
	case EVENT_##NAME: {        \
		const struct event_##name *fields = &event->name;
#define FIELD(type, field) torsh_emit_##type(#field, fields->field);
#define END(NAME) \
	break;    \
	}
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END
#undef torsh_emit_u32
#undef torsh_emit_i32
#undef torsh_emit_u64
#undef torsh_emit_label
#undef torsh_emit_moment
	default:
		torsh_json_put_u64(json, "id", event->id);
	}
}

static const char *event_name(uint32_t id)
{
	switch (id) {
#define EVENT(id, NAME, name, text) \
	case EVENT_##NAME:          \
		return #name;
#define FIELD(type, name)
#define END(NAME)
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END
	default:
		return "unknown";
	}
}

static void emit_event(struct json_writer *json, uint32_t process, uint64_t at_ns, uint32_t thread,
		       uint32_t stack, const struct event *event)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "event", event_name(event->id));
	torsh_json_put_u64(json, "process", process);
	torsh_json_put_u64(json, "at_ns", at_ns);
	torsh_json_put_u64(json, "thread", thread);
	torsh_json_put_u64(json, "stack", stack);
	emit_fields(json, event);
	torsh_json_end_object(json);
}

static void emit_events(struct json_writer *json, const Torsh__Events *events)
{
	struct columns_reader *reader;
	struct columns_event event;
	int rc = torsh_columns_open(&reader, events->first_ns, events->n_events,
				    events->columns.data, events->columns.len);

	if (rc == 0) {
		while ((rc = torsh_columns_next(reader, &event)) == 1)
			emit_event(json, events->process, event.at_ns, event.thread, event.stack,
				   &event.event);
		torsh_columns_close(reader);
	}
	if (rc < 0)
		torsh_warn("%" PRIu32 " events of process %" PRIu32
			   " are damaged: those that could be read are printed",
			   events->n_events, events->process);
}

static void emit_timeline(struct json_writer *json, const Torsh__Timeline *timeline)
{
	struct timeline_reader *reader;
	struct timeline_event event;
	int rc = torsh_timeline_open(&reader, timeline->n_events, timeline->columns.data,
				     timeline->columns.len);

	if (rc == 0) {
		while ((rc = torsh_timeline_next(reader, &event)) == 1)
			emit_event(json, timeline->process, event.at_ns, event.thread, event.stack,
				   &event.event);
		torsh_timeline_close(reader);
	}
	if (rc < 0)
		torsh_warn("%" PRIu32 " events of the timeline of process %" PRIu32
			   " are damaged: those that could be read are printed",
			   timeline->n_events, timeline->process);
}

static void emit_any(struct json_writer *json, const char *name, const ProtobufCMessage *message)
{
	if (message->descriptor == &torsh__events__descriptor)
		emit_events(json, (const Torsh__Events *)message);
	else if (message->descriptor == &torsh__timeline__descriptor)
		emit_timeline(json, (const Torsh__Timeline *)message);
	else
		emit_line(json, name, message);
}

static void emit_chunk(struct json_writer *json, const Torsh__Chunk *chunk,
		       const struct dump_options *options)
{
	const ProtobufCMessageDescriptor *descriptor = chunk->base.descriptor;
	const char *at = (const char *)chunk;

	for (unsigned i = 0; i < descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
		ProtobufCMessage *const *messages;
		size_t n;

		if (is_left_out(options, field->name))
			continue;
		if (field->label != PROTOBUF_C_LABEL_REPEATED) {
			if (is_there(field, at))
				emit_line(json, field->name,
					  *(ProtobufCMessage *const *)(at + field->offset));
			continue;
		}
		n = *(const size_t *)(at + field->quantifier_offset);
		messages = *(ProtobufCMessage * *const *)(at + field->offset);
		for (size_t k = 0; k < n; k++)
			emit_any(json, field->name, messages[k]);
	}
}

/* Returns the kinds of chunks that need not be read. */
static uint32_t kinds_left_out(const struct dump_options *options)
{
	return (is_left_out(options, "events") ? CHUNK_EVENTS : 0) |
	       (is_left_out(options, "timeline") ? CHUNK_TIMELINE : 0);
}

int torsh_command_dump(int argc, char **argv)
{
	static const struct argp argp = {.options = options_dump,
					 .parser = parse_dump,
					 .args_doc = "[DIR|FILE]",
					 .doc = doc,
					 .children = torsh_terminal_children};
	struct dump_options options = {0};
	struct recording_reader *reader;
	Torsh__Chunk *chunk;
	char error[512] = "it can't be read", *path;
	struct json_writer json;
	const char *problem;
	int rc;

	argp_err_exit_status = TORSH_EXIT_UNREADABLE;
	argp_parse(&argp, argc, argv, 0, NULL, &options);
	torsh_page_begin(false);
	path = torsh_recording_locate(options.path, error, sizeof(error));
	if (!path)
		torsh_die("%s", error);
	torsh_recording_await(path, READ_WAIT_S);
	rc = torsh_recording_open(&reader, path, error, sizeof(error));
	if (rc < 0)
		torsh_die("%s: %s", path, rc == -EPROTO ? error : strerror(-rc));
	torsh_recording_skip(reader, kinds_left_out(&options));
	torsh_json_open(&json, stdout);
	while ((rc = torsh_recording_next(reader, &chunk)) == 1) {
		emit_chunk(&json, chunk, &options);
		torsh__chunk__free_unpacked(chunk, NULL);
	}
	torsh_json_close(&json);
	problem = torsh_recording_problem(reader);
	if (problem)
		torsh_warn("%s: %s", path, problem);
	torsh_recording_close(reader);
	free(path);
	return rc < 0 ? TORSH_EXIT_UNREADABLE : TORSH_EXIT_DONE;
}
