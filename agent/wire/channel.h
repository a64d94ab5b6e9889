/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The contract between a target and the writer begins here. The channel is one memfd, mapped in
 * part by both sides. It holds the header, the tables that only grow (threads, modules, codes,
 * addresses, text) and rings of events, two per thread: everything that the writer needs after the
 * target was killed. PROTOCOL.md has the order of stores, agent/wire/ring.h the rings,
 * agent/wire/events.def the events.
 *
 * Each side treats the other's words as hostile: a value is read once, checked, and the copy is
 * used.
 */
#ifndef TORSH_AGENT_WIRE_CHANNEL_H
#define TORSH_AGENT_WIRE_CHANNEL_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/wire/clock.h"

#define CHANNEL_MAGIC UINT64_C(0x3168636873726f74) /* "torshch1" */
#define CHANNEL_VERSION 13u

#define CHANNEL_HEADER_BYTES 8192u
/* slots; a thread takes one, and its interrupted hooks may take a second */
#define CHANNEL_THREADS 16384u
/*
 * The lowest slots keep the start of their small rings in memory for the next thread, which begins
 * there.
 */
#define CHANNEL_WARM_SLOTS 256u
#define CHANNEL_WARM_BYTES 8192u
#define CHANNEL_MODULES 8192u
#define CHANNEL_ADDRESSES (1u << 22)
#define CHANNEL_CODES (1u << 20)
#define CHANNEL_TEXT_BYTES (64u << 20)
#define CHANNEL_NOTES_BYTES 4096u /* of the text area, for notes */

/*
 * Each side maps a table piece by piece, as it is used: the file is large and sparse. A piece holds
 * whole entries, and the rest at its end stays empty. No text crosses a piece's end.
 */
#define CHANNEL_PIECE_BYTES (64u << 10)
#define CHANNEL_PER_PIECE(entry_bytes) (CHANNEL_PIECE_BYTES / (uint32_t)(entry_bytes))

/* The most frames of a stack sent to the writer: native ones and those of an interpreter. */
#define CHANNEL_STACK_MAX 4096u

/* The file name of the agent's own Python code, in stacks of its allocations. */
#define AGENT_PYTHON_FILE "<torsh>"

/* A thread begins with a small ring, and continues in a large one once that was half full. */
#define CHANNEL_RING_SMALL_BYTES (64u << 10)
#define CHANNEL_RING_MIN_BYTES CHANNEL_RING_SMALL_BYTES
/* of a ring's start, mapped again after its end: more than one event */
#define CHANNEL_RING_MIRROR_BYTES 4096u
#define CHANNEL_RING_MAX_BYTES (256u << 20)
#define CHANNEL_RING_DEFAULT_BYTES (1u << 20)

/*
 * The clock of stamps. A stamp is (ticks >> CHANNEL_STAMP_SHIFT), so that most differences fit one
 * byte.
 */
#define CHANNEL_STAMP_SHIFT 4
enum channel_clock { CHANNEL_CLOCK_TSC = 1, CHANNEL_CLOCK_MONOTONIC = 2 };

enum channel_state {
	CHANNEL_STARTING,
	CHANNEL_RUNNING,
	CHANNEL_EXITING, /* exit() or _exit() was called: late frees may follow */
	CHANNEL_EXECUTING, /* an exec was called; cleared when it failed */
};

#define CHANNEL_ENDED 3u /* in is_paused and heap_is_off */

enum channel_writer_state {
	CHANNEL_WRITER_NONE, /* not attached yet */
	CHANNEL_WRITER_ATTACHED,
	CHANNEL_WRITER_REFUSED, /* it can't read this layout: the agent turns itself off */
	CHANNEL_WRITER_GONE, /* set by the agent when it finds the writer dead */
	CHANNEL_WRITER_CLOSED, /* it ended the recording itself, e.g. without a place to write */
};

/*
 * What a count means for the recording: nothing, a missing event, or something else that is
 * missing.
 */
enum counter_kind { COUNTED, LOST_EVENTS, LOST_OTHER };

/* Bits: what a process waits for at its exit. */
enum channel_exit_wish {
	EXIT_SUMMARY = 1, /* the text to print */
	EXIT_EXPORTS = 2, /* the exports at the end of a run */
	EXIT_WHOLE = 4, /* the file: the writer can't outlive the process */
	EXIT_VERDICTS = 8, /* which of its blocks can be reached: read from its memory */
	EXIT_NAMED = 16, /* not awaited: the process names the writer to Yama before */
};

