/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A call of a simulated library from its entry to its exit: where faults are injected, correlation
 * ids are drawn, and CUPTI looks on. The generated entry points (gen/) make one for every call.
 */
#ifndef SIMCUDA_CALL_H
#define SIMCUDA_CALL_H

#include <stdbool.h>
#include <stdint.h>

/* The values of CUpti_CallbackDomain where there is one. */
enum sim_domain {
	SIM_DOMAIN_OTHER = 0,
	SIM_DOMAIN_DRIVER = 1,
	SIM_DOMAIN_RUNTIME = 2,
};

/* One per function, static, shared by all threads. */
struct sim_api {
	const char *name;
	uint32_t cbid;
	enum sim_domain domain;
	int unsupported; /* the library's word for "not supported" */
	_Atomic int fault_state;
	_Atomic uint64_t n_calls;
	_Atomic uint64_t n_unsupported;
	struct sim_api *next;
};

struct sim_call {
	struct sim_api *api;
	void *params; /* the generated parameter struct of CUPTI's callbacks */
	const char *symbol; /* the kernel that is launched, or NULL */
	struct sim_call *outer;
	uint64_t correlation;
	uint64_t correlation_data; /* a slot of the subscriber's, from enter to exit */
	uint64_t begin_ns, begin_stamp;
	int result;
	bool is_traced;
	bool is_per_thread; /* the default stream means the thread's own (_ptsz, _ptds) */
};

/*
 * Begin a call on this thread. Returns false where the call is to fail at once: result is set, and
 * sim_call_exit still follows.
 */
bool sim_call_enter(struct sim_call *call);

/* End it; returns its result. */
int sim_call_exit(struct sim_call *call);

/* The innermost call of this thread, or NULL. */
struct sim_call *sim_call_current(void);

/* CUPTI's id of what the current call submits: that of the outermost call; 0 outside of one. */
uint64_t sim_call_correlation(void);

/* Count a function that is not simulated; returns its result. */
int sim_call_unsupported(struct sim_api *api);

/*
 * Whether SIMCUDA_FAULTS makes this call fail, for libraries without callbacks of CUPTI; code is
 * set then.
 */
bool sim_fault_is_due(struct sim_api *api, int *code);

/* The number of the calling thread in the kernel. */
uint32_t sim_thread_id(void);

#endif
