/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/torch/torch.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "shim/loader/objects.h"
#include "shim/sys.h"
#include "shim/torch/torch_state.h"

#define ADD_CALLBACK "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"
#define NAME_OF_RECORD "_ZNK2at14RecordFunction4nameEv"
#define OVERLOAD_OF_RECORD "_ZNK2at14RecordFunction13overload_nameEv" /* in 2.7 and later */
#define CURRENT_THREAD "_ZN2at14RecordFunction15currentThreadIdEv"
#define SEQUENCE_PEEK "_ZN2at15sequence_number4peekEv"
#define N_SCOPES 10 /* at::RecordScope::NUM_SCOPES, in 1.13 and later */
#define SCOPE_BACKWARD 1
#define SCOPE_USER 7

/* at::RecordFunctionCallback: trivially copyable, passed by value. */
struct callback {
	void *start, *end;
	double probability;
	bool scopes[N_SCOPES];
	bool needs_inputs, needs_outputs, needs_ids;
};

_Static_assert(sizeof(struct callback) == 40 && offsetof(struct callback, needs_inputs) == 34,
	       "as torch has it");

struct torch_layout torsh_torch_layout;
_Atomic int torsh_torch_is_calibrated;
struct torch_group_layout torsh_torch_group_layout;
_Atomic int torsh_torch_has_groups;

static uint64_t (*add_callback)(struct callback callback);
static const char *(*name_of)(const void *record);
static const char *(*overload_of)(const void *record);
static uint64_t (*current_thread)(void);
static int64_t (*peek_sequence)(void);
static torch_begin *send_begin;
static torch_end *send_end;
static _Atomic bool is_observed;

/*
 * A start callback returns a std::unique_ptr through a hidden pointer, which x86-64 passes as the
 * first argument and returns, and aarch64 passes in x8.
 */
#if defined(__x86_64__)
#define START(name, scopes)                                             \
	static void **name(void **context, const void *record)          \
	{                                                               \
		*context = NULL;                                        \
		send_begin(record, scopes, __builtin_frame_address(0)); \
		return context;                                         \
	}
#elif defined(__aarch64__)
#define START(name, scopes)                                                                        \
	__attribute__((used)) static void name##_with(const void *record,                          \
						      void **context) __asm__(#name "_with");      \
	static void name##_with(const void *record, void **context)                                \
	{                                                                                          \
		*context = NULL;                                                                   \
		send_begin(record, scopes, __builtin_frame_address(0));                            \
	}                                                                                          \
	void name(void);                                                                           \
	__asm__(".text\n.hidden " #name "\n.globl " #name "\n" #name ":\n\tmov x1, x8\n\tb " #name \
		"_with\n");
#endif

START(torsh_torch_start_backward, TORCH_BACKWARD)
START(torsh_torch_start_user, TORCH_USER)
START(torsh_torch_start_other, TORCH_OTHER)
#undef START

static void finish(const void *record, void *context)
{
	(void)context;
	send_end(record);
}

/* One for each set of scopes: the called function identifies the scope. */
static void observe(enum torch_scopes scopes, bool with_inputs)
{
	static void *const starts[] = {
		[TORCH_BACKWARD] = torsh_torch_start_backward,
		[TORCH_USER] = torsh_torch_start_user,
		[TORCH_OTHER] = torsh_torch_start_other,
	};
	struct callback callback = {
		.start = starts[scopes],
		.end = finish,
		.probability = 1.0,
		.needs_inputs = with_inputs,
	};

	for (int i = 0; i < N_SCOPES; i++) {
		enum torch_scopes set = i == SCOPE_BACKWARD ? TORCH_BACKWARD
					: i == SCOPE_USER   ? TORCH_USER
							    : TORCH_OTHER;

		callback.scopes[i] = set == scopes;
	}
	add_callback(callback);
}

int torsh_torch_observe(torch_begin *begin, torch_end *end, bool with_inputs)
{
	void *add = torsh_objects_find(ADD_CALLBACK), *name = torsh_objects_find(NAME_OF_RECORD);

	if (!add || !name)
		return -ENOENT;
	if (atomic_exchange(&is_observed, true))
		return -EALREADY;
	*(void **)&add_callback = add;
	*(void **)&name_of = name;
	*(void **)&overload_of = torsh_objects_find(OVERLOAD_OF_RECORD);
	*(void **)&current_thread = torsh_objects_find(CURRENT_THREAD);
	*(void **)&peek_sequence = torsh_objects_find(SEQUENCE_PEEK);
	send_begin = begin;
	send_end = end;
	torsh_torch_state_cache();
	for (int scopes = 0; scopes < N_TORCH_SCOPES; scopes++)
		observe((enum torch_scopes)scopes, with_inputs);
	return 0;
}

const char *torsh_torch_name(const void *record)
{
	return name_of(record);
}

const char *torsh_torch_overload(const void *record)
{
	return overload_of ? overload_of(record) : NULL;
}

bool torsh_torch_has_overloads(void)
{
	return overload_of != NULL;
}

uint64_t torsh_torch_thread(void)
{
	return current_thread ? current_thread() : 0;
}

int64_t torsh_torch_sequence(void)
{
	return peek_sequence ? peek_sequence() : -1;
}
