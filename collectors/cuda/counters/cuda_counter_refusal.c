/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Why counters can't be read, and what to do about it. */
#include "collectors/cuda/counters/cuda_counter_refusal.h"

#include <fcntl.h>
#include <string.h>

#include "agent/process/text_buffer.h"
#include "shim/cuda/cupti.h"
#include "shim/find_text.h"
#include "shim/sys.h"

#define PARAMETERS_MAX 8192u
#define ADMIN_ONLY "RmProfilingAdminOnly: "

static const struct {
	int result;
	const char *sentence;
} sentences[] = {
	{CUPTI_HARDWARE_BUSY,
	 "another tool holds the counters (DCGM, Nsight, a second profiler): stop it, or pause DCGM with "
	 "`dcgmi profiling --pause`"},
	{CUPTI_NOT_SUPPORTED, "this device, driver or virtual machine has none for us"},
	{CUPTI_VIRTUALIZED, "a virtual machine without passthrough has none"},
	{CUPTI_INSUFFICIENT_PRIVILEGES,
	 "the driver lets only administrators read them: load it with NVreg_RestrictProfilingToAdminUsers=0, or give the "
	 "program CAP_SYS_ADMIN (a container: --cap-add=SYS_ADMIN)"},
	{CUPTI_OLD_PROFILER, "the program uses CUPTI's old events and metrics, which exclude them"},
	{CUPTI_VIRTUALIZED_PRIVILEGES,
	 "the host of this virtual GPU forbids it: its administrator has to allow profiling (enable_profiling=1 of the vGPU)"},
	{CUPTI_CONFIDENTIAL, "a GPU for confidential computing has none, but in its devtools mode"},
	{CUPTI_MIG, "this MIG partition has none: use one that is a whole GPU, or switch MIG off"},
	{CUPTI_WSL,
	 "Windows forbids it to WSL: allow it in the NVIDIA Control Panel, Developer, Manage GPU Performance "
	 "Counters"},
	{CUPTI_UNKNOWN_CHIP, "this libcupti does not support the device's chip: a newer one does"},
};

/* '0', '1', or 0 if it can't be read. */
static char read_admin_only(const char *path)
{
	long fd = TORSH_SYS(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	char *bytes = torsh_sys_failed(fd) ? NULL : torsh_sys_pages(PARAMETERS_MAX), answer = 0;

	/* The pages are zeroed, so that the text is NUL-terminated. */
	if (bytes && TORSH_SYS(SYS_read, fd, bytes, PARAMETERS_MAX - 1, 0, 0, 0) > 0) {
		const char *found = torsh_find_text(bytes, ADMIN_ONLY);

		answer = found ? found[sizeof(ADMIN_ONLY) - 1] : 0;
	}
	if (bytes)
		torsh_sys_munmap(bytes, PARAMETERS_MAX);
	if (!torsh_sys_failed(fd))
		TORSH_SYS(SYS_close, fd, 0, 0, 0, 0, 0);
	return answer;
}

/* The remedy, or NULL. */
static const char *find_sentence(int result)
{
	for (size_t i = 0; i < sizeof(sentences) / sizeof(*sentences); i++)
		if (sentences[i].result == result)
			return sentences[i].sentence;
	return NULL;
}

static const char *admin_remark(const char *path)
{
	switch (read_admin_only(path)) {
	case '0':
		return "; here it has " ADMIN_ONLY
		       "0, so that it is the container or the virtual machine that forbids it";
	case '1':
		return "; here it has " ADMIN_ONLY "1";
	default:
		return "";
	}
}

static void put_word(struct text *text, int result)
{
	const char *word = NULL;

	if (torsh_cupti.GetResultString && !torsh_cupti.GetResultString(result, &word) && word) {
		torsh_text_put(text, word);
		return;
	}
	torsh_text_put(text, "CUPTI's error ");
	torsh_text_put_number(text, (uint64_t)result);
}

void torsh_counter_refusal(struct text *text, int result, const char *admin_only)
{
	const char *sentence = find_sentence(result);

	if (!sentence) {
		put_word(text, result);
		return;
	}
	torsh_text_put(text, sentence);
	if (result == CUPTI_INSUFFICIENT_PRIVILEGES)
		torsh_text_put(text, admin_remark(admin_only));
	torsh_text_put(text, " (");
	put_word(text, result);
	torsh_text_put(text, ")");
}
