/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Functions of c10d::Work, by their mangled names: how it is made, when gloo's thread begins to
 * communicate for it, when it is finished, and how long somebody waits for it. libtorch calls them
 * through its procedure linkage and virtual tables, which are bound to the first definition.
 *
 * No wrapper holds anything during the call: finish and wait may throw.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/hooks.h"
#include "shim/loader/objects.h"

#define NAMED(name) __asm__(name)
#define GLOO "_ZN4c10d16ProcessGroupGloo"
#define WAIT "4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE"
#define POINTER "N3c1013intrusive_ptrIS1_NS2_6detail34intrusive_target_default_null_typeIS1_EEEE"

#define MADE_C1 "_ZN4c10d4WorkC1EiNS_6OpTypeEPKcRKSt8optionalISt6vectorIN2at6TensorESaIS7_EEE"
#define MADE_C2 "_ZN4c10d4WorkC2EiNS_6OpTypeEPKcRKSt8optionalISt6vectorIN2at6TensorESaIS7_EEE"
/* before 2.2 */
#define MADE_OLD "_ZN4c10d4WorkC2EiNS_6OpTypeEPKcRKN3c108optionalISt6vectorIN2at6TensorESaIS8_EEEE"
#define FINISH "_ZN4c10d4Work6finishENSt15__exception_ptr13exception_ptrE"

/*
 * The definition in libtorch. It is there, because libtorch called the wrapper. Threads in a race
 * find the same.
 */
static void *next_of(void *_Atomic *known, const char *name)
{
	void *next = atomic_load_explicit(known, memory_order_relaxed);

	if (!next) {
		next = torsh_objects_find(name);
		atomic_store_explicit(known, next, memory_order_relaxed);
	}
	return next;
}

#define MADE(function, name)                                                                     \
	EXPORT void function(void *work, int rank, uint8_t kind, const char *title,              \
			     const void *inputs) NAMED(name);                                    \
	void function(void *work, int rank, uint8_t kind, const char *title, const void *inputs) \
	{                                                                                        \
		static void *_Atomic known;                                                      \
		void (*next)(void *, int, uint8_t, const char *, const void *);                  \
                                                                                                 \
		*(void **)&next = next_of(&known, name);                                         \
		next(work, rank, kind, title, inputs);                                           \
		torsh_torch_work_made(work);                                                     \
	}
MADE(torsh_work_made_c1, MADE_C1)
MADE(torsh_work_made_c2, MADE_C2)
MADE(torsh_work_made_old, MADE_OLD)
#undef MADE

/* A static function: its argument refers to an intrusive_ptr, which is one pointer to the work. */
#define RUN(function, name)                                  \
	EXPORT void function(void *const *work) NAMED(name); \
	void function(void *const *work)                     \
	{                                                    \
		static void *_Atomic known;                  \
		void (*next)(void *const *);                 \
                                                             \
		*(void **)&next = next_of(&known, name);     \
		torsh_torch_work_runs(*work);                \
		next(work);                                  \
	}
RUN(torsh_work_run, GLOO "9AsyncWork7executeERK" POINTER)
RUN(torsh_work_run_old, GLOO "9AsyncWork7executeE" POINTER)
#undef RUN

/* exception: refers to an exception_ptr, which is one pointer; NULL: it succeeded. */
EXPORT void torsh_work_finish(void *work, void *const *exception) NAMED(FINISH);
void torsh_work_finish(void *work, void *const *exception)
{
	static void *_Atomic known;
	void (*next)(void *, void *const *);

	*(void **)&next = next_of(&known, FINISH);
	torsh_torch_work_ends(work, *exception != NULL);
	next(work, exception);
}

/* is_end: nothing else reports the end of such a work. */
#define WAITS(function, name, is_end)                                     \
	EXPORT bool function(void *work, int64_t timeout_ms) NAMED(name); \
	bool function(void *work, int64_t timeout_ms)                     \
	{                                                                 \
		static void *_Atomic known;                               \
		uint64_t begin_ns = torsh_torch_work_waits(work);         \
		bool (*next)(void *, int64_t);                            \
		bool result;                                              \
                                                                          \
		*(void **)&next = next_of(&known, name);                  \
		result = next(work, timeout_ms);                          \
		torsh_torch_work_waited(work, begin_ns, is_end);          \
		return result;                                            \
	}
WAITS(torsh_work_wait, "_ZN4c10d4Work" WAIT, false)
WAITS(torsh_work_wait_send, GLOO "8SendWork" WAIT, true)
WAITS(torsh_work_wait_receive, GLOO "8RecvWork" WAIT, true)
WAITS(torsh_work_wait_nccl, "_ZN4c10d16ProcessGroupNCCL8WorkNCCL" WAIT, false)
#undef WAITS
