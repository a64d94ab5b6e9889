/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the parts of the exporter for Perfetto share: sequences, the numbers of its fields, and
 * events under way.
 *
 * Each process is a sequence of packets of its own, with times as differences to the packet before
 * and names as numbers. Packets that are rare are made by protobuf-c; events, of which there are
 * millions, are put together here from the same field numbers (perfetto.proto):
 * test/unit/export/trace_test.c reads them back through protobuf-c.
 */
#ifndef TORSH_EXPORT_PERFETTO_PERFETTO_H
#define TORSH_EXPORT_PERFETTO_PERFETTO_H

#include "perfetto.pb-c.h"
#include "tools/base/containers/key_index.h"
#include "tools/device/kernels/counters.h"
#include "tools/export/trace.h"

enum clock { CLOCK_ID_REALTIME = 1, CLOCK_ID_BOOTTIME = 6, CLOCK_ID_STEP = 64 };
enum flags { STATE_BEGINS = 1, STATE_NEEDED = 2 };

/*
 * Tags of the fields that are put together by hand: number << 3, and 0 varint, 1 eight bytes, 2
 * bytes with their length.
 */
enum tag {
	TRACE_PACKET = 1 << 3 | 2,
	PACKET_TIMESTAMP = 8 << 3,
	PACKET_SEQUENCE = 10 << 3,
	PACKET_EVENT = 11 << 3 | 2,
	PACKET_FLAGS = 13 << 3,
	PACKET_CLOCK = 58 << 3,
	EVENT_CATEGORY = 3 << 3,
	EVENT_ANNOTATION = 4 << 3 | 2,
	EVENT_TYPE = 9 << 3,
	EVENT_NAME = 10 << 3,
	EVENT_TRACK = 11 << 3,
	EVENT_COUNTER = 30 << 3,
	EVENT_DOUBLE_COUNTER = 44 << 3 | 1,
	EVENT_FLOW = 47 << 3 | 1,
	EVENT_LAST_FLOW = 48 << 3 | 1,
	ANNOTATION_NAME = 1 << 3,
	ANNOTATION_UINT = 3 << 3,
	ANNOTATION_DOUBLE = 5 << 3 | 1,
	ANNOTATION_TEXT = 17 << 3,
};

/* CATEGORY(NAME, text), ANNOTATION(NAME, text): numbers are given in this order, from 1. */
#define CATEGORIES                        \
	CATEGORY(OPERATOR, "cpu_op")      \
	CATEGORY(USER, "user_annotation") \
	CATEGORY(MODULE, "module")        \
	CATEGORY(NVTX, "nvtx")            \
	CATEGORY(ITT, "itt")              \
	CATEGORY(MARK, "mark")            \
	CATEGORY(STEP, "step")            \
	CATEGORY(RUNTIME, "cuda_runtime") \
	CATEGORY(DRIVER, "cuda_driver")   \
	CATEGORY(KERNEL, "kernel")        \
	CATEGORY(COPY, "gpu_memcpy")      \
	CATEGORY(MEMSET, "gpu_memset")    \
	CATEGORY(GRAPH, "cuda_graph")     \
	CATEGORY(COLLECTOR, "python_gc")

#define ANNOTATIONS                                   \
	ANNOTATION(INPUTS, "inputs")                  \
	ANNOTATION(OVERLOAD, "overload")              \
	ANNOTATION(SEQUENCE, "sequence")              \
	ANNOTATION(FORWARD_THREAD, "forward_thread")  \
	ANNOTATION(MODULE, "module")                  \
	ANNOTATION(DOMAIN, "domain")                  \
	ANNOTATION(CATEGORY, "category")              \
	ANNOTATION(PAYLOAD, "payload")                \
	ANNOTATION(CUT, "cut_by_the_end")             \
	ANNOTATION(STACK, "stack")                    \
	ANNOTATION(CORRELATION, "correlation")        \
	ANNOTATION(RESULT, "result")                  \
	ANNOTATION(OPERATOR, "operator")              \
	ANNOTATION(GRID, "grid")                      \
	ANNOTATION(BLOCK, "block")                    \
	ANNOTATION(REGISTERS, "registers_per_thread") \
	ANNOTATION(SHARED, "shared_bytes")            \
	ANNOTATION(BYTES, "bytes")                    \
	ANNOTATION(GRAPH, "graph")                    \
	ANNOTATION(NODE, "node")                      \
	ANNOTATION(EARLY, "ns_before_its_launch")     \
	ANNOTATION(LATE, "shown_late_by_ns")          \
	ANNOTATION(LINE, "asked_for_at")              \
	ANNOTATION(COLLECTED, "collected")

