/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The tables of an export as a database, in SQL. SQLite keeps the statements, comments included:
 * `.schema` shows them.
 */
#ifndef TORSH_EXPORT_SQLITE_SQLITE_TABLES_H
#define TORSH_EXPORT_SQLITE_SQLITE_TABLES_H

#include "tools/export/sqlite/sqlite_more_tables.h"

#define TABLES                                                                                                              \
	"CREATE TABLE meta ( -- format, start_realtime_ns (ns since 1970; all times are since then), host\n"                \
	"  key TEXT PRIMARY KEY, value);\n"                                                                                 \
	"CREATE TABLE processes (\n"                                                                                        \
	"  id INTEGER PRIMARY KEY, -- `process` in the other tables\n"                                                      \
	"  pid INTEGER, parent_pid INTEGER, program TEXT,\n"                                                                \
	"  rank TEXT, -- as set by the launcher or torch.distributed; NULL: not set\n"                                      \
	"  start_ns INTEGER, end_ns INTEGER,\n"                                                                             \
	"  world_size INTEGER, local_rank INTEGER, local_world_size INTEGER, node_rank INTEGER,\n"                          \
	"  launcher TEXT, role TEXT, job TEXT);\n"                                                                          \
	"CREATE TABLE run_labels (process INTEGER, name TEXT, value TEXT); -- TORSH_PROFILER_LABELS\n"                      \
	"CREATE TABLE threads (process INTEGER, id INTEGER, -- `thread` in the other tables\n"                              \
	"  tid INTEGER, name TEXT, PRIMARY KEY (process, id));\n"                                                           \
	"CREATE TABLE labels ( -- texts of the program: names, inputs, domains\n"                                           \
	"  process INTEGER, id INTEGER, text TEXT, PRIMARY KEY (process, id));\n"                                           \
	"CREATE TABLE stacks ( -- a stack is a frame and the stack of what called it; frames of stack 7 of process 1:\n"    \
	"  -- WITH RECURSIVE s(id, n) AS (VALUES (7, 0) UNION ALL SELECT parent, n + 1 FROM stacks JOIN s USING (id)\n"     \
	"  -- WHERE process = 1 AND parent NOT NULL) SELECT f.function, f.file, f.line FROM s JOIN stacks USING (id)\n"     \
	"  -- JOIN frames f ON f.process = stacks.process AND f.id = frame WHERE stacks.process = 1 ORDER BY n, inlined;\n" \
	"  process INTEGER, id INTEGER, parent INTEGER, frame INTEGER, PRIMARY KEY (process, id));\n"                       \
	"CREATE TABLE frames (process INTEGER, id INTEGER,\n"                                                               \
	"  inlined INTEGER, -- 0, 1...: function 0 is inlined into function 1\n"                                            \
	"  function TEXT, file TEXT, line INTEGER, library TEXT, is_python INTEGER, PRIMARY KEY (process, id, inlined));\n" \
	"CREATE TABLE steps (process INTEGER, number INTEGER, start_ns INTEGER, end_ns INTEGER,\n"                          \
	"  rule TEXT); -- by which steps were found\n"                                                                      \
	"CREATE TABLE ops ( -- calls of operators\n"                                                                        \
	"  id INTEGER, process INTEGER, thread INTEGER, start_ns INTEGER, end_ns INTEGER,\n"                                \
	"  self_ns INTEGER, -- less the operators directly inside\n"                                                        \
	"  name INTEGER, inputs INTEGER, -- labels\n"                                                                       \
	"  module INTEGER, -- label of the innermost nn.Module around; of backward: around the forward call\n"              \
	"  outer INTEGER, -- id of the operator around it\n"                                                                \
	"  scope INTEGER, -- 0 operator, 1 backward, 7 a scope of the program\n"                                            \
	"  sequence INTEGER, -- the same of a forward operator and its backward\n"                                          \
	"  phase TEXT, -- forward, loss, backward, optimizer, data\n"                                                       \
	"  step INTEGER, -- number of the step in which it began\n"                                                         \
	"  flops INTEGER, -- of itself, as FlopCounterMode counts; NULL: no formula\n"                                      \
	"  flops_all INTEGER, -- the same with what FlopCounterMode leaves out\n"                                           \
	"  allocated_bytes INTEGER, freed_bytes INTEGER, -- by tensors, of itself\n"                                        \
	"  is_async INTEGER, -- it doesn't nest with the calls of its thread\n"                                             \
	"  is_cut INTEGER, -- it was open when the recording ended\n"                                                       \
	"  stack INTEGER,\n"                                                                                                \
	"  overload INTEGER, -- label; NULL: none, or not known\n"                                                          \
	"  forward_thread INTEGER, -- PyTorch's number of the thread that owns the sequence\n"                              \
	"  PRIMARY KEY (process, id));\n"                                                                                   \
	"CREATE TABLE process_groups ( -- of torch.distributed\n"                                                           \
	"  process INTEGER, number INTEGER, name TEXT, description TEXT, backend TEXT,\n"                                   \
	"  ranks TEXT, -- with commas between\n"                                                                            \
	"  size INTEGER, PRIMARY KEY (process, number));\n"                                                                 \
	"CREATE TABLE collectives ( -- what operators of torch.distributed moved\n"                                         \
	"  process INTEGER, op INTEGER, -- id of the operator\n"                                                            \
	"  name TEXT, dtype TEXT, -- of the first tensor\n"                                                                 \
	"  in_elements INTEGER, out_elements INTEGER, process_group INTEGER, -- its number\n"                               \
	"  PRIMARY KEY (process, op));\n"                                                                                   \
	"CREATE TABLE ranges ( -- of the program and its libraries; calls of modules\n"                                     \
	"  id INTEGER, process INTEGER, thread INTEGER, start_ns INTEGER, end_ns INTEGER,\n"                                \
	"  name INTEGER, domain INTEGER, category INTEGER, -- labels\n"                                                     \
	"  source TEXT, -- torsh, nvtx, itt or module\n"                                                                    \
	"  payload REAL, is_async INTEGER, is_cut INTEGER, stack INTEGER, PRIMARY KEY (process, id));\n"                    \
	"CREATE TABLE tensors ( -- memory that a framework's allocator gave out and took back\n"                            \
	"  process INTEGER, thread INTEGER, at_ns INTEGER, address INTEGER,\n"                                              \
	"  bytes INTEGER, -- negative: taken back\n"                                                                        \
	"  device TEXT, op INTEGER, -- id of the innermost operator\n"                                                      \
	"  stack INTEGER);\n"                                                                                               \
	"CREATE TABLE out_of_memory (process INTEGER, thread INTEGER, at_ns INTEGER, device TEXT,\n"                        \
	"  bytes INTEGER, -- requested\n"                                                                                   \
	"  allocated_bytes INTEGER, reserved_bytes INTEGER);\n"                                                             \
	"CREATE TABLE marks (process INTEGER, thread INTEGER, at_ns INTEGER, name INTEGER); -- name: a label\n"             \
	"CREATE TABLE user_values ( -- of torsh.h, NVTX and ITT\n"                                                          \
	"  process INTEGER, thread INTEGER, at_ns INTEGER, name INTEGER, -- label\n"                                        \
	"  kind TEXT, -- scalar, counter, or sample (of a histogram)\n"                                                     \
	"  value REAL);\n"                                                                                                  \
	"CREATE TABLE peaks ( -- when the heap was largest; process NULL: all together\n"                                   \
	"  process INTEGER, at_ns INTEGER, bytes INTEGER, blocks INTEGER);\n"                                               \
	"CREATE TABLE peak_allocations ( -- the heap at its peak, as `torsh peak` prints it\n"                              \
	"  process INTEGER, stack INTEGER, blocks INTEGER, bytes INTEGER,\n"                                                \
	"  operator TEXT, module TEXT, -- in which it was allocated; NULL: in none, or in several\n"                        \
	"  merged TEXT); -- what the row sums up, of all that the stack called; NULL: the stack alone\n"                    \
	"CREATE TABLE peak_tensors ( -- a device's tensors at their peak, as `torsh tensors` prints them\n"                 \
	"  process INTEGER, device TEXT, operator TEXT, module TEXT, phase TEXT, blocks INTEGER, bytes INTEGER);\n"         \
	"CREATE TABLE launches ( -- calls that give devices work\n"                                                         \
	"  process INTEGER, thread INTEGER, start_ns INTEGER, end_ns INTEGER,\n"                                            \
	"  api INTEGER, -- label\n"                                                                                         \
	"  correlation INTEGER, -- the same of what came of it\n"                                                           \
	"  result INTEGER, -- 0: it succeeded\n"                                                                            \
	"  op INTEGER, module INTEGER, -- as in kernels\n"                                                                  \
	"  caused INTEGER); -- how many kernels, copies and memsets came of it\n"                                           \
	"CREATE TABLE kernels ( -- what devices ran, by their own clock\n"                                                  \
	"  process INTEGER, device INTEGER, context INTEGER, stream INTEGER, start_ns INTEGER, end_ns INTEGER,\n"           \
	"  correlation INTEGER, -- of the launch; NULL: not known\n"                                                        \
	"  graph INTEGER, node INTEGER, -- of a CUDA graph\n"                                                               \
	"  op INTEGER, -- id of the operator that was innermost where it was launched\n"                                    \
	"  reason TEXT, -- why there is none\n"                                                                             \
	"  module INTEGER, -- label, as in ops\n"                                                                           \
	"  phase TEXT, step INTEGER, -- of the launch; where that was not seen, the step in which it began\n"               \
	"  name INTEGER, -- id of kernel_names\n"                                                                           \
	"  grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER,\n"            \
	"  registers INTEGER, -- of a thread\n"                                                                             \
	"  static_shared_bytes INTEGER, dynamic_shared_bytes INTEGER, -- of a block\n"                                      \
	"  local_bytes INTEGER); -- of a thread\n"                                                                          \
	"CREATE TABLE kernel_names (process INTEGER, id INTEGER, text TEXT, symbol TEXT, PRIMARY KEY (process, id));\n"     \
	"CREATE TABLE copies ( -- the first columns are those of kernels\n"                                                 \
	"  process INTEGER, device INTEGER, context INTEGER, stream INTEGER, start_ns INTEGER, end_ns INTEGER,\n"           \
	"  correlation INTEGER, -- of the launch; NULL: not known\n"                                                        \
	"  graph INTEGER, node INTEGER, -- of a CUDA graph\n"                                                               \
	"  op INTEGER, -- id of the operator that was innermost where it was launched\n"                                    \
	"  reason TEXT, -- why there is none\n"                                                                             \
	"  module INTEGER, -- label, as in ops\n"                                                                           \
	"  phase TEXT, step INTEGER, -- of the launch; where that was not seen, the step in which it began\n"               \
	"  kind TEXT, -- HtoD, DtoH, DtoD, PtoP...\n"                                                                       \
	"  source TEXT, destination TEXT, -- kinds of memory: Pageable, Pinned, Device...\n"                                \
	"  to_device INTEGER, bytes INTEGER, is_async INTEGER);\n"                                                          \
	"CREATE TABLE memsets ( -- the first columns are those of kernels\n"                                                \
	"  process INTEGER, device INTEGER, context INTEGER, stream INTEGER, start_ns INTEGER, end_ns INTEGER,\n"           \
	"  correlation INTEGER, -- of the launch; NULL: not known\n"                                                        \
	"  graph INTEGER, node INTEGER, -- of a CUDA graph\n"                                                               \
	"  op INTEGER, -- id of the operator that was innermost where it was launched\n"                                    \
	"  reason TEXT, -- why there is none\n"                                                                             \
	"  module INTEGER, -- label, as in ops\n"                                                                           \
	"  phase TEXT, step INTEGER, -- of the launch; where that was not seen, the step in which it began\n"               \
	"  destination TEXT, value INTEGER, bytes INTEGER, is_async INTEGER);\n"                                            \
	"CREATE TABLE graphs ( -- launches that were timed only as a whole; the columns are those of kernels\n"             \
	"  process INTEGER, device INTEGER, context INTEGER, stream INTEGER, start_ns INTEGER, end_ns INTEGER,\n"           \
	"  correlation INTEGER, graph INTEGER, node INTEGER, op INTEGER, reason TEXT, module INTEGER, phase TEXT,\n"        \
	"  step INTEGER);\n"                                                                                                \
	"CREATE VIEW op_calls AS SELECT ops.*, n.text AS name_text, i.text AS inputs_text, m.text AS module_text\n"         \
	"  FROM ops LEFT JOIN labels n ON n.process = ops.process AND n.id = ops.name\n"                                    \
	"  LEFT JOIN labels i ON i.process = ops.process AND i.id = ops.inputs\n"                                           \
	"  LEFT JOIN labels m ON m.process = ops.process AND m.id = ops.module;\n"                                          \
	"CREATE VIEW kernel_calls AS SELECT kernels.*, n.text AS name_text, o.name_text AS op_text FROM kernels\n"          \
	"  LEFT JOIN kernel_names n ON n.process = kernels.process AND n.id = kernels.name\n"                               \
	"  LEFT JOIN op_calls o ON o.process = kernels.process AND o.id = kernels.op;\n"

