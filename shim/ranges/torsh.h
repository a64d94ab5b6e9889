/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Regions, marks, values and steps of your program in its torsh recording, and the figures of its
 * heap. Header only, C99 or C++11, nothing to link with: without libtorshagent.so preloaded, each
 * call tests a pointer and does nothing.
 *
 *	#include <torsh.h>
 *
 *	void train(void)
 *	{
 *		for (uint64_t i = 0; i < 100; i++) {
 *			torsh_step(i);
 *			torsh_range_push("forward");
 *			...
 *			torsh_range_pop();
 *			torsh_scalar("loss", loss);
 *		}
 *	}
 *
 * Texts are copied during the call, up to 16384 bytes. Any thread may call anything; the thread
 * that pushed a range pops it, while any thread may end one that was started. errno is kept.
 */
#ifndef TORSH_H
#define TORSH_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum torsh_payload { TORSH_PAYLOAD_NONE, TORSH_PAYLOAD_U64, TORSH_PAYLOAD_I64, TORSH_PAYLOAD_F64 };

/*
 * Attributes of a range or a mark. Zeroed fields are absent; size is sizeof(struct
 * torsh_attributes).
 */
struct torsh_attributes {
	uint32_t size;
	uint32_t color; /* ARGB */
	const char *domain; /* ranges of different domains nest independently */
	const char *category;
	uint32_t payload_type; /* enum torsh_payload */
	uint32_t reserved;
	union {
		uint64_t u64;
		int64_t i64;
		double f64;
	} payload;
};

#define TORSH_STEP_UNNUMBERED UINT64_MAX

enum torsh_value { TORSH_VALUE_SCALAR, TORSH_VALUE_COUNTER, TORSH_VALUE_SAMPLE };

/* The heap of this process at a moment, in the blocks and bytes that the program requested. */
struct torsh_memory {
	uint32_t size; /* sizeof(struct torsh_memory); set by torsh_memory_* */
	uint32_t window;
	uint64_t current_bytes, current_blocks;
	uint64_t begin_bytes, begin_blocks; /* when the window began */
	uint64_t peak_bytes; /* the most at one time since then */
};

#define TORSH_NO_AGENT_ 38 /* ENOSYS */
#define TORSH_WITH_SITES_ 1u

enum torsh_call_ {
	TORSH_CALL_MEMORY_ = 1,
	TORSH_CALL_BEGIN_,
	TORSH_CALL_END_,
	TORSH_CALL_RESET_,
	TORSH_CALL_PAUSE_,
	TORSH_CALL_RESUME_,
	TORSH_CALL_SNAPSHOT_,
	TORSH_CALL_EXPORT_,
	TORSH_CALL_LEAKS_
};

/*
 * The agent's functions. Weak: NULL without it. In a program that is not position-independent the
 * linker would make that a constant, so there the address is read from the global offset table.
 */
#define TORSH_ENTRIES_                                                                             \
	TORSH_ENTRY_(int, range_push,                                                              \
		     (const char *name, const struct torsh_attributes *attributes))                \
	TORSH_ENTRY_(int, range_pop, (const char *domain))                                         \
	TORSH_ENTRY_(uint64_t, range_start,                                                        \
		     (const char *name, const struct torsh_attributes *attributes))                \
	TORSH_ENTRY_(void, range_end, (uint64_t range))                                            \
	TORSH_ENTRY_(void, mark, (const char *name, const struct torsh_attributes *attributes))    \
	TORSH_ENTRY_(void, value,                                                                  \
		     (const char *name, const char *domain, uint32_t kind, double value))          \
	TORSH_ENTRY_(void, step, (const char *name, uint64_t number))                              \
	TORSH_ENTRY_(int, call, (uint32_t verb, uint32_t window, struct torsh_memory * memory))    \
	TORSH_ENTRY_(int, file, (uint32_t verb, const char *argument, const char *path))           \
	TORSH_ENTRY_(uint64_t, request_begin,                                                      \
		     (const char *name, uint64_t number, const char *traceparent, uint32_t flags)) \
	TORSH_ENTRY_(void, request_end, (uint64_t number, uint64_t former))

#if !defined(__PIC__) && defined(__x86_64__)
#define TORSH_ADDRESS_(to, name) \
	__asm__(".weak " name "\n\tmovq " name "@GOTPCREL(%%rip), %0" : "=r"(to))
