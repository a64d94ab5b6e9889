/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/breaks/fault_samples.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/base/memory.h"

#define STACK_BYTES 1024u
#define RECORD_BYTES 65536u /* the length of a record has 16 bits */

/* Rings that are tried: without a privilege a user may lock half a megabyte in all. */
static const size_t ring_sizes[] = {1u << 20, 1u << 18, 1u << 16};

/* Registers, as bits of the mask, in the order in which a sample has them: the lowest bit first. */
#if defined(__x86_64__)
static const uint8_t preserved[] = {PERF_REG_X86_BX,  PERF_REG_X86_BP,	PERF_REG_X86_R12,
				    PERF_REG_X86_R13, PERF_REG_X86_R14, PERF_REG_X86_R15};
#define REGISTER_IP PERF_REG_X86_IP
#elif defined(__aarch64__)
static const uint8_t preserved[] = {PERF_REG_ARM64_X19, PERF_REG_ARM64_X20, PERF_REG_ARM64_X21,
				    PERF_REG_ARM64_X22, PERF_REG_ARM64_X23, PERF_REG_ARM64_X24,
				    PERF_REG_ARM64_X25, PERF_REG_ARM64_X26, PERF_REG_ARM64_X27,
				    PERF_REG_ARM64_X28, PERF_REG_ARM64_X29};
#define REGISTER_IP PERF_REG_ARM64_PC
#else
static const uint8_t preserved[1];
#define REGISTER_IP 0
#define UNKNOWN_CPU 1
#endif

#define N_PRESERVED (sizeof(preserved) / sizeof(*preserved))

static uint64_t mask_of_registers(void)
{
	uint64_t mask = UINT64_C(1) << REGISTER_IP;

	for (size_t i = 0; i < N_PRESERVED; i++)
		mask |= UINT64_C(1) << preserved[i];
	return mask;
}

static int open_event(pid_t tid, uint64_t every, bool without_kernel, bool until_exec)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_PAGE_FAULTS_MIN,
		.sample_period = every,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_ADDR |
			       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = mask_of_registers(),
		.sample_stack_user = STACK_BYTES,
		.exclude_kernel = without_kernel,
		.exclude_hv = 1,
		.remove_on_exec = until_exec,
	};
	long fd = syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* Faults in system calls may be seen with a privilege; kernels before 5.13 go on after an exec. */
static int open_any(pid_t tid, uint64_t every)
{
	int fd = -ENOENT;

#ifdef UNKNOWN_CPU
	return fd;
#endif
	for (int i = 0; i < 4 && fd < 0 && fd != -ESRCH; i++)
		fd = open_event(tid, every, i & 1, i < 2);
	return fd;
}

int torsh_fault_samples_open(struct fault_samples *samples, pid_t tid, uint64_t every)
{
	int error = EPERM;

	*samples = (struct fault_samples){.page_bytes = (size_t)sysconf(_SC_PAGESIZE)};
	samples->fd = open_any(tid, every);
	if (samples->fd < 0)
		return samples->fd;
	for (size_t i = 0; i < sizeof(ring_sizes) / sizeof(*ring_sizes); i++) {
		samples->ring_bytes = ring_sizes[i];
		samples->ring = mmap(NULL, samples->page_bytes + samples->ring_bytes,
				     PROT_READ | PROT_WRITE, MAP_SHARED, samples->fd, 0);
		if (samples->ring != MAP_FAILED) {
			samples->record = torsh_memory_new(1, RECORD_BYTES);
			return 0;
		}
		error = errno;
	}
	close(samples->fd);
	samples->fd = -1;
	return -error;
}

void torsh_fault_samples_close(struct fault_samples *samples)
{
	if (samples->fd < 0)
		return;
	munmap(samples->ring, samples->page_bytes + samples->ring_bytes);
	close(samples->fd);
	free(samples->record);
	samples->record = NULL;
	samples->fd = -1;
}

/* Copy n bytes from the position, which may lie across the ring's end. */
static void copy(const struct fault_samples *samples, uint64_t at, void *bytes, size_t n)
{
	const char *data = (const char *)samples->ring + samples->page_bytes;
	size_t from = at % samples->ring_bytes;
	size_t part = samples->ring_bytes - from < n ? samples->ring_bytes - from : n;

	memcpy(bytes, data + from, part);
	memcpy((char *)bytes + part, data, n - part);
}

/* The next n bytes of a record. Returns false if it has not as many. */
static bool take(const unsigned char **at, const unsigned char *end, void *bytes, size_t n)
{
	if ((size_t)(end - *at) < n)
		return false;
	memcpy(bytes, *at, n);
	*at += n;
	return true;
}

/* The order of the fields is that of perf_event_open(2). */
static bool decode(struct fault_sample *sample, const unsigned char *at, const unsigned char *end)
{
	uint64_t mask = mask_of_registers(), head[3], abi, bytes, registers[64] = {0};

	if (!take(&at, end, head, sizeof(head)) || !take(&at, end, &abi, sizeof(abi)))
		return false;
	*sample = (struct fault_sample){.ip = head[0], .address = head[2]};
	if (!abi)
		return true; /* a thread of the kernel */
	for (uint32_t i = 0; i < 64; i++) {
		if (mask >> i & 1 && !take(&at, end, &registers[i], sizeof(uint64_t)))
			return false;
	}
	sample->ip = registers[REGISTER_IP];
	for (size_t i = 0; i < N_PRESERVED; i++)
		sample->words[sample->n_words++] = registers[preserved[i]];
	if (!take(&at, end, &bytes, sizeof(bytes)) || bytes > (uint64_t)(end - at))
		return true;
	/* Behind the bytes stands how many of them are the stack's. */
	if (bytes && (uint64_t)(end - at) >= bytes + sizeof(uint64_t)) {
		uint64_t of_stack;

		memcpy(&of_stack, at + bytes, sizeof(of_stack));
		bytes = of_stack < bytes ? of_stack : bytes;
	}
	while (bytes >= sizeof(uint64_t) && sample->n_words < FAULT_WORDS_MAX &&
	       take(&at, end, &sample->words[sample->n_words], sizeof(uint64_t))) {
		sample->n_words++;
		bytes -= sizeof(uint64_t);
	}
	return true;
}

bool torsh_fault_samples_next(struct fault_samples *samples, struct fault_sample *sample)
{
	struct perf_event_mmap_page *page = samples->ring;
	/* Pairs with the kernel's release: what is before the head is written. */
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = page->data_tail;
	bool is_sample = false;

	while (!is_sample && head - tail >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;
		uint64_t lost[2];

		copy(samples, tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			break;
		copy(samples, tail, samples->record, header.size);
		tail += header.size;
		if (header.type == PERF_RECORD_LOST &&
		    header.size >= sizeof(header) + sizeof(lost)) {
			memcpy(lost, samples->record + sizeof(header), sizeof(lost));
			samples->n_lost += lost[1];
		}
		is_sample = header.type == PERF_RECORD_SAMPLE &&
			    decode(sample, samples->record + sizeof(header),
				   samples->record + header.size);
	}
	/* Pairs with the kernel's acquire: it may overwrite what is before the tail. */
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	return is_sample;
}
