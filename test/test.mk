# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# How tests are built and run; included by the Makefile. What a test is: see test/run.

TEST := $(BUILD)/test

# Agent objects for unit tests: all but those that define an exported name, which would hook the test itself. Where the
# tools are sanitised, that of another build is given: the agent is the same there.
ifneq ($(origin TARGET_LIB),command line)
TARGET_LIB := $(TEST)/libtorshtarget.a
$(TARGET_LIB): $(TARGET_OBJECTS)
	$(archive_unexported)
endif
define archive_unexported
@mkdir -p $(@D) && rm -f $@
@ar rcs $@ $$(for object in $^; do \
	readelf -sW $$object | awk '$$5 != "LOCAL" && $$6 == "DEFAULT" && $$7 != "UND" { exit 1 }' && echo $$object; \
done)
endef

UNIT_TESTS := $(patsubst test/unit/%.c,$(TEST)/unit/%,$(call files_below,test/unit,_test.c))
# The programs of all folders lie in one: a test names them without the folder.
PROGRAM_FOLDERS := $(patsubst %/,%,$(wildcard test/programs/*/))
PROGRAM_SOURCES := $(foreach folder,$(PROGRAM_FOLDERS),$(sort $(wildcard $(folder)/*.c $(folder)/*.cc)))
PROGRAMS := $(patsubst %_so,%.so,$(addprefix $(TEST)/programs/,$(notdir $(basename $(PROGRAM_SOURCES)))))
DEVICE_TESTS := $(patsubst test/gpu/%.c,$(TEST)/gpu/%,$(sort $(wildcard test/gpu/*.c)))
FUZZ_SOURCES := $(filter-out test/fuzz/replay.c,$(sort $(wildcard test/fuzz/*.c)))
REPLAYS := $(patsubst test/fuzz/%.c,$(TEST)/fuzz/%,$(FUZZ_SOURCES))
FUZZERS := $(patsubst test/fuzz/%.c,$(BUILD)/fuzzers/%,$(FUZZ_SOURCES))

include test/simcuda/simcuda.mk

SYNTHETIC := $(TEST)/synthetic
ESCAPES := $(TEST)/escapes
HOSTILE := $(TEST)/hostile
MANY_SITES := $(TEST)/many_sites
FOLD_SYNTHESIS := $(TEST)/fold_synthesis
COUNTER_NAMES := $(TEST)/counter_names

TEST_FLAGS := -std=gnu11 $(COMMON) $(GEN_INCLUDE) $(SANITIZE_FLAGS) -Wno-unknown-attributes -MMD -MP
# Programs that are looked at from outside: what they allocate must really happen, with the lines that they have.
PROGRAM_FLAGS := -g -O1 $(WARNINGS) -fno-builtin -fno-inline -fno-optimize-sibling-calls -pthread -MMD -MP

$(TEST)/unit/%: test/unit/%.c $(TARGET_LIB) $(TOOL_LIB) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(TEST_FLAGS) -o $@ $< $(TOOL_LIB) $(TARGET_LIB) -lcmocka -lcjson $(TOOL_LIBS)

# Tests of stacks for another CPU, which an emulator runs: make CC=aarch64-linux-gnu-gcc BUILD=build/aarch64 stack-tests.
# Only the unwinder is built; test/stacks/cmocka.h stands in for the library. Those in -signed have signed
# return addresses where the CPU has that.
STACK_LIB := $(TEST)/libtorshstack.a
STACK_TESTS := $(addprefix $(TEST)/unit/stacks/,stack_test stack_code_test stack_signal_test cfi_test)
STACK_TESTS += $(addsuffix -signed,$(filter-out %/cfi_test,$(STACK_TESTS)))
STACK_TEST_FLAGS := -std=gnu11 -g -O2 $(WARNINGS) -D_GNU_SOURCE -I. -Itest/stacks -fno-omit-frame-pointer -MMD -MP
$(STACK_LIB): $(filter $(addprefix $(BUILD)/target/,agent/stack/% agent/modules/% agent/process/text_buffer.o shim/loader/%),$(TARGET_OBJECTS))
	$(archive_unexported)
$(TEST)/unit/stacks/%-signed: test/unit/agent/%.c $(STACK_LIB)
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(STACK_TEST_FLAGS) -mbranch-protection=pac-ret+leaf -o $@ $< $(STACK_LIB) -ldl -lm -pthread
$(TEST)/unit/stacks/%: test/unit/agent/%.c $(STACK_LIB)
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(STACK_TEST_FLAGS) -o $@ $< $(STACK_LIB) -ldl -lm -pthread
stack-tests: $(STACK_TESTS) $(TEST)/programs/libtwin_small.so $(TEST)/programs/libtwin_large.so

# Compare with headers that are not needed to build: without them they are skipped.
$(addprefix $(TEST)/unit/,$(addprefix shim/,cupti_test cupti_profiler_test cuda_memory_test driver_test) device/occupancy_test): TEST_FLAGS += $(CUDA_INCLUDE:%=-isystem %) $(CUDA_CRT_FLAGS)

# Write recordings for tests of the readers.
$(SYNTHETIC) $(ESCAPES) $(HOSTILE) $(MANY_SITES) $(FOLD_SYNTHESIS): $(TEST)/%: test/lib/recordings/%.c $(TOOL_LIB) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(TEST_FLAGS) -o $@ $(filter %.c,$^) $(TOOL_LIB) $(TOOL_LIBS)
$(SYNTHETIC): test/lib/recordings/synthetic_tables.c

# Asks a real libcupti what the agent would measure.
$(COUNTER_NAMES): test/lib/chips/counter_names.c $(TARGET_LIB) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(TEST_FLAGS) -o $@ $< $(TARGET_LIB) -ldl

$(TEST)/fuzz/%: test/fuzz/%.c test/fuzz/replay.c $(TARGET_LIB) $(TOOL_LIB) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(TEST_FLAGS) -o $@ $< test/fuzz/replay.c $(TOOL_LIB) $(TARGET_LIB) $(TOOL_LIBS)

# Libraries have no stack protector, as is some distributions' default: its entry of the PLT would move what two of them
# have at one place.
define program_rules
$(TEST)/programs/%: $1/%.c $(BUILD)/flags
	@mkdir -p $$(@D)
	$$(call say,cc,$$<)$$(CC) -std=gnu11 $$(PROGRAM_FLAGS) -MF $$@.dep -I. -o $$@ $$< -ldl -lm

$(TEST)/programs/lib%.so: $1/lib%_so.c $(BUILD)/flags
	@mkdir -p $$(@D)
	$$(call say,cc,$$<)$$(CC) -std=gnu11 $$(PROGRAM_FLAGS) -MF $$@.dep -fno-stack-protector -fPIC -shared -o $$@ $$<

$(TEST)/programs/%: $1/%.cc $(BUILD)/flags
	@mkdir -p $$(@D)
	$$(call say,c++,$$<)$$(CXX) -std=c++17 -fsized-deallocation $$(PROGRAM_FLAGS) -MF $$@.dep -I. -o $$@ $$< -ldl

endef
$(foreach folder,$(PROGRAM_FOLDERS),$(eval $(call program_rules,$(folder))))

$(BUILD)/fuzzers/%: test/fuzz/%.c $(TARGET_LIB) $(TOOL_LIB)
	@mkdir -p $(@D)
	$(call say,clang,$<)clang $(TEST_FLAGS) -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -fsanitize=fuzzer -o $@ $< $(TOOL_LIB) $(TARGET_LIB) $(TOOL_LIBS)

unit: $(UNIT_TESTS) $(DEVICE_TESTS)
test-programs: $(PROGRAMS) $(SYNTHETIC) $(ESCAPES) $(HOSTILE) $(MANY_SITES) $(FOLD_SYNTHESIS) $(COUNTER_NAMES)
fuzzers: $(FUZZERS)

RUN_TESTS = BUILD=$(BUILD) TORCH=$(TORCH) $(PYTHON) test/run --jobs $(J) --match '$(T)'

# What its tests need of PyPI is put into environments below build/: PyTorch (5 GB) and the programs that read exports.
test: ## run every test; LONG=1 the long forms, too; T=name those whose name contains it (or one of several words), NEEDS=torch those of PyTorch, TORCH=2.3.1 with that version, ALSO='2.3.1 name' all, and those with that version too
	.ci/deps build test
	@for name in $(if $(NEEDS)$(T),,torch cuda12) $(TORCH:%=torch-%); do \
		PYTHON=$(PYTHON) test/python/environment $$name >/dev/null || :; done # CUDA's headers come with them
	@$(MAKE) --no-print-directory all unit test-programs simcuda bench-programs $(REPLAYS)
	@$(RUN_TESTS) --again $(if $(LONG),--long) $(NEEDS:%=--needing %) $(if $(ALSO),--also $(ALSO))

check: all unit test-programs simcuda bench-programs $(REPLAYS) ## run as many tests as fit into a minute: unit tests, fuzz corpora, what changed, some of each script; says how many it leaves out
	@$(RUN_TESTS) --quick

# The writer and the readers with AddressSanitizer and UBSan: unit tests, the fuzz corpus, and real programs, which have the
# agent that is not sanitised. -Og -g1 compiles in two thirds of the time of -O1: functions and lines are all that a report
# of the sanitizers needs. Which variables are uninitialised GCC finds with -O2; with -Og it guesses.
# Left out: tests that walk stacks fault on purpose, which the sanitizer's handlers would take from them; the simulation
# keeps what its program has not freed; Python can't load it sanitised; a training takes ten minutes.
# PART=units or programs: only these.
SANITIZED_units := unit/ fuzz/
SANITIZED_programs := every_reader e2e/python/owners e2e/python/locals e2e/heap/reachability e2e/commands/live/
test-tools: $(TARGET_LIB) agent test-programs simcuda
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/asan SANITIZE=address,undefined OPTIMISE='-Og -g1 -Wno-maybe-uninitialized' TARGET_LIB=$(TARGET_LIB) \
		tools unit asan-replays
	@cp -f $(AGENT) $(BUILD)/asan/ && ln -sfn ../simcuda $(BUILD)/asan/simcuda && \
		for name in synthetic escapes hostile many_sites; do \
			ln -sfn ../../test/$$name $(BUILD)/asan/test/$$name; \
		done && rm -rf $(BUILD)/asan/test/programs && cp -al $(BUILD)/test/programs $(BUILD)/asan/test/
	@# the agent starts the writer that lies beside it, and programs are known by their paths
	@BUILD=$(BUILD)/asan $(PYTHON) test/run --sanitized --again --jobs $(J) --match '$(or $(T),$(SANITIZED_$(PART)),$(SANITIZED_units) $(SANITIZED_programs))' \
		--only e2e,fault,unit,fuzz --without unit/agent/stack_ unit/simcuda/ unit/collectors/devices_test \
		of_a_simulated_device of_a_training
asan-replays: $(REPLAYS)

test-gpu: ## the tests of test/gpu, which make test runs on a simulated device, on the one of this machine
	.ci/deps build test
	@PYTHON=$(PYTHON) test/python/environment torch >/dev/null
	@$(MAKE) --no-print-directory all $(DEVICE_TESTS) test-programs
	@BUILD=$(BUILD) PYTHON=$(PYTHON) test/check/on_gpu --jobs $(J) --match '$(T)'

fuzz: ## fuzz each parser for FUZZ_SECONDS with clang's libFuzzer; T=codec only that one
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/fuzz CC=clang SANITIZE=address,undefined,fuzzer-no-link TARGET_SANITIZE=address,fuzzer-no-link fuzzers
	@test/check/fuzz $(BUILD)/fuzz/fuzzers $(FUZZ_SECONDS) '$(T)'

fuzz-keep: ## put the smallest inputs that reach as much as the last make fuzz into test/fuzz/corpus
	@test/check/fuzz $(BUILD)/fuzz/fuzzers keep '$(T)'

storm: ## load, fork, execute, signal, throw and cancel in 64 threads for STORM_SECONDS (600), and compare every count
	@$(MAKE) --no-print-directory all test-programs
	@BUILD=$(BUILD) STORM_SECONDS=$(or $(STORM_SECONDS),600) $(PYTHON) test/fault/storm.py

layering: ## no #include goes the wrong way
	@test/check/layering

exports: all ## the agent exports, imports and needs only what it may, its calls go down; glibc 2.28 is enough for it and the tools
	@test/check/calls $(BUILD)/target $(TARGET_OBJECTS)
	@test/check/exports $(AGENT) $(BUILD)/target $(EXPORTS_MAP) $(JEMALLOC)
	@test/check/glibc 2.28 $(AGENT) $(TOOL_BINARIES)

lint: ## formatting, static analysis, licence lines; the longest functions and files
	@test/check/lint

try-unstable-python: agent tools ## check the frames of the CPython versions of Debian unstable (PYTHONS), unpacked below build
	@for version in $(PYTHONS); do test/python/debian_unstable $$version $(BUILD) || exit; done
	@BUILD=$(BUILD) $(PYTHON) test/run --match debian --only e2e --jobs $(J)

demo: ## train a small PyTorch model under the agent with a planted leak, and show the reports
	.ci/deps build demo
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) PYTHON=$(PYTHON) test/demo/run

# PyTorch's CUDA build comes with the headers that the simulation is made from.
demo-gpu-sim: ## record a program and a PyTorch training on simulated CUDA, and show kernels, device memory and profiles
	.ci/deps build demo
	@PYTHON=$(PYTHON) test/python/environment torch >/dev/null
	@$(MAKE) --no-print-directory run-demo-gpu-sim

run-demo-gpu-sim: all simcuda
	@BUILD=$(BUILD) PYTHON=$(PYTHON) CC='$(CC)' CUDA_INCLUDE=$(CUDA_INCLUDE) CUDA_CRT=$(CUDA_CRT) test/demo/device/run

platforms: ## as root: build and check what is committed in bare roots of Debian and Ubuntu (SUITES), and print a table
	@test/platforms/run $(SUITES)

consumers: ## put the programs that read exports (Perfetto, HTA, TensorBoard) into build/consumers-venv, from PyPI
	@PYTHON=$(PYTHON) test/python/environment consumers

bench: ## measure against bare, a no-op agent, heaptrack and memray; writes test/bench/RESULTS.md; BENCH_OPTIONS=--resume goes on
	.ci/deps build bench
	@$(MAKE) --no-print-directory all simcuda bench-programs
	@BUILD=$(BUILD) $(PYTHON) test/bench/run $(BENCH_OPTIONS)

.PHONY: stack-tests platforms storm test-gpu demo-gpu-sim run-demo-gpu-sim try-unstable-python consumers test-programs fuzz-keep fuzzers asan-replays bench-programs

# Those of programs end otherwise than before their sources were moved: a build from then goes on.
-include $(filter-out $(TEST)/programs/%.d,$(wildcard $(TEST)/*/*.d $(TEST)/*/*/*.d $(TEST)/*/*/*/*.d $(TEST)/programs/*.dep \
	$(BUILD)/bench/*.d $(BUILD)/fuzzers/*.d))

# ---- benchmarks: optimised, without frame pointers, as distributions ship programs ----------------------------------

BENCH := $(BUILD)/bench
BENCH_PROGRAMS := $(BENCH)/pair $(BENCH)/cold_pair $(BENCH)/containers $(BENCH)/regions $(BENCH)/libnoop_agent.so $(BENCH)/libempty_observer.so \
	$(BENCH)/libempty_cupti.so $(BENCH)/launches $(BENCH)/nccl_allreduce $(BENCH)/threads $(BENCH)/sample $(BENCH)/waits \
	$(patsubst test/bench/native/%.c,$(BENCH)/%,$(wildcard test/bench/native/*_bench.c))
bench-programs: $(BENCH_PROGRAMS) $(SYNTHETIC) $(MANY_SITES) $(FOLD_SYNTHESIS)

$(BENCH)/pair: shim/ranges/torsh.h
$(BENCH)/pair $(BENCH)/cold_pair $(BENCH)/threads $(BENCH)/sample $(BENCH)/waits: $(BENCH)/%: test/bench/native/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) -std=gnu11 -O2 -g $(WARNINGS) -I. -fomit-frame-pointer -fno-builtin -pthread -o $@ $<

# NVTX, where its headers are here.
NVTX_INCLUDE := $(firstword $(wildcard $(BUILD)/venv/lib/python3*/site-packages/nvidia/cu*/include $(CUDA_HOME)/include \
	/usr/local/cuda/include))
