/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The simulated NVRTC: every program compiles, to code that is never read; a requested name is
 * returned unmangled.
 */
#include "nvrtc_api.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static const char code[] = "simcuda", log_text[] = "";

/* A name that the program was queried for. */
struct name {
	struct name *next;
	char text[];
};

struct program {
	struct name *names;
	bool is_compiled;
};

static struct program *program_of(nvrtcProgram prog)
{
	return (struct program *)prog;
}

EXPORT const char *nvrtcGetErrorString(nvrtcResult result)
{
	return result == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : "simulated NVRTC error";
}

nvrtcResult do_nvrtcVersion(int *major, int *minor)
{
	*major = CUDA_VERSION / 1000;
	*minor = CUDA_VERSION % 1000 / 10;
	return NVRTC_SUCCESS;
}

nvrtcResult do_nvrtcCreateProgram(nvrtcProgram *prog, const char *src, const char *name,
				  int numHeaders, const char *const *headers,
				  const char *const *includeNames)
{
	*prog = (nvrtcProgram)calloc(1, sizeof(struct program));
	return *prog ? NVRTC_SUCCESS : NVRTC_ERROR_OUT_OF_MEMORY;
}

nvrtcResult do_nvrtcDestroyProgram(nvrtcProgram *prog)
{
	struct name *next;

	if (!prog || !*prog)
		return NVRTC_ERROR_INVALID_PROGRAM;
	for (struct name *name = program_of(*prog)->names; name; name = next) {
		next = name->next;
		free(name);
	}
	free(*prog);
	*prog = NULL;
	return NVRTC_SUCCESS;
}

nvrtcResult do_nvrtcAddNameExpression(nvrtcProgram prog, const char *const name_expression)
{
	size_t bytes = strlen(name_expression) + 1;
	struct name *name = malloc(sizeof(*name) + bytes);

	if (!name)
		return NVRTC_ERROR_OUT_OF_MEMORY;
	memcpy(name->text, name_expression, bytes);
	name->next = program_of(prog)->names;
	program_of(prog)->names = name;
	return NVRTC_SUCCESS;
}

nvrtcResult do_nvrtcCompileProgram(nvrtcProgram prog, int numOptions, const char *const *options)
{
	program_of(prog)->is_compiled = true;
	return NVRTC_SUCCESS;
}

nvrtcResult do_nvrtcGetLoweredName(nvrtcProgram prog, const char *const name_expression,
				   const char **lowered_name)
{
	for (const struct name *name = program_of(prog)->names; name; name = name->next) {
		if (!strcmp(name->text, name_expression)) {
			*lowered_name = name->text;
			return NVRTC_SUCCESS;
		}
	}
	return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}

static nvrtcResult get(nvrtcProgram prog, char *out)
{
	if (!program_of(prog)->is_compiled)
		return NVRTC_ERROR_INVALID_PROGRAM;
	memcpy(out, code, sizeof(code));
	return NVRTC_SUCCESS;
}

static nvrtcResult get_size(nvrtcProgram prog, size_t *out)
{
	*out = sizeof(code);
	return program_of(prog)->is_compiled ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

nvrtcResult do_nvrtcGetPTX(nvrtcProgram prog, char *ptx)
{
	return get(prog, ptx);
}

nvrtcResult do_nvrtcGetPTXSize(nvrtcProgram prog, size_t *ptxSizeRet)
{
	return get_size(prog, ptxSizeRet);
}

nvrtcResult do_nvrtcGetCUBIN(nvrtcProgram prog, char *cubin)
{
	return get(prog, cubin);
}

nvrtcResult do_nvrtcGetCUBINSize(nvrtcProgram prog, size_t *cubinSizeRet)
{
	return get_size(prog, cubinSizeRet);
}

nvrtcResult do_nvrtcGetProgramLog(nvrtcProgram prog, char *log)
{
	memcpy(log, log_text, sizeof(log_text));
	return NVRTC_SUCCESS;
}

nvrtcResult do_nvrtcGetProgramLogSize(nvrtcProgram prog, size_t *logSizeRet)
{
	*logSizeRet = sizeof(log_text);
	return NVRTC_SUCCESS;
}