#elif !defined(__PIC__) && defined(__aarch64__)
#define TORSH_ADDRESS_(to, name)                                                               \
	__asm__(".weak " name "\n\tadrp %0, :got:" name "\n\tldr %0, [%0, :got_lo12:" name "]" \
		: "=r"(to))
#endif

#ifdef TORSH_ADDRESS_
#define TORSH_ENTRY_(result, name, parameters)                   \
	typedef result torsh_##name##_fn parameters;             \
	static inline torsh_##name##_fn *torsh_find_##name(void) \
	{                                                        \
		torsh_##name##_fn *entry;                        \
		TORSH_ADDRESS_(entry, "torsh_v1_" #name);        \
		return entry;                                    \
	}
#else
#define TORSH_ENTRY_(result, name, parameters)                          \
	typedef result torsh_##name##_fn parameters;                    \
	extern torsh_##name##_fn torsh_v1_##name __attribute__((weak)); \
	static inline torsh_##name##_fn *torsh_find_##name(void)        \
	{                                                               \
		return &torsh_v1_##name;                                \
	}
#endif
TORSH_ENTRIES_
#undef TORSH_ENTRY_
#undef TORSH_ENTRIES_
#undef TORSH_ADDRESS_

/* Whether an agent receives these calls. It may be inert. */
static inline int torsh_is_there(void)
{
	return torsh_find_range_push() != NULL;
}

/*
 * Begin a range of this thread; the innermost of its domain ends first. attributes may be NULL.
 * Returns its depth.
 */
static inline int torsh_range_push_with(const char *name, const struct torsh_attributes *attributes)
{
	torsh_range_push_fn *push = torsh_find_range_push();

	return push ? push(name, attributes) : 0;
}

static inline int torsh_range_push(const char *name)
{
	return torsh_range_push_with(name, NULL);
}

/*
 * End the innermost range of the domain (NULL: of no domain) on this thread. Returns its depth, or
 * -1 if there is none.
 */
static inline int torsh_range_pop_from(const char *domain)
{
	torsh_range_pop_fn *pop = torsh_find_range_pop();

	return pop ? pop(domain) : 0;
}

static inline int torsh_range_pop(void)
{
	return torsh_range_pop_from(NULL);
}

/*
 * Begin a range that any thread may end, by the number that is returned; 0 if nothing is recorded.
 */
static inline uint64_t torsh_range_start_with(const char *name,
					      const struct torsh_attributes *attributes)
{
	torsh_range_start_fn *start = torsh_find_range_start();

	return start ? start(name, attributes) : 0;
}

static inline uint64_t torsh_range_start(const char *name)
{
	return torsh_range_start_with(name, NULL);
}

static inline void torsh_range_end(uint64_t range)
{
	torsh_range_end_fn *end = torsh_find_range_end();

	if (end)
		end(range);
}

#define TORSH_REQUEST_DOMAIN_ "torsh.request"

/*
 * A request that this thread serves begins here: a step of `torsh steps`, and a row of `torsh
 * requests` with what the thread does for it. The thread ends it. Within another request it is part
 * of that. traceparent: as in the request's header, or NULL.
 */
static inline void torsh_request_begin_traced(const char *name, const char *traceparent)
{
	const struct torsh_attributes attributes = {
		sizeof(attributes), 0, TORSH_REQUEST_DOMAIN_, NULL, 0, 0, {0}};
	torsh_request_begin_fn *begin = torsh_find_request_begin();

	torsh_range_push_with(name, &attributes);
	if (begin)
		begin(name, 0, traceparent, 0);
}

static inline void torsh_request_begin(const char *name)
{
	torsh_request_begin_traced(name, NULL);
}

static inline void torsh_request_end(void)
{
	torsh_request_end_fn *end = torsh_find_request_end();

	if (end)
		end(0, 0);
	torsh_range_pop_from(TORSH_REQUEST_DOMAIN_);
}

/* Mark this moment. attributes may be NULL. */
static inline void torsh_mark_with(const char *name, const struct torsh_attributes *attributes)
{
	torsh_mark_fn *mark = torsh_find_mark();

	if (mark)
		mark(name, attributes);
}

static inline void torsh_mark(const char *name)
{
	torsh_mark_with(name, NULL);
}

static inline void torsh_value_(const char *name, enum torsh_value kind, double number)
{
	torsh_value_fn *value = torsh_find_value();

	if (value)
		value(name, NULL, (uint32_t)kind, number);
}

/* A number that is plotted over time: a loss, a rate. */
static inline void torsh_scalar(const char *name, double value)
{
	torsh_value_(name, TORSH_VALUE_SCALAR, value);
}

/* A current quantity. */
static inline void torsh_counter(const char *name, double value)
{
	torsh_value_(name, TORSH_VALUE_COUNTER, value);
}

/* One sample of a distribution. */
static inline void torsh_histogram(const char *name, double sample)
{
	torsh_value_(name, TORSH_VALUE_SAMPLE, sample);
}

/*
 * A training step begins here, and the previous one ends. TORSH_STEP_UNNUMBERED: the agent counts.
 */
static inline void torsh_step(uint64_t number)
{
	torsh_step_fn *step = torsh_find_step();

	if (step)
		step(NULL, number);
}

/* The same with a name, which reports show instead of the number. */
static inline void torsh_step_named(uint64_t number, const char *name)
{
	torsh_step_fn *step = torsh_find_step();

	if (step)
		step(name, number);
}

/*
 * The figures of the heap. Each call waits, some milliseconds, until the recording has all that the
 * process did before: the figures are exact. Any thread; blocks of other threads count as well. In
 * a signal handler that interrupted an allocation, or another of these calls, they return -EDEADLK.
 * A forked child has figures of its own: blocks that it inherited are not in them.
 */
static inline int torsh_memory_call_(enum torsh_call_ verb, uint32_t window,
				     struct torsh_memory *memory)
{
	torsh_call_fn *call = torsh_find_call();
	const struct torsh_memory none = {sizeof(none), 0, 0, 0, 0, 0, 0};

	*memory = none;
	return call ? call((uint32_t)verb, window, memory) : -TORSH_NO_AGENT_;
}

/*
 * Read an open window; 0 is that of the whole process. Returns 0 or -errno: -ENOSYS without an
 * agent that records this process, -ENOENT for a window that is not open, -ESRCH and -ETIMEDOUT
 * when the recording has ended or stands still. *memory is zeroed then.
 */
static inline int torsh_memory_read(uint32_t window, struct torsh_memory *memory)
{
	return torsh_memory_call_(TORSH_CALL_MEMORY_, window, memory);
}

/* Open a window and read it; memory->window is its number. Returns 0 or -errno. */
static inline int torsh_memory_begin(struct torsh_memory *memory)
{
	return torsh_memory_call_(TORSH_CALL_BEGIN_, 0, memory);
}

/*
 * Likewise, and the recording keeps what is live at the window's highest moment, exactly. In a
 * range that is around the window, `torsh peak --region NAME` shows it by line; torsh_snapshot has
 * it once the window is closed. At most 16 such windows are open at one time, and the latest 16
 * kept.
 */
static inline int torsh_memory_begin_with_lines(struct torsh_memory *memory)
{
	return torsh_memory_call_(TORSH_CALL_BEGIN_, TORSH_WITH_SITES_, memory);
}

/* Read a window for the last time, and close it. Returns 0 or -errno. */
static inline int torsh_memory_end(uint32_t window, struct torsh_memory *memory)
{
	return torsh_memory_call_(TORSH_CALL_END_, window, memory);
}

/* The bytes that the program has allocated now; 0 without an agent. */
static inline uint64_t torsh_current_bytes(void)
{
	struct torsh_memory memory;

	torsh_memory_read(0, &memory);
	return memory.current_bytes;
}

/* The most at one time, since the process began or torsh_reset_peak; 0 without an agent. */
static inline uint64_t torsh_peak_bytes(void)
{
	struct torsh_memory memory;

	torsh_memory_read(0, &memory);
	return memory.peak_bytes;
}

/* Let torsh_peak_bytes begin anew. The recording keeps its own peak. Returns 0 or -errno. */
static inline int torsh_reset_peak(void)
{
	struct torsh_memory memory;

	return torsh_memory_call_(TORSH_CALL_RESET_, 0, &memory);
}

/*
 * Pause the recording in all processes of the session, and resume it: what begins in the pause is
 * left out, of memory, ranges, operators and devices, but for steps. torsh_resume also begins the
 * recording of a process that was started dormant (TORSH_PROFILER_ENABLED=dormant). Returns 0,
 * -EALREADY if nothing changes, or another -errno.
 */
static inline int torsh_pause(void)
{
	struct torsh_memory memory;

	return torsh_memory_call_(TORSH_CALL_PAUSE_, 0, &memory);
}

static inline int torsh_resume(void)
{
	struct torsh_memory memory;

	return torsh_memory_call_(TORSH_CALL_RESUME_, 0, &memory);
}

/*
 * Files of what the session holds now, while it goes on. The torsh command that belongs to the
 * agent writes them, outside of this process, which waits for it: seconds for a large session. A
 * relative path is in the working directory. They return 0 or -errno: as torsh_memory_read does,
 * -EINVAL for a path, a format or a mark that the command refuses, -EIO if it fails otherwise,
 * -ENAMETOOLONG for paths of more than 4095 bytes and other texts of more than 255.
 */
static inline int torsh_file_call_(enum torsh_call_ verb, const char *argument, const char *path)
{
	torsh_file_fn *file = torsh_find_file();

	return file ? file((uint32_t)verb, argument, path) : -TORSH_NO_AGENT_;
}

/* Write a recording, NAME.torsh, which every torsh command reads. */
static inline int torsh_snapshot(const char *path)
{
	return torsh_file_call_(TORSH_CALL_SNAPSHOT_, NULL, path);
}

/* Write one of torsh export's formats: "folded", "html", ... */
static inline int torsh_export(const char *format, const char *path)
{
	return torsh_file_call_(TORSH_CALL_EXPORT_, format, path);
}

/*
 * Write what this process allocated since it first set the mark, and has: by stack, as
 * `torsh leaks --since MARK --json` prints it.
 */
static inline int torsh_leaks_since(const char *mark, const char *path)
{
	return torsh_file_call_(TORSH_CALL_LEAKS_, mark, path);
}

/* The C library's, also where <stdlib.h> declares neither. */
extern int torsh_setenv_(const char *name, const char *value, int overwrite) __asm__("setenv");
extern int torsh_unsetenv_(const char *name) __asm__("unsetenv");

#define TORSH_PREFIX_ "TORSH_PROFILER_"

/*
 * Set a variable of the agent, for programs that this one starts from now on:
 * torsh_configure("with_stack", "0") sets TORSH_PROFILER_WITH_STACK; NULL removes one. This process
 * read its own when it started. Changes the environment, as setenv does. Returns 0, -EINVAL for a
 * name that no variable has, or another -errno; -ENOSYS without an agent: nothing is set then.
 */
static inline int torsh_configure(const char *name, const char *value)
{
	char variable[64] = TORSH_PREFIX_;
	size_t n = sizeof(TORSH_PREFIX_) - 1;
	int saved = errno, result = 0;

	if (!torsh_is_there())
		return -TORSH_NO_AGENT_;
	if (!name || !*name)
		return -EINVAL;
	for (; *name; name++) {
		int is_lower = *name >= 'a' && *name <= 'z';

		if (n == sizeof(variable) - 1 ||
		    (!is_lower && *name != '_' && !(*name >= 'A' && *name <= 'Z')))
			return -EINVAL;
		variable[n++] = (char)(is_lower ? *name - 'a' + 'A' : *name);
	}
	if (value ? torsh_setenv_(variable, value, 1) : torsh_unsetenv_(variable))
		result = -errno;
	errno = saved;
	return result;
}

static inline void torsh_range_leave_(const int *unused)
{
	(void)unused;
	torsh_range_pop();
}

#define TORSH_PASTE_(a, b) a##b
#define TORSH_PASTE(a, b) TORSH_PASTE_(a, b)

/* A range from here to the end of the block, however it is left. At most one per line. */
#define TORSH_RANGE(name)                                                           \
	__attribute__((cleanup(torsh_range_leave_), unused)) const int TORSH_PASTE( \
		torsh_range_, __LINE__) = torsh_range_push(name)

#ifdef __cplusplus
}

namespace torsh
{

/* A range for as long as the object lives: torsh::range r("forward"); */
class range
{
      public:
	explicit range(const char *name)
	{
		torsh_range_push(name);
	}
	range(const range &) = delete;
	range &operator=(const range &) = delete;
	~range()
	{
		torsh_range_pop();
	}
};

} // namespace torsh
#endif

#endif