/* What is stored in exit_begin_answer and exit_answer. */
enum channel_exit_answer {
	EXIT_NO_ANSWER,
	EXIT_ANSWERED, /* everything is done */
	EXIT_COPY_WANTED, /* the process copies itself, stores EXIT_NO_ANSWER and waits on */
};

#define CHANNEL_EXIT_TEXT_BYTES 2048u

/* A copy of the process at its exit: the writer reads its memory, and the process goes on. */
struct channel_copy {
	_Atomic int32_t pid; /* futex, stored by the process: -errno if there is none; 0: not yet */
	_Atomic uint32_t is_read; /* futex, stored by the writer: 1 when the copy ends */
};

/* Counted failures of the agent, by name: counters.def. */
enum channel_counter {
#define COUNTER(name, kind, text) COUNTER_##name,
#include "agent/wire/counters.def"
#undef COUNTER
	N_COUNTERS
};

/* A piece of the text area: offset from its start. length 0: none. */
struct channel_text {
	uint32_t offset;
	uint32_t length;
};

/* What a program requests of the writer by torsh.h. Windows are described at channel_memory. */
enum channel_call_verb {
	CALL_MEMORY = 1, /* the figures of a window */
	CALL_MEMORY_BEGIN, /* open a window; CALL_WITH_SITES: record what is live at its peak */
	CALL_MEMORY_END, /* the figures of a window, which ends */
	CALL_MEMORY_RESET, /* begin the window anew; the figures are those from before */
	CALL_PAUSE, /* of the whole session */
	CALL_RESUME,

	/* The torsh command of the writer writes the file call_path. */
	CALL_SNAPSHOT, /* of the session */
	CALL_EXPORT, /* of the session; call_argument: the format */
	CALL_LEAKS, /* what this process allocated since the mark call_argument and has */
};

#define CALL_WITH_SITES 1u
#define CHANNEL_ARGUMENT_BYTES 256u
#define CHANNEL_PATH_BYTES 4096u

/*
 * The heap of a process in a window, at the moment of the call. Window 0 begins with the process
 * and never ends.
 */
struct channel_memory {
	uint64_t bytes, blocks; /* now */
	uint64_t begin_bytes, begin_blocks; /* when the window began */
	uint64_t peak_bytes; /* the highest sum since then */
	uint32_t window;
	uint32_t reserved;
};

#define CHANNEL_FILTER_UNDER_WAY (UINT64_C(1) << 32) /* in harmless_filters: a call in progress */
#define CHANNEL_FILTERS_UNKNOWN UINT32_MAX