struct perfetto;
struct sequence;

/* The process's. */
struct sequence *torsh_perfetto_sequence(struct perfetto *perfetto,
					 const struct recorded_process *process);

enum category {
	NO_CATEGORY,
#define CATEGORY(NAME, text) CATEGORY_##NAME,
	CATEGORIES
#undef CATEGORY
		CATEGORIES_END
};

enum annotation {
	NO_ANNOTATION,
#define ANNOTATION(NAME, text) ANNOTATION_##NAME,
	ANNOTATIONS
#undef ANNOTATION
		ANNOTATIONS_END
};

#define FLOW_BYTES 10 /* of an arrow that an event begins */
#define FLOWS_MAX 4096u /* of an event: launches of graphs have many */
#define EVENT_BYTES_MAX (512 + FLOWS_MAX * FLOW_BYTES) /* of an event: numbers only */
#define LABEL_BYTES_MAX (1u << 15)

/* A counter that began: by what it counts. */
struct counter {
	/* device, label with COUNTER_OF_LABEL, or a metric's with COUNTER_OF_DEVICE */
	uint64_t key;
	uint64_t track;
	int64_t sum;
};

#define COUNTER_OF_LABEL (UINT64_C(1) << 32)
#define COUNTER_OF_DEVICE (UINT64_C(1) << 63)

/* A track for spans that don't nest, in use by one at a time. */
struct async_track {
	uint64_t track;
	bool is_used;
};

struct sequence {
	const struct recorded_process *process;
	uint32_t id;
	uint64_t last_ns, process_track;
	uint64_t *threads; /* tracks by row; 0: none yet */
	size_t n_threads;
	uint8_t *named; /* by label: enum named */
	bool *named_stacks; /* by number */
	size_t n_stacks;
	struct counter *counters;
	size_t n_counters, counters_room;
	struct async_track *async;
	size_t n_async, async_room;
	uint64_t flow_base; /* added to ordinals: flows of processes are different ones */
	uint32_t first_context; /* its streams are named without the context */
	bool has_context;
	struct key_index strings; /* made-up ones, by a key: numbers from 0 */
};

enum named { NAMED_EVENT = 1, NAMED_TEXT = 2, NAMED_KERNEL = 4 };

struct perfetto {
	struct trace *trace;
	struct output_stream *output;
	struct sequence *sequences;
	struct sequence *last;
	struct forward_spans *forward;
	struct counters counters;
	struct activity_lanes *rows;
	uint64_t n_tracks;
};

#define VARINT_BYTES_MAX 10 /* of 64 bits */
#define FIELD_BYTES_MAX (2 * VARINT_BYTES_MAX)

/* An event under way: what is in its message so far. */
struct event_bytes {
	uint8_t bytes[EVENT_BYTES_MAX], *at;
};

/* Checked before a field is written. */
static inline void perfetto_check_room(const struct event_bytes *event)
{
	assert(event->at <= event->bytes + EVENT_BYTES_MAX - FIELD_BYTES_MAX);
}

