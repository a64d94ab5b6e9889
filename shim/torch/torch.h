/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The ABI of libtorch: functions by their mangled names, and the layout of three of its classes. No
 * layout is tied to a version: shim/torch/torch_calibration.h measures it in the running process,
 * and an unknown field is not read.
 */
#ifndef TORSH_SHIM_TORCH_TORCH_H
#define TORSH_SHIM_TORCH_TORCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TORCH_UNKNOWN UINT16_MAX /* an offset that was not found */
#define TORCH_NO_TAG UINT32_MAX
#define TORCH_INLINE_DIMS 5u /* c10::SizesAndStrides stores up to this many inline */

struct torch_layout {
	/* In at::RecordFunction. */
	uint16_t inputs; /* {pointer to c10::IValue, count} */
	uint16_t sequence; /* i64, -1: none */
	/* u64, torsh_torch_thread of the thread that ran forward; 0: none */
	uint16_t forward_thread;

	/* In c10::TensorImpl. */
	/* the count, then the sizes and strides, 5 each, or a pointer to all of them */
	uint16_t sizes;
	uint16_t type; /* u16, in the order of c10::ScalarType */
	uint16_t device; /* c10::Device: two signed bytes */
	uint16_t storage; /* a pointer to the c10::StorageImpl, which may be 0 */

	/* In c10::StorageImpl: the address of its memory. */
	uint16_t data;

	/* In the list that an IValue points to: first and end of its IValues. */
	uint16_t list;

	/* Of an IValue: u32 after its payload of 8 bytes. */
	uint32_t tag_none, tag_tensor, tag_int, tag_double, tag_bool, tag_list;

	/* Virtual tables: tensors of other classes are not read. */
	uintptr_t tensor_class, undefined_class;
};

/* Complete, and never changed again, once torsh_torch_is_calibrated. */
extern struct torch_layout torsh_torch_layout;
extern _Atomic int torsh_torch_is_calibrated;

/* Of process groups, found when the program makes its first one: c10d passes them as objects. */
struct torch_group_layout {
	uint32_t tag; /* of an IValue that is an object */
	/*
	 * in the object: start and end of its IValues; the only one points to the
	 * c10d::ProcessGroup
	 */
	uint16_t slots;
	uint16_t pointer; /* in the ProcessGroup's Python object: the same pointer */
};

extern struct torch_group_layout torsh_torch_group_layout;
extern _Atomic int torsh_torch_has_groups;

struct torch_ivalue {
	uint64_t payload;
	uint32_t tag, padding;
};

enum torch_scopes { TORCH_BACKWARD, TORCH_USER, TORCH_OTHER, N_TORCH_SCOPES };

/* record: an at::RecordFunction, valid only during the call. frame: as in shim/hooks.h. */
typedef void torch_begin(const void *record, enum torch_scopes scopes, const void *frame);
typedef void torch_end(const void *record);

/*
 * Observe every operator and scope from now on, on its own thread, permanently: removing a callback
 * is not safe. with_inputs: torch copies the arguments of each into IValues, which costs time.
 * Returns 0, -ENOENT if libtorch is missing or lacks a function, or -EALREADY. Any thread, but not
 * in a wrapper that libtorch's static objects may call.
 */
int torsh_torch_observe(torch_begin *begin, torch_end *end, bool with_inputs);

/* The operator's or scope's name; valid only during the call. */
const char *torsh_torch_name(const void *record);

/*
 * The overload name of the operator: "" for the default one and for scopes; valid only during the
 * call. NULL if this version has no function for it.
 */
const char *torsh_torch_overload(const void *record);

/* Whether torsh_torch_overload works; after torsh_torch_observe. */
bool torsh_torch_has_overloads(void);

/* torch's own number of the calling thread, from 1; 0 if it is unavailable. */
uint64_t torsh_torch_thread(void);

/* The number of the next autograd node of the calling thread; -1 if it is unavailable. */
int64_t torsh_torch_sequence(void);

#endif
