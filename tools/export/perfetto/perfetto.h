/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Functions and state that the parts of the exporter for Perfetto share: sequences, numbers of
 * fields, and the current event.
 *
 * Each process is a separate sequence of packets, with times as differences to the previous packet
 * and names as numbers. Rare packets are written by protobuf-c; events, which occur by the
 * million, are assembled here from the same field numbers (perfetto.proto):
 * test/unit/export/trace_test.c reads them back through protobuf-c.
 */
#ifndef TORSH_EXPORT_PERFETTO_PERFETTO_H
#define TORSH_EXPORT_PERFETTO_PERFETTO_H

#include "perfetto.pb-c.h"
#include "tools/timeline/collectives/collective_calls.h"
#include "tools/timeline/collectives/nccl_spans.h"
#include "tools/base/containers/key_index.h"
#include "tools/device/kernels/counters.h"
#include "tools/export/trace.h"

enum clock { CLOCK_ID_REALTIME = 1, CLOCK_ID_BOOTTIME = 6, CLOCK_ID_STEP = 64 };
enum flags { STATE_BEGINS = 1, STATE_NEEDED = 2 };

/*
 * Tags of the fields that are assembled here: number << 3, and wire type 0 varint, 1 eight bytes,
 * 2 bytes with their length.
 */
enum tag {
	TRACE_PACKET = 1 << 3 | 2,
	PACKET_TIMESTAMP = 8 << 3,
	PACKET_SEQUENCE = 10 << 3,
	PACKET_EVENT = 11 << 3 | 2,
	PACKET_FLAGS = 13 << 3,
	PACKET_CLOCK = 58 << 3,
	PACKET_SAMPLE = 66 << 3 | 2,
	EVENT_CATEGORY = 3 << 3,
	EVENT_ANNOTATION = 4 << 3 | 2,
	EVENT_TYPE = 9 << 3,
	EVENT_NAME = 10 << 3,
	EVENT_TRACK = 11 << 3,
	EVENT_COUNTER = 30 << 3,
	EVENT_DOUBLE_COUNTER = 44 << 3 | 1,
	EVENT_FLOW = 47 << 3 | 1,
	EVENT_LAST_FLOW = 48 << 3 | 1,
	SAMPLE_PID = 2 << 3,
	SAMPLE_TID = 3 << 3,
	SAMPLE_CALLSTACK = 4 << 3,
	SAMPLE_CPU_MODE = 5 << 3,
	SAMPLE_TIMEBASE = 6 << 3,
	ANNOTATION_NAME = 1 << 3,
	ANNOTATION_UINT = 3 << 3,
	ANNOTATION_DOUBLE = 5 << 3 | 1,
	ANNOTATION_TEXT = 17 << 3,
};

/* CATEGORY(NAME, text), ANNOTATION(NAME, text): numbers are given in this order, from 1. */
#define CATEGORIES                                   \
	CATEGORY(OPERATOR, "cpu_op")                 \
	CATEGORY(USER, "user_annotation")            \
	CATEGORY(MODULE, "module")                   \
	CATEGORY(NVTX, "nvtx")                       \
	CATEGORY(ITT, "itt")                         \
	CATEGORY(MARK, "mark")                       \
	CATEGORY(STEP, "step")                       \
	CATEGORY(RUNTIME, "cuda_runtime")            \
	CATEGORY(DRIVER, "cuda_driver")              \
	CATEGORY(KERNEL, "kernel")                   \
	CATEGORY(COPY, "gpu_memcpy")                 \
	CATEGORY(MEMSET, "gpu_memset")               \
	CATEGORY(GRAPH, "cuda_graph")                \
	CATEGORY(COLLECTOR, "python_gc")             \
	CATEGORY(COLLECTIVE_WAIT, "collective_wait") \
	CATEGORY(LIBRARY, "library_call")            \
	CATEGORY(NCCL, "nccl")                       \
	CATEGORY(COLLECTIVE, "collective")

