/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Further tables, as in sqlite_tables.h: memory over time, leaks, calls, waits and counters. */
#ifndef TORSH_EXPORT_SQLITE_SQLITE_MORE_TABLES_H
#define TORSH_EXPORT_SQLITE_SQLITE_MORE_TABLES_H

#define MORE_TABLES                                                                                                                           \
	"CREATE TABLE sites ( -- allocation sites of the heap; id 0: those below 0.1 % of all, added up (--all: there is none)\n"             \
	"  process INTEGER, id INTEGER, stack INTEGER, -- of one of its stacks, which differ only in the path to the line\n"                  \
	"  function TEXT, file TEXT, line INTEGER, -- the line that it is attributed to\n"                                                    \
	"  is_own INTEGER, -- that is a line of the program, not of a package or a library\n"                                                 \
	"  operator TEXT, module TEXT, -- in which it was allocated; NULL: in none, or in several\n"                                          \
	"  allocated_blocks INTEGER, allocated_bytes INTEGER, -- ever\n"                                                                      \
	"  temporary_blocks INTEGER, temporary_bytes INTEGER, -- freed by their own thread before it allocated another\n"                     \
	"  peak_blocks INTEGER, peak_bytes INTEGER, -- when the process had most\n"                                                           \
	"  live_blocks INTEGER, live_bytes INTEGER, -- when it ended\n"                                                                       \
	"  blocks_per_s REAL, bytes_per_s REAL, -- allocated, over the time that the process was recorded\n"                                  \
	"  merged INTEGER, -- how many sites the row sums up\n"                                                                               \
	"  PRIMARY KEY (process, id));\n"                                                                                                     \
	"CREATE TABLE moments ( -- times at which the heap is known by site, as `torsh peak --at` shows it\n"                                 \
	"  process INTEGER, id INTEGER, at_ns INTEGER,\n"                                                                                     \
	"  kind TEXT, -- start, time (regular), step (its end), mark, peak, window (highest of one of torsh.h), end\n"                        \
	"  mark TEXT, -- its name\n"                                                                                                          \
	"  step INTEGER, -- number of the step that ended\n"                                                                                  \
	"  bytes INTEGER, blocks INTEGER, PRIMARY KEY (process, id));\n"                                                                      \
	"CREATE TABLE heap_series ( -- what each site had live at each moment; no row: nothing\n"                                             \
	"  process INTEGER, moment INTEGER, at_ns INTEGER, site INTEGER, bytes INTEGER, blocks INTEGER);\n"                                   \
	"CREATE TABLE leaks ( -- what was not freed when a process ended, as `torsh leaks` lists it\n"                                        \
	"  process INTEGER, stack INTEGER, function TEXT, file TEXT, line INTEGER, is_own INTEGER, -- as in sites\n"                          \
	"  operator TEXT, module TEXT,\n"                                                                                                     \
	"  blocks INTEGER, bytes INTEGER, usable_bytes INTEGER, -- usable: NULL where the allocator was not asked\n"                          \
	"  class TEXT, -- the worst of its blocks: lost, indirect, possible, reachable or unknown (not judged)\n"                             \
	"  lost_bytes INTEGER, indirect_bytes INTEGER, possible_bytes INTEGER, reachable_bytes INTEGER, unknown_bytes INTEGER,\n"             \
	"  first_ns INTEGER, last_ns INTEGER, -- when the first and the last of its blocks were allocated\n"                                  \
	"  blocks_per_s REAL, bytes_per_s REAL); -- over the time that the process was recorded\n"                                            \
	"CREATE TABLE counters ( -- of the recording itself: what the agent counted\n"                                                        \
	"  process INTEGER, name TEXT, value INTEGER, PRIMARY KEY (process, name));\n"                                                        \
	"CREATE TABLE kernel_counters ( -- hardware counters of a kernel, by its launch\n"                                                    \
	"  process INTEGER, device INTEGER, correlation INTEGER,\n"                                                                           \
	"  metric TEXT, unit TEXT, value REAL); -- unit: as CUPTI names it\n"                                                                 \
	"CREATE TABLE calls ( -- calls of CUDA by the host, by name, as `torsh kernels --json` sums them up; `launches` has each\n"           \
	"  process INTEGER, name TEXT, calls INTEGER, failed INTEGER, total_ns INTEGER, max_ns INTEGER);\n"                                   \
	"CREATE TABLE collective_calls ( -- collectives of a rank, and messages to or from others; the same call on all ranks has the same\n" \
	"  process INTEGER, number INTEGER, kind TEXT, -- kind, group_name, instance and sequence; collective, send, receive, of\n"           \
	"  -- windows of MPI put, get, update, sync, of its files read, write\n"                                                              \
	"  name TEXT, dtype TEXT, group_name TEXT, instance INTEGER, -- of messages also both ranks and tag\n"                                \
	"  group_rank INTEGER, sequence INTEGER, peer INTEGER, tag INTEGER, in_bytes INTEGER, out_bytes INTEGER,\n"                           \
	"  call_ns INTEGER, begin_ns INTEGER, end_ns INTEGER, -- when it was called; when its communication began and ended\n"                \
	"  waits INTEGER, wait_begin_ns INTEGER, wait_ns INTEGER, -- by threads: how often, the first one, all together\n"                    \
	"  failed INTEGER, algorithm TEXT, protocol TEXT, channels INTEGER, nccl_bytes INTEGER, -- the last four: as NCCL reports them\n"     \
	"  PRIMARY KEY (process, number));\n"                                                                                                 \
	"CREATE TABLE nccl_communicators ( -- of NCCL (TORSH_PROFILER_ACTIVITIES=nccl)\n"                                                     \
	"  process INTEGER, number INTEGER, hash TEXT, -- the same on all ranks; NULL: not reported\n"                                        \
	"  name TEXT, nodes INTEGER, ranks INTEGER, rank INTEGER, interface INTEGER, -- for profilers; 0: NCCL reports nothing by one\n"      \
	"  source TEXT, -- plugin: NCCL reported it by that interface; calls: of its functions\n  PRIMARY KEY (process, number));\n"          \
	"CREATE TABLE nccl_spans ( -- what NCCL did; a call ends when its work was handed over\n"                                             \
	"  process INTEGER, number INTEGER, parent INTEGER, -- number of what it is part of\n"                                                \
	"  communicator INTEGER, -- its number\n"                                                                                             \
	"  kind TEXT, -- collective, message, collective_call, message_call (as the program called), group, launch, kernel_channel...\n"      \
	"  thread INTEGER, start_ns INTEGER, end_ns INTEGER,\n"                                                                               \
	"  function TEXT, datatype TEXT, elements INTEGER, bytes INTEGER, -- of a proxy: what it moved\n"                                     \
	"  root INTEGER, peer INTEGER, algorithm TEXT, protocol TEXT, channels INTEGER, sequence INTEGER,\n"                                  \
	"  collective INTEGER, -- number of the row in collective_calls around it\n"                                                          \
	"  channel INTEGER, step INTEGER, is_send INTEGER,\n"                                                                                 \
	"  device_start_ns INTEGER, device_end_ns INTEGER, -- of a kernel channel, by the clock of the device\n"                              \
	"  is_cut INTEGER, -- it was open when the recording ended\n"                                                                         \
	"  PRIMARY KEY (process, number));\n"                                                                                                 \
	"CREATE TABLE waits ( -- of the host for devices, by kind and operator\n"                                                             \
	"  process INTEGER, kind TEXT, operator TEXT, calls INTEGER, total_ns INTEGER, max_ns INTEGER);\n"

