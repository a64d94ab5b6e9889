/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The last error of a thread. */
#ifndef SIMCUDA_RUNTIME_ERROR_H
#define SIMCUDA_RUNTIME_ERROR_H

struct sim_call;

/* End a call of the runtime and keep what it failed with; returns its result. */
int rt_call_exit(struct sim_call *call);

#endif