#define ANNOTATIONS                                   \
	ANNOTATION(INPUTS, "inputs")                  \
	ANNOTATION(OVERLOAD, "overload")              \
	ANNOTATION(IN_BYTES, "in_bytes")              \
	ANNOTATION(OUT_BYTES, "out_bytes")            \
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
	ANNOTATION(COLLECTED, "collected")            \
	ANNOTATION(ALGORITHM, "algorithm")            \
	ANNOTATION(PROTOCOL, "protocol")              \
	ANNOTATION(CHANNEL, "channel")                \
	ANNOTATION(GROUP, "group")                    \
	ANNOTATION(M, "m")                            \
	ANNOTATION(N, "n")                            \
	ANNOTATION(K, "k")                            \
	ANNOTATION(BATCH, "batch")                    \
	ANNOTATION(FLOPS, "flops")                    \
	ANNOTATION(CLOCK_ERROR, "clock_error_ns")

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

#define FLOW_BYTES 10 /* of an event's flow */
#define FLOWS_MAX 4096u /* per event: launches of graphs have many */
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
	uint64_t flow_base; /* added to ordinals, because flow ids of processes must differ */
	uint32_t first_context; /* its streams are named without the context */
	bool has_context;
	struct key_index strings; /* numbers of texts without a label, by key, from 0 */
	struct perfetto_samples *samples; /* NULL: there was none yet */
};

enum named { NAMED_EVENT = 1, NAMED_TEXT = 2, NAMED_KERNEL = 4 };

struct perfetto {
	struct trace *trace;
	struct output_stream *output;
	struct sequence *sequences;
	struct sequence *last;
	struct forward_spans *forward;
	struct counters counters;
	struct collective_calls calls;
	struct nccl_spans nccl;
	struct activity_lanes *rows;
	uint64_t n_tracks;
};

#define VARINT_BYTES_MAX 10 /* of 64 bits */
#define FIELD_BYTES_MAX (2 * VARINT_BYTES_MAX)

/* An event being assembled: its message so far. */
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

/* Write the packet of an event. Times are differences; one that goes back is absolute. */
void torsh_perfetto_event(struct perfetto *perfetto, struct sequence *sequence,
			  const struct event_bytes *event, uint64_t at_ns);

/* Likewise with an absolute time, for an event before the one written last. */
void torsh_perfetto_past_event(struct perfetto *perfetto, const struct sequence *sequence,
			       const struct event_bytes *event, uint64_t at_ns);

/* Likewise the packet of a sample, from the bytes of its message. */
void torsh_perfetto_sample_packet(struct perfetto *perfetto, struct sequence *sequence,
				  const struct event_bytes *sample, uint64_t at_ns);

/* Returns a packet of the sequence, to be filled and written. */
Perfetto__TracePacket torsh_perfetto_make_packet(const struct sequence *sequence);

/* Write a packet. */
void torsh_perfetto_packet(struct output_stream *output, const Perfetto__TracePacket *packet);

/* ---- names: perfetto_names.c ----------------------------------------------------------------- */

/* Put a packet of names. */
void torsh_perfetto_put_interned(struct output_stream *output, const struct sequence *sequence,
				 Perfetto__InternedData *data);

/* Put categories and names of annotations, once at the start. */
void torsh_perfetto_put_names(struct perfetto *perfetto, const struct sequence *sequence);

/* Returns the number of a label among the names of events, written before its first use. */
uint64_t torsh_perfetto_name(struct perfetto *perfetto, struct sequence *sequence, uint32_t label);

/* Returns its number among the strings of annotations likewise. */
uint64_t torsh_perfetto_text(struct perfetto *perfetto, struct sequence *sequence, uint32_t label);

/*
 * Returns the number of a stack's text by torsh_stack_text, among the strings of annotations; 0:
 * there is none.
 */
uint64_t torsh_perfetto_stack(struct perfetto *perfetto, struct sequence *sequence, uint32_t stack);

/* Returns the number of a kernel's demangled name among the names of events. */
uint64_t torsh_perfetto_kernel(struct perfetto *perfetto, struct sequence *sequence,
			       uint32_t label);

/*
 * Returns the number of a text without a label, by a key of the caller's, not 0. *is_new: it must
 * first be written by one of the two functions below.
 */
uint64_t torsh_perfetto_made(struct sequence *sequence, uint64_t key, bool *is_new);

/* Returns the id of an event name with that number; text is written at its first use. */
uint64_t torsh_perfetto_made_name(struct perfetto *perfetto, const struct sequence *sequence,
				  uint64_t number, const char *text);