#define INDEXES                                                                         \
	"CREATE INDEX ops_by_name ON ops (process, name);"                              \
	"CREATE INDEX ops_by_start ON ops (process, thread, start_ns);"                 \
	"CREATE INDEX ops_by_outer ON ops (process, outer);"                            \
	"CREATE INDEX ops_by_step ON ops (process, step);"                              \
	"CREATE INDEX ranges_by_name ON ranges (process, name);"                        \
	"CREATE INDEX ranges_by_start ON ranges (process, thread, start_ns);"           \
	"CREATE INDEX tensors_by_time ON tensors (process, at_ns);"                     \
	"CREATE INDEX tensors_by_op ON tensors (process, op);"                          \
	"CREATE INDEX user_values_by_name ON user_values (process, name, at_ns);"       \
	"CREATE INDEX steps_by_number ON steps (process, number);"                      \
	"CREATE INDEX launches_by_correlation ON launches (process, correlation);"      \
	"CREATE INDEX kernels_by_name ON kernels (process, name);"                      \
	"CREATE INDEX kernels_by_start ON kernels (process, device, stream, start_ns);" \
	"CREATE INDEX kernels_by_op ON kernels (process, op);"                          \
	"CREATE INDEX kernels_by_step ON kernels (process, step);"                      \
	"CREATE INDEX kernels_by_correlation ON kernels (process, correlation);"        \
	"CREATE INDEX copies_by_start ON copies (process, device, stream, start_ns);"   \
	"CREATE INDEX copies_by_op ON copies (process, op);"                            \
	"CREATE INDEX memsets_by_start ON memsets (process, device, stream, start_ns);"