#define MORE_INDEXES                                                              \
	"CREATE INDEX heap_series_by_site ON heap_series (process, site, at_ns);" \
	"CREATE INDEX heap_series_by_moment ON heap_series (process, moment);"

/* STATEMENT(NAME, table and number of its values) */
#define MORE_STATEMENTS                                                                                             \
	STATEMENT(SITE,                                                                                             \
		  "sites VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                      \
	STATEMENT(MOMENT, "moments VALUES (?, ?, ?, ?, ?, ?, ?, ?)")                                                \
	STATEMENT(HEAP_SERIES, "heap_series VALUES (?, ?, ?, ?, ?, ?)")                                             \
	STATEMENT(LEAK,                                                                                             \
		  "leaks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                   \
	STATEMENT(COUNTER, "counters VALUES (?, ?, ?)")                                                             \
	STATEMENT(KERNEL_COUNTER, "kernel_counters VALUES (?, ?, ?, ?, ?, ?)")                                      \
	STATEMENT(CALL, "calls VALUES (?, ?, ?, ?, ?, ?)")                                                          \
	STATEMENT(                                                                                                  \
		COLLECTIVE_CALL,                                                                                    \
		"collective_calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") \
	STATEMENT(NCCL_COMMUNICATOR, "nccl_communicators VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")                       \
	STATEMENT(                                                                                                  \
		NCCL_SPAN,                                                                                          \
		"nccl_spans VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")    \
	STATEMENT(WAIT, "waits VALUES (?, ?, ?, ?, ?, ?)")

#endif
