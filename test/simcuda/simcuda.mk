# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# The simulated CUDA libraries, built where CUDA's public headers are: those of PyPI's wheels in the environment below
# build/, or a toolkit's. Without them there is nothing to build, and the tests say so. Included by test/test.mk.

CUDA_INCLUDE ?= $(firstword $(dir $(wildcard $(BUILD)/venv/lib/python3*/site-packages/nvidia/cu*/include/cupti.h \
	build/venv/lib/python3*/site-packages/nvidia/cu*/include/cupti.h $(CUDA_HOME)/include/cupti.h $(CUDA_HOME)/extras/CUPTI/include/cupti.h /usr/local/cuda/include/cupti.h)))
NCCL_INCLUDE ?= $(firstword $(dir $(wildcard $(BUILD)/venv/lib/python3*/site-packages/nvidia/nccl/include/nccl.h \
	build/venv/lib/python3*/site-packages/nvidia/nccl/include/nccl.h \
	$(CUDA_INCLUDE)nccl.h /usr/include/nccl.h)))

SIMCUDA := $(BUILD)/simcuda
SIMCUDA_GEN := $(BUILD)/gen/simcuda
SIMCUDA_FLAGS = -std=gnu11 $(COMMON) $(SANITIZE_FLAGS) -fPIC -fvisibility=hidden -Wno-deprecated-declarations -Wno-unused-parameter -I$(SIMCUDA_GEN) \
	$(CUDA_INCLUDE:%=-isystem %) $(NCCL_INCLUDE:%=-isystem %) -MMD -MP
