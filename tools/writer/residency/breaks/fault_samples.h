/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Page faults of another thread, one in so many, as the kernel's perf events sample them: where it
 * was, at which address, and what its registers and the top of its stack held at that moment. The
 * kernel takes some microseconds of the thread for each sample; nothing is changed in it.
 */
#ifndef TORSH_WRITER_RESIDENCY_BREAKS_FAULT_SAMPLES_H
#define TORSH_WRITER_RESIDENCY_BREAKS_FAULT_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FAULT_WORDS_MAX 144u /* those that a call preserves, then the stack, innermost first */

struct fault_sample {
	uint64_t address; /* that was accessed */
	uint64_t ip; /* of the instruction; of the system call that accessed it for the thread */
	uint64_t words[FAULT_WORDS_MAX];
	uint32_t n_words;
};

struct fault_samples {
	int fd;
	void *ring; /* the kernel's page, and a ring of ring_bytes behind it */
	size_t ring_bytes, page_bytes;
	uint64_t n_lost; /* samples for which the ring had no room */
	unsigned char *record;
};

/*
 * Sample one in `every` minor faults of a thread until it ends or executes another program. Returns
 * 0, or -errno with nothing to close: -EACCES, -EPERM, -ENOSYS where the system forbids it, -ENOENT
 * on a CPU whose registers are not known here.
 */
int torsh_fault_samples_open(struct fault_samples *samples, pid_t tid, uint64_t every);

/* Take the next sample. Returns false if there is none yet. */
bool torsh_fault_samples_next(struct fault_samples *samples, struct fault_sample *sample);

/* End the sampling. */
void torsh_fault_samples_close(struct fault_samples *samples);

#endif