struct channel_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint32_t key; /* of this file; used by the target only */

	/* Layout, in bytes from the start of the memfd. Fixed before the writer sees it. */
	uint64_t threads_offset;
	uint64_t modules_offset;
	uint64_t codes_offset;
	uint64_t addresses_offset;
	uint64_t text_offset;
	/* small ring of slot i at rings_offset + i * CHANNEL_RING_SMALL_BYTES */
	uint64_t rings_offset;
	uint64_t large_rings_offset; /* large ring of slot i < n_large_rings, ring_bytes each */
	uint64_t total_bytes;
	uint32_t n_thread_slots;
	uint32_t n_large_rings;
	uint32_t n_module_slots;
	uint32_t n_code_slots;
	uint32_t n_address_slots;
	uint32_t n_text_bytes;
	uint32_t ring_bytes; /* of a large ring: a power of two, a multiple of the page */

	/* Identity. */
	uint32_t pid;
	uint32_t parent_pid;
	/* pid of the recorded parent if this is a fork, or 0; tables were copied from it */
	uint32_t forked_from;
	/* of seccomp, of its first thread at its start; CHANNEL_FILTERS_UNKNOWN */
	uint32_t n_filters;

	/* Clocks at the start: the same moment on three clocks. */
	uint32_t clock; /* enum channel_clock */
	uint32_t stamp_shift;
	uint64_t start_ticks;
	/* start_ticks of that process, because pids are reused. 0: not a fork */
	uint64_t forked_from_ticks;
	uint64_t start_monotonic_ns;
	uint64_t start_realtime_ns;

	struct channel_text program; /* /proc/self/exe */
	struct channel_text arguments; /* NUL-separated, cut at 4 KiB */
	/* path of the module with the target's malloc, and its special properties */
	struct channel_text allocator;
	struct channel_text rank; /* from the launcher's environment */
	struct channel_text identity; /* NUL-separated, see torsh_launcher_put */

	/*
	 * Bytes allocated per sampled block, on average; 0: every block is sent. If not 0, the
	 * table of struct heap_counts has an entry for each slot.
	 */
	uint64_t heap_rate;
	uint64_t heap_counts_offset;
	uint32_t wants_verdicts; /* 1: it waits at its exit for EXIT_VERDICTS */

	/*
	 * High-water marks of the tables: entries below are claimed; each table states when they
	 * are complete.
	 */
	alignas(64) _Atomic uint32_t n_threads;
	_Atomic uint32_t n_modules;
	_Atomic uint32_t n_codes;
	_Atomic uint32_t n_addresses;
	_Atomic uint32_t text_used;
	_Atomic uint32_t state; /* enum channel_state */
	_Atomic int32_t exit_status;
	_Atomic uint32_t writer_pid; /* in this process's PID namespace; 0: unknown */
	/* futex: changes when the writer has to read /proc/PID/status */
	_Atomic uint32_t status_requests;
	_Atomic uint32_t status_unanswered; /* the request with a wait that timed out; 0: none */
	_Atomic uint64_t counters[N_COUNTERS];
	_Atomic uint32_t exit_waits; /* 1: the process waits at its exit for exit_answer */
	/* 1: its exit begins, and it waits for exit_begin_answer before it frees what it has */
	_Atomic uint32_t exit_begins;
	/* stack pointer of the thread that waits at one of these, with its registers above it */
	_Atomic uint64_t waiting_at;
	_Atomic uint32_t waiting_tid; /* of that thread; 0: unknown */
	_Atomic uint32_t wait_disturbed; /* how often handlers of signals ran in it */
	/*
	 * Seccomp filters of the first thread that the agent ran and found harmless, in the lower
	 * half; calls in progress that add a filter, in the upper half. Read by
	 * torsh_target_count_filters in the writer.
	 */
	_Atomic uint64_t harmless_filters;

	/*
	 * Free slots: the number of the top one + 1 in the lower half, 0 for none; next_free links
	 * the others. The upper half changes at each operation, so that one with a stale view of
	 * the stack fails.
	 */
	alignas(64) _Atomic uint64_t free_slots;
	_Atomic uint32_t n_closed; /* uses of slots that ended, modulo 2^32 */

	/*
	 * Sentences for the report's header, each ended by a newline, at the start of the text
	 * area.
	 */
	_Atomic uint32_t notes_length;

	/* Written by the writer. */
	alignas(64) _Atomic uint32_t writer_state; /* enum channel_writer_state */
	_Atomic uint32_t n_freed; /* futex: how many of the n_closed slots were freed */
	/* set by a thread that waits for n_freed to change, cleared by the writer that wakes it */
	_Atomic uint32_t freed_awaited;
	/* the process has a filter beyond n_filters and harmless_filters */
	_Atomic uint32_t has_new_filter;
	/* futex: how many of the status_requests were answered */
	_Atomic uint32_t status_answers;
	/* CPU time of the thread that drains, written every 200 ms by another thread; 0: not yet */
	_Atomic uint64_t writer_cpu_ns;
	/* changes at least every 100 ms while the writer drains or sleeps lightly */
	_Atomic uint32_t heartbeat;

	/*
	 * Doorbell, a futex word: 1 while the writer sleeps until it is woken. A producer with a
	 * ring a quarter full exchanges it to 0 and wakes.
	 */
	alignas(64) _Atomic uint32_t writer_sleeps;

	/*
	 * Stored by the writer, read at every allocation: 1 means that new blocks need not be sent,
	 * CHANNEL_ENDED that the writer ends.
	 */
	alignas(64) _Atomic uint32_t is_paused;
	/* the same word for the heap's hooks of a process whose heap is not recorded */
	_Atomic uint32_t heap_is_off;

	/* Stored by the process: it can be armed again after its writer has ended. */
	_Atomic uint32_t may_rest;

	/* Stored by the writer. */
	/* bits of channel_exit_wish; before writer_state */
	alignas(64) _Atomic uint32_t exit_wishes;
	/* futex, enum channel_exit_answer: everything is done, and the text is complete */
	_Atomic uint32_t exit_answer;
	_Atomic uint32_t exit_text_length;
	_Atomic uint32_t exit_judged; /* 1: for exit_answer its memory is not looked at any more */
	/* futex, likewise: its blocks are judged, or its copy's are going to be */
	_Atomic uint32_t exit_begin_answer;
	struct channel_copy exit_begin_copy, exit_copy;
	char exit_text[CHANNEL_EXIT_TEXT_BYTES]; /* whole lines */
	struct clock_reference clock_reference; /* in this process's ticks */

	/*
	 * Stored by the process: how far its stamps are above the counter, because that was set
	 * back. Only grows.
	 */
	alignas(64) _Atomic uint64_t clock_lift;

	/*
	 * Signals of the user's that the process got, modulo 2^32: to pause or to resume the
	 * session, and to keep a copy of it. Stored by the process.
	 */
	_Atomic uint32_t switch_signals, keep_signals;

	/* A call of torsh.h, one at a time. Stored by the process. */
	alignas(64) _Atomic uint32_t caller; /* futex: tid of the thread that calls; 0: none */
	_Atomic uint32_t call_verb; /* enum channel_call_verb; before calls, as is call_window */
	_Atomic uint32_t call_window;
	_Atomic uint32_t calls; /* number of calls so far */
	/* texts of the calls that write a file; they end with '\0' */
	char call_argument[CHANNEL_ARGUMENT_BYTES];
	char call_path[CHANNEL_PATH_BYTES]; /* if relative, to the process's working directory */

	/* Stored by the writer. */
	alignas(64) _Atomic uint32_t call_answers; /* futex: number of the last call answered */
	_Atomic int32_t call_result; /* 0 or -errno; before call_answers, as is call_memory */
	struct channel_memory call_memory;
};