/* STATEMENT(NAME, table and number of its values) */
#define STATEMENTS                                                                                            \
	STATEMENT(META, "meta VALUES (?, ?)")                                                                 \
	STATEMENT(PROCESS, "processes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                     \
	STATEMENT(RUN_LABEL, "run_labels VALUES (?, ?, ?)")                                                   \
	STATEMENT(THREAD, "threads VALUES (?, ?, ?, ?)")                                                      \
	STATEMENT(LABEL, "labels VALUES (?, ?, ?)")                                                           \
	STATEMENT(STACK, "stacks VALUES (?, ?, ?, ?)")                                                        \
	STATEMENT(FRAME, "frames VALUES (?, ?, ?, ?, ?, ?, ?, ?)")                                            \
	STATEMENT(STEP, "steps VALUES (?, ?, ?, ?, ?)")                                                       \
	STATEMENT(                                                                                            \
		OP,                                                                                           \
		"ops VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")           \
	STATEMENT(PROCESS_GROUP, "process_groups VALUES (?, ?, ?, ?, ?, ?, ?)")                               \
	STATEMENT(COLLECTIVE, "collectives VALUES (?, ?, ?, ?, ?, ?, ?)")                                     \
	STATEMENT(RANGE, "ranges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                             \
	STATEMENT(TENSOR, "tensors VALUES (?, ?, ?, ?, ?, ?, ?, ?)")                                          \
	STATEMENT(OUT_OF_MEMORY, "out_of_memory VALUES (?, ?, ?, ?, ?, ?, ?)")                                \
	STATEMENT(MARK, "marks VALUES (?, ?, ?, ?)")                                                          \
	STATEMENT(VALUE, "user_values VALUES (?, ?, ?, ?, ?, ?)")                                             \
	STATEMENT(LAUNCH, "launches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                                   \
	STATEMENT(                                                                                            \
		KERNEL,                                                                                       \
		"kernels VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") \
	STATEMENT(KERNEL_NAME, "kernel_names VALUES (?, ?, ?, ?)")                                            \
	STATEMENT(COPY,                                                                                       \
		  "copies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")               \
	STATEMENT(MEMSET, "memsets VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")            \
	STATEMENT(GRAPH, "graphs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                          \
	STATEMENT(PEAK, "peaks VALUES (?, ?, ?, ?)")                                                          \
	STATEMENT(PEAK_ALLOCATION, "peak_allocations VALUES (?, ?, ?, ?, ?, ?, ?)")                           \
	STATEMENT(PEAK_TENSOR, "peak_tensors VALUES (?, ?, ?, ?, ?, ?, ?)")

enum statement {
#define STATEMENT(NAME, text) INSERT_##NAME,
	STATEMENTS MORE_STATEMENTS
#undef STATEMENT
		N_STATEMENTS
};

#endif
