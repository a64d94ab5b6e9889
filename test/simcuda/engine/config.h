/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What is simulated: read once from SIMCUDA_* variables, before the first call. README.md lists
 * them.
 */
#ifndef SIMCUDA_CONFIG_H
#define SIMCUDA_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_MAX_DEVICES = 16 };

/* What answers in place of the driver. */
enum sim_driver {
	SIM_DRIVER_PRESENT,
	SIM_DRIVER_ABSENT,
	SIM_DRIVER_STUB,
	SIM_DRIVER_WITHOUT_DEVICE,
};

struct sim_config {
	enum sim_driver driver;
	int n_devices;
	/* which of the machine's the first one is, as by CUDA_VISIBLE_DEVICES: by its UUID */
	int first_device;
	size_t device_bytes, other_bytes; /* of each device; of these in use from the beginning */
	size_t context_bytes; /* that each context takes of its device */
	size_t module_bytes; /* that the code of each module takes of the context's device */
	bool hides_processes; /* NVML does not tell how much each process uses */
	size_t workspace_bytes; /* that a library allocates for each handle or communicator */
	const char *shared; /* file in which processes write what they use; NULL: none */
	const char *device_name;
	int arch; /* 90 is compute capability 9.0 */
	int n_processors;
	int driver_version; /* as cuDriverGetVersion writes it */
	/* as cudaRuntimeGetVersion writes it; 0: that of the library's headers */
	int runtime_version;
	int cupti_version; /* CUPTI_API_VERSION of the written record layouts; 0: as above */

	bool is_virtual_clock;
	uint64_t call_ns; /* a call lasts so long on the virtual clock */
	uint64_t launch_ns; /* from the call to the earliest start on the device */
	uint64_t kernel_ns; /* what no pattern names */
	const char *kernels; /* "PATTERN=NS,..." */
	uint64_t copy_ns; /* added to each copy and memset */
	uint64_t link_bytes_per_us; /* host to device, and back */
	uint64_t local_bytes_per_us; /* within a device */
	uint64_t flops_per_ns; /* of cuBLAS and cuDNN */
	int n_concurrent; /* kernels that run at a time on a device */
	int loop_rounds; /* of a conditional node's WHILE, if its handle is not 0 at the launch */
	int queue_depth; /* operations of a stream that wait before a call blocks */

	/* the newest interface for profilers that NCCL has, 1 to 6; 0: none; -1: of the header */
	int nccl_interface;

	const char *log; /* NULL: none */
	bool logs_calls;
	bool logs_at_once; /* what is logged survives SIGKILL */
	const char *faults;
	bool is_protected; /* the host can't touch device memory */
	bool is_strict; /* a broken rule of CUPTI ends the process */
	bool zeroes_counts; /* copies of at most 8 bytes to the host carry zeroes */
	bool shares_correlation; /* a driver call within a runtime call has its correlation id */
	bool records_nested; /* CUPTI records driver calls within runtime calls too */
	int lost_buffers; /* every so many'th buffer is never handed back; 0: none */
	int untimed_kernels; /* every so many'th kernel has no times */
	bool mixes_clocks; /* registering a clock again spoils the times of the next kernels */
	uint64_t flush_ns; /* real time that a flush takes */
	int64_t skew_ppb; /* CUPTI's clock against the device's */
	const char *clock_steps; /* "AT_NS:BY_NS,..." of CUPTI's default clock */
};

const struct sim_config *sim_config(void);

#endif