_Static_assert(sizeof(struct channel_header) <= CHANNEL_HEADER_BYTES,
	       "the header has outgrown its pages");

enum thread_slot_state {
	THREAD_SLOT_FREE,
	THREAD_SLOT_ACTIVE, /* owned by a producer */
	THREAD_SLOT_CLOSED, /* the producer is done: the writer drains and frees it */
	THREAD_SLOT_CLAIMED, /* a producer is writing the identity's line */
};

enum thread_slot_kind {
	THREAD_SLOT_MAIN, /* a thread's ordinary events */
	/* events of signal handlers that interrupted a hook of the thread with the same tid */
	THREAD_SLOT_INTERRUPT,
};

/*
 * A thread and both ends of its ring. head and tail count all bytes; the place in the ring is the
 * value modulo the ring's size.
 */
struct thread_slot {
	/* Producer's line. */
	/* bytes committed << 1 | 1 while an event is being stamped and written */
	alignas(64) _Atomic uint64_t head;
	/* events; stored before head is released. May include the one in flight */
	_Atomic uint64_t produced;
	/* events dropped because the ring was full and the writer stuck, or lost otherwise */
	_Atomic uint64_t dropped;
	_Atomic uint64_t waited_ns; /* time spent waiting for room */
	uint64_t base_stamp; /* the first event's difference adds to this */
	/*
	 * bytes from this position on are in the large ring; CHANNEL_NOT_LARGE: all are in the
	 * small one
	 */
	_Atomic uint64_t large_from;

	/* Consumer's line. */
	alignas(64) _Atomic uint64_t tail; /* bytes consumed */
	_Atomic uint32_t progress; /* futex: changes when tail moved and a producer waits */
	/* set by the producer, cleared by the consumer that wakes it */
	_Atomic uint32_t producer_waits;

	/* Identity's line: written before state becomes ACTIVE. */
	alignas(64) _Atomic uint32_t state; /* enum thread_slot_state */
	uint32_t kind; /* enum thread_slot_kind */
	uint32_t tid;
	/* how often this slot was taken: the consumer resets its decoder with each use */
	uint32_t use;
	/*
	 * of the channel's first thread; for others the writer queries the kernel, because a filter
	 * may forbid the call
	 */
	char name[16];
	/* while the slot is free: number + 1 of the next free one, 0: none */
	_Atomic uint32_t next_free;
};

#define CHANNEL_NOT_LARGE UINT64_MAX

_Static_assert(sizeof(struct thread_slot) == 192, "thread_slot is part of the layout");

/* The new free_slots with this slot on top (number + 1), or with none (0). */
static inline uint64_t torsh_channel_free_word(uint64_t word, uint32_t uppermost)
{
	return ((word >> 32) + 1) << 32 | uppermost;
}

/*
 * Push slot number i on the stack of free ones; its own line is final. Returns 0 if the other side
 * changed the stack at every try, which only a hostile one does.
 */
static inline int torsh_channel_push_free(struct channel_header *header, struct thread_slot *slot,
					  uint32_t i)
{
	uint64_t word = atomic_load_explicit(&header->free_slots, memory_order_relaxed);

	for (int n = 0; n < 1000000; n++) {
		atomic_store_explicit(&slot->next_free, (uint32_t)word, memory_order_relaxed);
		/* Release pairs with the acquire of the thread that takes it. */
		if (atomic_compare_exchange_weak_explicit(
			    &header->free_slots, &word, torsh_channel_free_word(word, i + 1),
			    memory_order_release, memory_order_relaxed))
			return 1;
	}
	return 0;
}

