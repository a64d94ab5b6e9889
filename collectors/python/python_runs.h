/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What is to be recorded of an interpreter is arranged once it runs. */
#ifndef TORSH_COLLECTORS_PYTHON_PYTHON_RUNS_H
#define TORSH_COLLECTORS_PYTHON_PYTHON_RUNS_H

/* A thread executes Python. May be called within a hook, and at any number of times. */
void torsh_python_runs(void);

#endif
