/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/libc/filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shim/sys.h"

#if defined(__x86_64__)
#define OWN_AUDIT_ARCH AUDIT_ARCH_X86_64
#else
#define OWN_AUDIT_ARCH AUDIT_ARCH_AARCH64
#endif

#define NOT_RUN SECCOMP_RET_KILL_PROCESS /* the result for a filter that the kernel will refuse */

/* A run of a program: its registers and its input. */
struct run {
	uint32_t a, x, memory[BPF_MEMWORDS];
	struct seccomp_data data;
};

static bool load(struct run *run, const struct sock_filter *op)
{
	uint32_t value;

	switch (BPF_MODE(op->code)) {
	case BPF_ABS:
		if (op->k > sizeof(run->data) - sizeof(value) || op->k % sizeof(value))
			return false;
		memcpy(&value, (const uint8_t *)&run->data + op->k, sizeof(value));
		break;
	case BPF_IMM:
		value = op->k;
		break;
	case BPF_LEN:
		value = sizeof(run->data);
		break;
	case BPF_MEM:
		if (op->k >= BPF_MEMWORDS)
			return false;
		value = run->memory[op->k];
		break;
	default:
		return false;
	}
	*(BPF_CLASS(op->code) == BPF_LD ? &run->a : &run->x) = value;
	return true;
}

static bool compute(struct run *run, const struct sock_filter *op)
{
	uint32_t b = BPF_SRC(op->code) == BPF_X ? run->x : op->k;

	switch (BPF_OP(op->code)) {
	case BPF_ADD:
		run->a += b;
		return true;
	case BPF_SUB:
		run->a -= b;
		return true;
	case BPF_MUL:
		run->a *= b;
		return true;
	case BPF_DIV:
		run->a = b ? run->a / b : 0;
		return b != 0;
	case BPF_OR:
		run->a |= b;
		return true;
	case BPF_AND:
		run->a &= b;
		return true;
	case BPF_XOR:
		run->a ^= b;
		return true;
	case BPF_LSH:
		run->a = b < 32 ? run->a << b : 0;
		return true;
	case BPF_RSH:
		run->a = b < 32 ? run->a >> b : 0;
		return true;
	case BPF_NEG:
		run->a = -run->a;
		return true;
	}
	return false;
}

/* By how many instructions the jump advances. */
static uint32_t jump(const struct run *run, const struct sock_filter *op)
{
	uint32_t b = BPF_SRC(op->code) == BPF_X ? run->x : op->k;

	switch (BPF_OP(op->code)) {
	case BPF_JEQ:
		return run->a == b ? op->jt : op->jf;
	case BPF_JGT:
		return run->a > b ? op->jt : op->jf;
	case BPF_JGE:
		return run->a >= b ? op->jt : op->jf;
	case BPF_JSET:
		return run->a & b ? op->jt : op->jf;
	}
	return op->k;
}

static bool store(struct run *run, const struct sock_filter *op)
{
	if (op->k >= BPF_MEMWORDS)
		return false;
	run->memory[op->k] = BPF_CLASS(op->code) == BPF_ST ? run->a : run->x;
	return true;
}

/* Run one instruction that neither jumps nor returns. */
static bool step(struct run *run, const struct sock_filter *op)
{
	switch (BPF_CLASS(op->code)) {
	case BPF_LD:
	case BPF_LDX:
		return load(run, op);
	case BPF_ST:
	case BPF_STX:
		return store(run, op);
	case BPF_ALU:
		return compute(run, op);
	case BPF_MISC:
		if (BPF_MISCOP(op->code) == BPF_TAX)
			run->x = run->a;
		else
			run->a = run->x;
		return true;
	}
	return false;
}

/* The filter's result for a call. Jumps only go forward, so that it ends. */
static uint32_t answer(const struct sock_fprog *filter, struct run *run)
{
	for (uint64_t i = 0; i < filter->len; i++) {
		const struct sock_filter *op = &filter->filter[i];

		if (BPF_CLASS(op->code) == BPF_RET)
			return BPF_RVAL(op->code) == BPF_A ? run->a : op->k;
		if (BPF_CLASS(op->code) == BPF_JMP)
			i += jump(run, op);
		else if (!step(run, op))
			return NOT_RUN;
	}
	return NOT_RUN;
}

bool torsh_filter_harms(const struct sock_fprog *filter)
{
	/* With the first argument if filters check it: AF_UNIX, AT_FDCWD. */
	static const struct {
		int number;
		int64_t first;
	} calls[] = {
		{SYS_memfd_create, 0}, {SYS_ftruncate, 3},     {SYS_socket, 1},
		{SYS_setsockopt, 3},   {SYS_connect, 3},       {SYS_sendmsg, 3},
		{SYS_close, 3},	       {SYS_getpid, 0},	       {SYS_getppid, 0},
		{SYS_gettid, 0},       {SYS_prctl, 16},	       {SYS_prlimit64, 0},
		{SYS_openat, -100},    {SYS_read, 3},	       {SYS_readlinkat, -100},
		{SYS_fcntl, 3},	       {SYS_mremap, 4096},     {SYS_fstat, 3},
		{SYS_kill, 1},	       {SYS_clock_gettime, 1}, {SYS_getcwd, 4096},
		{SYS_fstatfs, 3},      {SYS_faccessat, -100},  {SYS_pread64, 3},
		{SYS_fgetxattr, 3},    {SYS_prctl, 39},	       {SYS_getuid, 0},
		{SYS_geteuid, 0},      {SYS_getgid, 0},	       {SYS_getegid, 0},
		{SYS_prctl, 21},       {SYS_getsockopt, 3},
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct run run = {
			.data =
				{
					.nr = calls[i].number,
					.arch = OWN_AUDIT_ARCH,
					.args = {(uint64_t)calls[i].first},
				},
		};
		uint32_t action = answer(filter, &run) & SECCOMP_RET_ACTION_FULL;

		if (action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG &&
		    action != SECCOMP_RET_ERRNO)
			return true;
	}
	return false;
}
