/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/owners/stack_evidence.h"

#include <string.h>

#include "agent/wire/channel.h"

/* Files by the start of their names; the longer one first. */
static const struct {
	const char *file, *library;
} libraries[] = {
	{"libnccl", "nccl"},	     {"libcublas", "cublas"},	{"libcudnn", "cudnn"},
	{"libcufft", "cufft"},	     {"libcurand", "curand"},	{"libcusolver", "cusolver"},
	{"libcusparse", "cusparse"}, {"libnvshmem", "nvshmem"},
};

/* Parts of names of PyTorch's functions that get memory for a library's work. */
static const struct {
	const char *part, *library;
} workspaces[] = {
	{"CUDABlas", "cublas"},		 {"cublasLtWorkspace", "cublas"},
	{"raw_cudnn_", "cudnn"},	 {"run_conv_plan", "cudnn"},
	{"run_single_conv", "cudnn"},	 {"cudnn_rnn_workspace", "cudnn"},
	{"CUDASparseDescr", "cusparse"},
};

/* Functions of torch.nn that make, move or convert parameters and buffers. */
static const char *const makers[] = {"_apply",	 "convert",	     "__init__",
				     "to_empty", "reset_parameters", "reset_running_stats"};

static const char *library_of_file(const struct recorded_process *process, uint32_t address)
{
	const struct recorded_module *module = torsh_recording_module(process, address);
	const char *base = module && module->path ? strrchr(module->path, '/') : NULL;

	for (size_t i = 0; base && i < sizeof(libraries) / sizeof(*libraries); i++) {
		if (strncmp(base + 1, libraries[i].file, strlen(libraries[i].file)) == 0)
			return libraries[i].library;
	}
	return NULL;
}

static const char *library_of_name(struct symbols *symbols, const struct recorded_process *process,
				   uint32_t address)
{
	const char *name = torsh_symbols_name(symbols, process, address);

	for (size_t i = 0; name && i < sizeof(workspaces) / sizeof(*workspaces); i++) {
		if (strstr(name, workspaces[i].part))
			return workspaces[i].library;
	}
	return NULL;
}

/* Those of torch.optim and torch.amp that make what is kept over steps. */
static const char *const keepers[] = {"load_state_dict", "_process_value_according_to_param_policy",
				      "_lazy_init_scale_growth_tracker"};

static bool is_one_of(const char *const *names, size_t n, const char *function)
{
	const char *dot = strrchr(function, '.'), *name = dot ? dot + 1 : function;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

static enum stack_evidence shown_by_python(const struct recorded_process *process, uint32_t address)
{
	const struct recorded_function *function = torsh_recording_function(process, address);

	if (!function || !function->file || !function->name)
		return STACK_SHOWS_NOTHING;
	if ((strstr(function->file, "/torch/optim/") || strstr(function->file, "/torch/amp/")) &&
	    is_one_of(keepers, sizeof(keepers) / sizeof(*keepers), function->name))
		return STACK_OF_OPTIMIZER;
	if (strstr(function->file, "/torch/nn/modules/") &&
	    is_one_of(makers, sizeof(makers) / sizeof(*makers), function->name))
		return STACK_OF_MODULE;
	return STACK_SHOWS_NOTHING;
}

static struct shown_by_stack shown_by_frame(const struct recorded_process *process,
					    uint32_t address, struct symbols *symbols,
					    bool is_tensor)
{
	struct shown_by_stack shown = {0};

	if (process->tables->addresses[address].flags == ADDRESS_PYTHON) {
		shown.evidence = shown_by_python(process, address);
		return shown;
	}
	shown.library = is_tensor ? library_of_name(symbols, process, address)
				  : library_of_file(process, address);
	if (shown.library)
		shown.evidence = STACK_OF_LIBRARY;
	return shown;
}

struct shown_by_stack torsh_stack_evidence(const struct recorded_process *process, uint32_t stack,
					   struct symbols *symbols, bool is_tensor)
{
	const struct recorded_tables *tables = process->tables;
	struct shown_by_stack shown = {0};

	for (; stack && stack < tables->n_stacks && !shown.evidence;
	     stack = tables->stacks[stack].parent) {
		uint32_t address = tables->stacks[stack].address;

		if (address < tables->n_addresses)
			shown = shown_by_frame(process, address, symbols, is_tensor);
	}
	return shown;
}
