/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reports a finished operation to the log and to the tracer; with the engine's lock. */
#ifndef SIMCUDA_OP_LOG_H
#define SIMCUDA_OP_LOG_H

struct sim_op;

void sim_op_report(const struct sim_op *op);

#endif