$(BENCH)/regions: test/bench/native/regions.c shim/ranges/torsh.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) -std=gnu11 -O2 -g $(WARNINGS) -I. $(NVTX_INCLUDE:%=-isystem %) -o $@ $< -ldl

$(BENCH)/containers: test/bench/native/containers.cc $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,c++,$<)$(CXX) -std=c++17 -O2 -g $(WARNINGS) -fomit-frame-pointer -pthread -o $@ $<

$(BENCH)/libnoop_agent.so: test/bench/native/noop_agent.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) -std=gnu11 -O2 -g $(WARNINGS) -D_GNU_SOURCE -fno-builtin -fPIC -shared -o $@ $<

$(BENCH)/libempty_observer.so: test/bench/native/empty_observer.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) -std=gnu11 -O2 -g $(WARNINGS) -D_GNU_SOURCE -fPIC -shared -o $@ $< -ldl

$(BENCH)/libempty_cupti.so: test/bench/native/empty_cupti.c shim/cuda/cupti.h shim/cuda/cupti.def $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) -std=gnu11 -O2 -g $(WARNINGS) -I. -D_GNU_SOURCE -fPIC -shared -pthread -o $@ $< -ldl

$(BENCH)/launches $(BENCH)/nccl_allreduce: $(BENCH)/%: test/bench/native/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) -std=gnu11 -O2 -g $(WARNINGS) -D_GNU_SOURCE -pthread -o $@ $< -ldl

$(BENCH)/%_bench: test/bench/native/%_bench.c $(TARGET_LIB) $(TOOL_LIB) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(TEST_FLAGS) -o $@ $< $(TOOL_LIB) $(TARGET_LIB) $(TOOL_LIBS)