/* Returns the id of an annotation text likewise. */
uint64_t torsh_perfetto_made_text(struct perfetto *perfetto, const struct sequence *sequence,
				  uint64_t number, const char *text);

/* Take any event of the process: what NCCL did. At the end: what is open. perfetto_nccl.c */
void torsh_perfetto_see_nccl(struct perfetto *perfetto, struct sequence *sequence,
			     const struct timeline_event *event);
void torsh_perfetto_end_nccl(struct perfetto *perfetto);

/* ---- tracks: perfetto_tracks.c --------------------------------------------------------------- */

/* Assign a number to the track and write it. */
void torsh_perfetto_put_track(struct perfetto *perfetto, const struct sequence *sequence,
			      Perfetto__TrackDescriptor *track);

/* Add a track below another one that only has slices. Returns its number. */
uint64_t torsh_perfetto_add_inner(struct perfetto *perfetto, const struct sequence *sequence,
				  uint64_t outer, const char *name);

/* Add a track of the process that is no thread; counter NULL: for slices. Returns its number. */
uint64_t torsh_perfetto_add_track(struct perfetto *perfetto, const struct sequence *sequence,
				  const char *name, const Perfetto__CounterDescriptor *counter);

/* Returns the track of a thread's row, created at its first use. */
uint64_t torsh_perfetto_thread_track(struct perfetto *perfetto, struct sequence *sequence,
				     uint32_t row);

/* Returns a track for an unnested span, reserved until it is freed. */
uint64_t torsh_perfetto_take_async(struct perfetto *perfetto, struct sequence *sequence);

/* Free a track of asynchronous slices for reuse. */
void torsh_perfetto_free_async(struct sequence *sequence, uint64_t track);

/* Returns the counter of that key, created with its name at the first use. */
struct counter *torsh_perfetto_counter(struct perfetto *perfetto, struct sequence *sequence,
				       uint64_t key, const char *name,
				       Perfetto__CounterDescriptor__Unit unit);

/*
 * A call of BLAS or LAPACK, as a slice inside of that operator (NULL: of none): perfetto_library.c.
 */
void torsh_perfetto_put_library_call(struct perfetto *perfetto,
				     const struct recorded_process *process,
				     const struct timeline_event *event,
				     const struct span *innermost);

/* A run of Python's garbage collector likewise: perfetto_gc.c. */
void torsh_perfetto_put_gc(struct perfetto *perfetto, struct sequence *sequence,
			   const struct timeline_event *event, const struct span *innermost);

/* A thread waited for a collective, as a slice inside of that operator: perfetto_wait.c. */
void torsh_perfetto_put_wait(struct perfetto *perfetto, struct sequence *sequence,
			     const struct timeline_event *event, const struct span *innermost,
			     const struct collective_call *call);

/* The collectives that other ranks had, too, with arrows between ranks: perfetto_calls.c. */
void torsh_perfetto_put_calls(struct perfetto *perfetto, struct sequence *sequence);

/* ---- samples of the processor: perfetto_samples.c -------------------------------------------- */

/*
 * Put a sample with its stack. The sequence's counter of processor time rises by the sample's, so
 * that the differences of its values are the weights.
 */
void torsh_perfetto_put_cpu_sample(struct perfetto *perfetto, struct sequence *sequence,
				   const struct timeline_event *event);

/* Free what the samples of a sequence needed; NULL: there were none. */
void torsh_perfetto_samples_free(struct perfetto_samples *samples);

/* ---- what devices did: perfetto_device.c ----------------------------------------------------- */

/* its context is the struct perfetto */
extern const struct device_visitor torsh_perfetto_device_visitor;

/* Prepare perfetto->devices. */
void torsh_perfetto_devices_create(struct perfetto *perfetto);
/* Writes the held activities first. */
void torsh_perfetto_devices_destroy(struct perfetto *perfetto);

/* ---- what a process begins with: perfetto_process.c ------------------------------------------ */

/* Put clocks, names, the process itself, its steps and the writer's samples of its memory. */
void torsh_perfetto_start(struct perfetto *perfetto, struct sequence *sequence,
			  const struct recorded_process *process, uint32_t id);

/* Free what a sequence owns. */
void torsh_perfetto_free(struct sequence *sequence);

#endif