#define CHANNEL_SIZE_CLASSES 64u

/* The class of a size: 0 for 0, else floor(log2(size)) + 1. */
static inline uint32_t torsh_channel_size_class(uint64_t size)
{
	return size ? ((63 ^ (uint32_t)__builtin_clzll(size)) + 1) % CHANNEL_SIZE_CLASSES : 0;
}

/*
 * Exact counts of a slot's producers where blocks are sampled, over all uses of the slot: only
 * increase. Stored by the producer, unordered with its events. A failed realloc may lower frees.
 */
struct heap_counts {
	alignas(64) _Atomic uint64_t frees; /* blocks that ended, by free or by realloc */
	struct {
		_Atomic uint64_t blocks, bytes;
	} sizes[CHANNEL_SIZE_CLASSES]; /* allocated, by the class of the requested size */
};

_Static_assert(sizeof(struct heap_counts) == 1088, "heap_counts is part of the layout");

#define CHANNEL_BUILD_ID_MAX 32

/*
 * A mapped ELF object, described by its own program headers. Claimed by advancing n_modules, then
 * written; complete once an address refers to it.
 */
struct channel_module {
	uint64_t bias; /* address in memory − address in the file's program headers */
	uint64_t start, end; /* span of its mapping */
	struct channel_text path; /* empty: memory without a file; "[vdso]" for the vdso */
	uint32_t n_build_id;
	uint8_t build_id[CHANNEL_BUILD_ID_MAX];
	uint32_t reserved;
};

_Static_assert(sizeof(struct channel_module) == 72, "channel_module is part of the layout");

#define CHANNEL_NO_MODULE UINT32_MAX

/*
 * A function of an interpreted language, as its code object names it; or a label of timeline
 * events, which has only a name. Claimed by advancing n_codes, then written; complete once an
 * address or an event refers to it.
 */
struct channel_code {
	struct channel_text name; /* qualified if the interpreter provides that */
	struct channel_text file;
	uint32_t first_line;
	uint32_t reserved;
};

_Static_assert(sizeof(struct channel_code) == 24, "channel_code is part of the layout");

/*
 * What an address is, besides code. The pseudo-addresses end a stack that could not be followed to
 * its real end.
 */
enum channel_address_flag {
	ADDRESS_RETURN = 0, /* a return address: the call is just before it */
	ADDRESS_EXACT = 1, /* the interrupted instruction itself, below a signal frame */
	ADDRESS_SIGNAL_FRAME = 2, /* the trampoline that returns from a signal */
	/* no FDE: the frames outside of it were found by the rbp chain */
	ADDRESS_NO_UNWIND_INFO = 4,

	/*
	 * A line of Python, not an address: ip is the line (0: the code has none), module the index
	 * of a code. It is directly outside of the native frame of the evaluation function that
	 * executes it.
	 */
	ADDRESS_PYTHON = 8,

	/* Pseudo-addresses: ip is 0, or the last address before the stack is cut. */
	ADDRESS_CUT_UNKNOWN_CODE = 16, /* JIT, or stripped of unwind information: no way on */
	/* an impossible frame: the stack does not match the unwind rule */
	ADDRESS_CUT_BAD_FRAME = 17,
	/* deeper than the limit: only the innermost frames are present */
	ADDRESS_CUT_TOO_DEEP = 18,
	ADDRESS_CUT_TABLE_FULL = 19, /* the table of addresses is full */
	/* from the writer: the whole stack was dropped without memory */
	ADDRESS_CUT_NO_MEMORY = 20,
};

/*
 * An entry below n_addresses is complete once ip_and_flags has CHANNEL_ADDRESS_THERE: module is
 * stored before.
 */
struct channel_address {
	_Atomic uint64_t ip_and_flags; /* ip << 8 | CHANNEL_ADDRESS_THERE | flags */
	uint32_t module; /* index, or CHANNEL_NO_MODULE; ADDRESS_PYTHON: index of a code */
	uint32_t reserved;
};

_Static_assert(sizeof(struct channel_address) == 16, "channel_address is part of the layout");

#define CHANNEL_ADDRESS_THERE 0x80u

/*
 * The hello: one SOCK_SEQPACKET message with the memfd as its only SCM_RIGHTS descriptor. There is
 * no answer.
 */
struct channel_hello {
	uint64_t magic;
	uint32_t version;
	uint32_t pid;
};

#endif