simcuda_objects = $(patsubst %.c,$(SIMCUDA)/%.o,$(foreach folder,$(1),$(sort $(wildcard test/simcuda/$(folder)/*.c))))
simcuda_generated = $(patsubst %,$(SIMCUDA)/gen/%_api.o,$(1))

# What needs no header of CUDA's: also what the unit tests link.
SIMCUDA_ENGINE := $(call simcuda_objects,engine)
SIMCUDA_LIBRARIES := libcuda.so.1 libcudart.so.13 libcupti.so.13 libnvidia-ml.so.1 libcublas.so.13 libcublasLt.so.13 \
	libnccl.so.2
SIMCUDA_GENERATED := driver runtime cupti cublas cublaslt nccl
SIMCUDA_HEADERS := $(SIMCUDA_GENERATED:%=$(SIMCUDA_GEN)/%_api.h)

$(SIMCUDA)/test/simcuda/engine/%.o: test/simcuda/engine/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) -std=gnu11 $(COMMON) $(SANITIZE_FLAGS) -fPIC -MMD -MP -c -o $@ $<

$(SIMCUDA_GEN)/%_api.c $(SIMCUDA_GEN)/%_api.h: test/simcuda/gen/wrappers.py test/simcuda/gen/torch_imports.txt
	@mkdir -p $(@D)
	$(call say,generate,$@)$(PYTHON) $< $* $(SIMCUDA_GEN)/$*_api $(CUDA_INCLUDE) $(NCCL_INCLUDE)

$(SIMCUDA_GEN)/forward.c: test/simcuda/gen/forwards.py test/simcuda/runtime/forward.def
	@mkdir -p $(@D)
	$(call say,generate,$@)$(PYTHON) $^ $@

# The old forms of the driver's functions are declared for it alone.
$(SIMCUDA)/gen/driver_api.o: SIMCUDA_FLAGS += -D__CUDA_API_VERSION_INTERNAL
$(SIMCUDA)/test/simcuda/driver/%.o: SIMCUDA_FLAGS += -D__CUDA_API_VERSION_INTERNAL

$(SIMCUDA)/gen/%.o: $(SIMCUDA_GEN)/%.c $(BUILD)/flags $(SIMCUDA_HEADERS)
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(SIMCUDA_FLAGS) -O1 -c -o $@ $<

$(SIMCUDA)/test/simcuda/%.o: test/simcuda/%.c $(BUILD)/flags $(SIMCUDA_HEADERS)
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(SIMCUDA_FLAGS) -c -o $@ $<

$(SIMCUDA)/lib/libsimcuda.so: $(SIMCUDA_ENGINE)
	@mkdir -p $(@D)
	$(call say,link,$@)$(CC) -shared $(SANITIZE_FLAGS) -o $@ $^ -Wl,-soname,libsimcuda.so -Wl,-z,defs -pthread

# The vendor's libraries carry their symbols under a version of their name, but for the driver, NVML and NCCL.
$(SIMCUDA)/%.map:
	@mkdir -p $(@D)
	@echo '$* { global: *; };' >$@

# As the vendor's do, each finds its own functions, whatever stands before them.
simcuda_versioned = $(filter libcudart.% libcupti.% libcublas%,$(1))
define simcuda_link
	@mkdir -p $(@D)
	$(call say,link,$@)$(CC) -shared $(SANITIZE_FLAGS) -o $@ $(filter %.o,$^) -Wl,-soname,$(@F) -Wl,-z,defs -Wl,-Bsymbolic -Wl,-rpath,'$$ORIGIN' \
		$(if $(call simcuda_versioned,$(@F)),-Wl$(comma)--version-script=$(SIMCUDA)/$(@F).map) \
		$(filter %.so %.so.1,$^) -ldl -pthread
endef

SIMCUDA_LIB := $(SIMCUDA)/lib
$(SIMCUDA_LIB)/libcuda.so.1: $(call simcuda_objects,driver) $(call simcuda_generated,driver) $(SIMCUDA_LIB)/libsimcuda.so
	$(simcuda_link)
$(SIMCUDA_LIB)/libcudart.so.13: $(call simcuda_objects,runtime) $(call simcuda_generated,runtime) $(SIMCUDA)/gen/forward.o \
		$(SIMCUDA_LIB)/libsimcuda.so $(SIMCUDA)/libcudart.so.13.map
	$(simcuda_link)
$(SIMCUDA_LIB)/libcupti.so.13: $(call simcuda_objects,cupti) $(call simcuda_generated,cupti) \
		$(SIMCUDA_LIB)/libsimcuda.so $(SIMCUDA)/libcupti.so.13.map
	$(simcuda_link)
$(SIMCUDA_LIB)/libnvidia-ml.so.1: $(call simcuda_objects,nvml) $(SIMCUDA_LIB)/libsimcuda.so
	$(simcuda_link)
$(SIMCUDA_LIB)/libcublas.so.13: $(call simcuda_objects,cublas blas) $(call simcuda_generated,cublas) \
		$(SIMCUDA_LIB)/libcuda.so.1 $(SIMCUDA_LIB)/libsimcuda.so $(SIMCUDA)/libcublas.so.13.map
	$(simcuda_link)
$(SIMCUDA_LIB)/libcublasLt.so.13: $(call simcuda_objects,cublaslt blas) $(call simcuda_generated,cublaslt) \
		$(SIMCUDA_LIB)/libcuda.so.1 $(SIMCUDA_LIB)/libsimcuda.so $(SIMCUDA)/libcublasLt.so.13.map
	$(simcuda_link)
$(SIMCUDA_LIB)/libnccl.so.2: $(call simcuda_objects,nccl blas) $(call simcuda_generated,nccl) \
		$(SIMCUDA_LIB)/libcuda.so.1 $(SIMCUDA_LIB)/libsimcuda.so
	$(simcuda_link)

# Loaded by the linker itself: never sanitised.
$(SIMCUDA_LIB)/libsimcuda_audit.so: test/simcuda/audit/audit.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,link,$@)$(CC) -std=gnu11 $(COMMON) -fPIC -shared -o $@ $< -ldl

# What nvcc compiles, where it is: for the vendor's own libraries, which are not loaded.
NVCC ?= $(if $(CUDA_INCLUDE),$(shell command -v nvcc))
SIMCUDA_PROGRAMS := $(if $(NVCC),$(patsubst test/simcuda/programs/%.cu,$(SIMCUDA)/programs/%,$(wildcard test/simcuda/programs/*.cu)))
$(SIMCUDA)/programs/%: test/simcuda/programs/%.cu
	@mkdir -p $(@D)
	$(call say,nvcc,$<)$(NVCC) -cudart shared -o $@ $<

# What any compiler makes, with the headers: linked with the simulation, or with what is in its place.
SIMCUDA_C_PROGRAMS := $(patsubst test/simcuda/programs/%.c,$(SIMCUDA)/programs/%,$(wildcard test/simcuda/programs/*.c))
$(SIMCUDA)/programs/%: test/simcuda/programs/%.c $(SIMCUDA_LIB)/libcuda.so.1 $(SIMCUDA_LIB)/libcudart.so.13 $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) -std=gnu11 $(COMMON) $(CUDA_INCLUDE:%=-isystem %) -o $@ $< $(filter %.so.1 %.so.13,$^) $(SIMCUDA_LIB)/libsimcuda.so -pthread

ifneq ($(CUDA_INCLUDE),)
simcuda: $(SIMCUDA_LIBRARIES:%=$(SIMCUDA_LIB)/%) $(SIMCUDA_LIB)/libsimcuda_audit.so $(SIMCUDA_PROGRAMS) $(SIMCUDA_C_PROGRAMS) ## build the simulated CUDA libraries (test/simcuda/README.md)
else
simcuda:
	@echo "note: no CUDA headers here (PyPI's wheels below build/venv, or CUDA_HOME): no simulated CUDA" >&2
endif
.PHONY: simcuda
.SECONDARY: $(SIMCUDA_GENERATED:%=$(SIMCUDA_GEN)/%_api.c) $(SIMCUDA_GENERATED:%=$(SIMCUDA_GEN)/%_api.h)
-include $(wildcard $(SIMCUDA)/*/*.d $(SIMCUDA)/*/*/*/*.d)

# Tests of the engine link it alone.
$(TEST)/unit/simcuda_%: test/unit/simcuda_%.c $(SIMCUDA_ENGINE) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(TEST_FLAGS) -o $@ $< $(SIMCUDA_ENGINE) -lcmocka -pthread

# Those of CUPTI link the simulated libraries, as any client does; LD_LIBRARY_PATH leads to others.
simcupti_libraries := $(if $(CUDA_INCLUDE),$(SIMCUDA_LIBRARIES:%=$(SIMCUDA_LIB)/%))
define link_with_simcupti
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(TEST_FLAGS) $(CUDA_INCLUDE:%=-isystem %) -o $@ $< -lcmocka -pthread -ldl $(if $(CUDA_INCLUDE), \
		$(SIMCUDA_LIB)/libcuda.so.1 $(SIMCUDA_LIB)/libcupti.so.13 $(1) \
		-Wl$(comma)--enable-new-dtags$(comma)-rpath$(comma)$(abspath $(SIMCUDA_LIB)))
endef
$(TEST)/unit/simcupti_%: test/unit/simcupti_%.c $(BUILD)/flags $(simcupti_libraries)
	$(call link_with_simcupti,$(SIMCUDA_LIB)/libsimcuda.so)
$(TEST)/gpu/%: test/gpu/%.c $(BUILD)/flags $(simcupti_libraries)
	$(call link_with_simcupti)