static inline uint8_t *perfetto_varint(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

static inline void perfetto_field(struct event_bytes *event, enum tag tag, uint64_t value)
{
	perfetto_check_room(event);
	event->at = perfetto_varint(perfetto_varint(event->at, tag), value);
}

static inline void perfetto_eight(struct event_bytes *event, enum tag tag, uint64_t value)
{
	perfetto_check_room(event);
	event->at = perfetto_varint(event->at, tag);
	memcpy(event->at, &value, 8);
	event->at += 8;
}

static inline void perfetto_start(struct event_bytes *event, Perfetto__TrackEvent__Type type,
				  uint64_t track)
{
	event->at = event->bytes;
	perfetto_field(event, EVENT_TYPE, type);
	perfetto_field(event, EVENT_TRACK, track);
}

/* ---- packets: perfetto_packets.c ------------------------------------------------------------- */

/* An annotation's fields are few and small: its length is one byte. */
void torsh_perfetto_annotate(struct event_bytes *event, enum annotation name, enum tag tag,
			     uint64_t value);

/* The packet around an event. Times are differences; one that goes back is given whole. */
void torsh_perfetto_event(struct perfetto *perfetto, struct sequence *sequence,
			  const struct event_bytes *event, uint64_t at_ns);

/* The same with its time whole: of what was before the event that was written last. */
void torsh_perfetto_past_event(struct perfetto *perfetto, const struct sequence *sequence,
			       const struct event_bytes *event, uint64_t at_ns);

/* A packet of the sequence, to be filled and written. */
Perfetto__TracePacket torsh_perfetto_make_packet(const struct sequence *sequence);

/* Write a packet. */
void torsh_perfetto_packet(struct output_stream *output, const Perfetto__TracePacket *packet);

/* ---- names: perfetto_names.c ----------------------------------------------------------------- */

/* Categories and names of annotations, once at the beginning. */
void torsh_perfetto_put_names(struct perfetto *perfetto, const struct sequence *sequence);

/* The number of a label among the names of events, written before its first use. */
uint64_t torsh_perfetto_name(struct perfetto *perfetto, struct sequence *sequence, uint32_t label);

/* The same among the strings of annotations. */
uint64_t torsh_perfetto_text(struct perfetto *perfetto, struct sequence *sequence, uint32_t label);

/* The same of a stack, as torsh_stack_text formats it. 0: there is none. */
uint64_t torsh_perfetto_stack(struct perfetto *perfetto, struct sequence *sequence, uint32_t stack);

/* The number of a kernel's name, without its mangling, among the names of events. */
uint64_t torsh_perfetto_kernel(struct perfetto *perfetto, struct sequence *sequence,
			       uint32_t label);

/*
 * The number of a text that no label has, by a key of the caller's, which is not 0. *is_new: it has
 * not been used, and is to be written first by one of the two below.
 */
uint64_t torsh_perfetto_made(struct sequence *sequence, uint64_t key, bool *is_new);

/* Returns the id of an event name with that number; text is written at its first use. */
uint64_t torsh_perfetto_made_name(struct perfetto *perfetto, const struct sequence *sequence,
				  uint64_t number, const char *text);

/* Returns the id of an annotation text likewise. */
uint64_t torsh_perfetto_made_text(struct perfetto *perfetto, const struct sequence *sequence,
				  uint64_t number, const char *text);

/* ---- tracks: perfetto_tracks.c --------------------------------------------------------------- */

/* Give the track a number and write it. */
void torsh_perfetto_put_track(struct perfetto *perfetto, const struct sequence *sequence,
			      Perfetto__TrackDescriptor *track);

/* A track below another one that only holds slices. Returns its number. */
uint64_t torsh_perfetto_add_inner(struct perfetto *perfetto, const struct sequence *sequence,
				  uint64_t outer, const char *name);

/* A track of the process that is no thread; counter NULL: of slices. Returns its number. */
uint64_t torsh_perfetto_add_track(struct perfetto *perfetto, const struct sequence *sequence,
				  const char *name, const Perfetto__CounterDescriptor *counter);

/* That of a thread's row; made when it is first needed. */
uint64_t torsh_perfetto_thread_track(struct perfetto *perfetto, struct sequence *sequence,
				     uint32_t row);

/* A track for a span that doesn't nest, its own until it is freed. */
uint64_t torsh_perfetto_take_async(struct perfetto *perfetto, struct sequence *sequence);

/* Free a track of asynchronous slices for reuse. */
void torsh_perfetto_free_async(struct sequence *sequence, uint64_t track);

/* The counter of that key; made, with its name, when it is first needed. */
struct counter *torsh_perfetto_counter(struct perfetto *perfetto, struct sequence *sequence,
				       uint64_t key, const char *name,
				       Perfetto__CounterDescriptor__Unit unit);

/*
 * A run of Python's garbage collector, as a slice inside of that operator (NULL: of none):
 * perfetto_gc.c.
 */
void torsh_perfetto_put_gc(struct perfetto *perfetto, struct sequence *sequence,
			   const struct timeline_event *event, const struct span *innermost);

/* ---- what devices did: perfetto_device.c ----------------------------------------------------- */

extern const struct device_visitor torsh_perfetto_device_visitor; /* its context is the perfetto */

/* Prepare perfetto->devices. */
void torsh_perfetto_devices_create(struct perfetto *perfetto);
/* With the rows that were held back. */
void torsh_perfetto_devices_destroy(struct perfetto *perfetto);

/* ---- what a process begins with: perfetto_process.c ------------------------------------------ */

/* Clocks, names, the process itself, its steps and what the writer saw of its memory. */
void torsh_perfetto_start(struct perfetto *perfetto, struct sequence *sequence,
			  const struct recorded_process *process, uint32_t id);

/* Free what a sequence holds. */
void torsh_perfetto_free(struct sequence *sequence);

#endif
