/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Samples of the processor time of threads: each thread has a timer of its own processor time,
 * whose signal takes its stack. A thread that waits is not sampled. cpu_timers.h has the timers of
 * all threads, and the signal.
 */
#ifndef TORSH_COLLECTORS_CPU_CPU_SAMPLER_H
#define TORSH_COLLECTORS_CPU_CPU_SAMPLER_H

/*
 * The calling thread has got its producer: sample it from now on, if samples were requested. The
 * first thread of a process begins its sampling.
 */
void torsh_cpu_sampler_thread_starts(void);

/* The calling thread gets no more samples. */
void torsh_cpu_sampler_thread_ends(void);

/*
 * The program takes the sampler's signal: continue with another one, or end the samples of the
 * process where none is free.
 */
void torsh_cpu_sampler_give_way(void);

#endif
