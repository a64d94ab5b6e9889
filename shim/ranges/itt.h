/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The interface between ITT's static part and a tool: ittnotify.h and ittnotify_config.h of
 * intel/ittapi, on Linux. Every DSO with a static part opens the library in INTEL_LIBITTNOTIFY64 at
 * its first call, and calls its __itt_api_init to fill in the pointers.
 */
#ifndef TORSH_SHIM_RANGES_ITT_H
#define TORSH_SHIM_RANGES_ITT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct itt_id {
	uint64_t d1, d2, d3;
};

struct itt_domain {
	volatile int is_enabled; /* 0: ITT's macros call nothing */
	const char *name;
	void *wide_name;
	int extra1;
	void *extra2;
	struct itt_domain *next;
};

struct itt_string {
	const char *text;
	void *wide_text;
	int extra1;
	void *extra2;
	struct itt_string *next;
};

struct itt_histogram {
	const struct itt_domain *domain;
	const char *name;
	void *wide_name;
	uint32_t x_type, y_type;
	int extra1;
	void *extra2;
	struct itt_histogram *next;
};

/* A counter that a static part made before it found a tool; its first field. */
struct itt_counter {
	const char *name;
	void *wide_name;
	const char *domain;
	void *wide_domain;
	int type;
};

/* __itt_metadata_type */
enum itt_type {
	ITT_TYPE_NONE,
	ITT_TYPE_U64,
	ITT_TYPE_S64,
	ITT_TYPE_U32,
	ITT_TYPE_S32,
	ITT_TYPE_U16,
	ITT_TYPE_S16,
	ITT_TYPE_FLOAT,
	ITT_TYPE_DOUBLE
};

/* The functions of itt.def: the agent's, or those of another consumer. NULL: it has none. */
struct itt_functions {
#define ITT(result, name, parameters, arguments) result(*name) parameters;
#define ITT_VOID(name, parameters, arguments) void(*name) parameters;
#define ITT_ALSO(other, name)
#include "shim/ranges/itt.def"
#undef ITT
#undef ITT_VOID
#undef ITT_ALSO
};

extern struct itt_functions torsh_itt_consumer;
extern bool torsh_itt_has_consumer;

/*
 * Open the consumer in the user's INTEL_LIBITTNOTIFY64, if there is one that no client has opened
 * yet, as a client that has no calls of its own. Once.
 */
void torsh_itt_attach_consumer(void);

/* The agent's, in collectors/ranges/itt_events.c. */
extern const struct itt_functions torsh_itt_functions;

#endif
