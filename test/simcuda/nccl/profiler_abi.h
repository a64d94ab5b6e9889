/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the simulated NCCL passes to a profiler plugin: the structs of each interface, 1 to 6,
 * declared one by one by NCCL's public source and apart from those of the agent.
 */
#ifndef SIMCUDA_NCCL_PROFILER_ABI_H
#define SIMCUDA_NCCL_PROFILER_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	PROFILE_GROUP = 1,
	PROFILE_COLL = 2,
	PROFILE_P2P = 4,
	PROFILE_PROXY_OP = 8,
	PROFILE_PROXY_STEP = 16,
	PROFILE_PROXY_CTRL = 32,
	PROFILE_KERNEL_CH = 64,
	PROFILE_NET = 128,
	PROFILE_GROUP_API = 256,
	PROFILE_COLL_API = 512,
	PROFILE_P2P_API = 1024,
	PROFILE_KERNEL_LAUNCH = 2048,
	PROFILE_CE_COLL = 4096,
	PROFILE_CE_SYNC = 8192,
	PROFILE_CE_BATCH = 16384,
};

enum {
	STATE_OP_SEND_POSTED = 0,
	STATE_OP_SEND_DONE = 3,
	STATE_STEP_SEND_GPU_WAIT = 8,
	STATE_STEP_SEND_WAIT = 9,
	STATE_OP_IN_PROGRESS = 19,
	STATE_NET_UPDATE = 21,
	STATE_KERNEL_STOP = 22,
	STATE_GROUP_START_STOP = 23,
	STATE_GROUP_END_START = 24,
};

#define PROXY_OP_FIELDS    \
	pid_t pid;         \
	uint8_t channelId; \
	int peer;          \
	int nSteps;        \
	int chunkSize;     \
	int isSend
#define NET_FIELDS  \
	int64_t id; \
	void *data

struct descriptor_v1 {
	uint8_t type;
	void *parentObj;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t commHash, seqNumber;
			uint8_t func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			uint8_t datatype;
			uint32_t op;
			size_t trafficBytes;
			uint8_t nMaxChannels, nWarps, algo, proto;
			int isCollnet, isNvls;
		} coll;
		struct {
			const char *name;
			uint64_t commHash;
			uint8_t func;
			void *buff;
			uint8_t datatype;
			size_t count;
			int peer;
		} p2p;
		struct {
			PROXY_OP_FIELDS;
		} proxyOp;
		struct {
			int step;
		} proxyStep;
	};
};

struct descriptor_v2 {
	uint8_t type;
	void *parentObj;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t commHash, seqNumber;
			const char *func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			const char *datatype;
			size_t trafficBytes;
			uint8_t nMaxChannels, nWarps;
			const char *algo, *proto;
		} coll;
		struct {
			const char *name;
			uint64_t commHash;
			const char *func;
			void *buff;
			const char *datatype;
			size_t count;
			int peer;
		} p2p;
		struct {
			PROXY_OP_FIELDS;
		} proxyOp;
		struct {
			int step;
		} proxyStep;
	};
};

struct descriptor_v3 {
	uint8_t type;
	void *parentObj;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t commHash, seqNumber;
			const char *func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			const char *datatype;
			uint8_t nMaxChannels, nWarps;
			const char *algo, *proto;
		} coll;
		struct {
			const char *name;
			uint64_t commHash;
			const char *func;
			void *buff;
			const char *datatype;
			size_t count;
			int peer;
		} p2p;
		struct {
			PROXY_OP_FIELDS;
		} proxyOp;
		struct {
			int step;
		} proxyStep;
		struct {
			uint8_t channelId;
		} kernelCh;
		struct {
			NET_FIELDS;
		} netPlugin;
	};
};

struct descriptor_v4 {
	uint8_t type;
	void *parentObj;
	int rank;
	union {
		struct {
			uint64_t seqNumber;
			const char *func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			const char *datatype;
			uint8_t nChannels, nWarps;
			const char *algo, *proto;
		} coll;
		struct {
			const char *func;
			void *buff;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t nChannels;
		} p2p;
		struct {
			PROXY_OP_FIELDS;
		} proxyOp;
		struct {
			int step;
		} proxyStep;
		struct {
			uint8_t channelId;
			uint64_t pTimer;
		} kernelCh;
		struct {
			NET_FIELDS;
		} netPlugin;
	};
};

/* And 6, which has the last three besides. */
struct descriptor_v5 {
	uint64_t type;
	void *parentObj;
	int rank;
	union {
		struct {
			bool graphCaptured;
			int groupDepth;
		} groupApi;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			int root;
			void *stream;
			bool graphCaptured;
		} collApi;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			void *stream;
			bool graphCaptured;
		} p2pApi;
		struct {
			void *stream;
		} kernelLaunch;
		struct {
			uint64_t seqNumber;
			const char *func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			const char *datatype;
			uint8_t nChannels, nWarps;
			const char *algo, *proto;
			void *parentGroup;
		} coll;
		struct {
			const char *func;
			void *buff;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t nChannels;
			void *parentGroup;
		} p2p;
		struct {
			PROXY_OP_FIELDS;
		} proxyOp;
		struct {
			int step;
		} proxyStep;
		struct {
			uint8_t channelId;
			uint64_t pTimer;
		} kernelCh;
		struct {
			NET_FIELDS;
		} netPlugin;
		struct {
			uint64_t seqNumber;
			const char *func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			const char *datatype, *syncStrategy;
			bool intraBatchSync;
			uint32_t batchSize, numBatches, ceSeqNum;
			void *stream;
		} ceColl;
		struct {
			bool isComplete;
			int nRanks;
		} ceCollSync;
		struct {
			int numOps;
			size_t totalBytes;
			bool useIntraSync;
		} ceCollBatch;
	};
};

#undef PROXY_OP_FIELDS
#undef NET_FIELDS

union state_arguments_v1 {
	struct {
		size_t transSize;
		int steps;
	} proxyOp;
	struct {
		int appendedProxyOps;
	} proxyCtrl;
};

union state_arguments_v4 {
	struct {
		size_t transSize;
	} proxyStep;
	struct {
		int appendedProxyOps;
	} proxyCtrl;
	struct {
		void *data;
	} netPlugin;
	struct {
		uint64_t pTimer;
	} kernelCh;
};

/* What a socket's network plugin tells, version 1. */
struct socket_event {
	uint8_t type;
	struct {
		int fd;
		int op;
		size_t length;
	} __attribute__((aligned(8))) sock;
};
#define SOCKET_EVENT ((2 << 16) | 1)

struct plugin {
	const char *name;
	void *init;
	int (*startEvent)(void *context, void **handle, void *descriptor);
	int (*stopEvent)(void *handle);
	int (*recordEventState)(void *handle, int state, void *arguments);
	int (*finalize)(void *context);
};

#endif
