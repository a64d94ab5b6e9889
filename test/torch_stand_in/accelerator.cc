// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// An accelerator as PyTorch's PrivateUse1 is registered, with a clock of its own that goes on by a microsecond at each
// mark. With -DREAL it is compiled against PyTorch's headers and registers itself with PyTorch; without, it is as much of
// libtorch as has such stubs.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>

#ifdef REAL
#include <torch/csrc/profiler/stubs/base.h>
#else
namespace torch::profiler::impl
{

using ProfilerVoidEventStub = std::shared_ptr<void>;

struct ProfilerStubs {
	virtual void record(int8_t *device, ProfilerVoidEventStub *event, int64_t *cpu_ns) const = 0;
	virtual float elapsed(const ProfilerVoidEventStub *event, const ProfilerVoidEventStub *event2) const = 0;
	virtual void mark(const char *name) const = 0;
	virtual void rangePush(const char *name) const = 0;
	virtual void rangePop() const = 0;
	virtual bool enabled() const
	{
		return false;
	}
	virtual void onEachDevice(std::function<void(int)> op) const = 0;
	virtual void synchronize() const = 0;
	virtual ~ProfilerStubs() = default;
};

} // namespace torch::profiler::impl
#endif

using namespace torch::profiler::impl;

extern "C" {
int accelerator_is_enabled = 1;
int64_t accelerator_marks, accelerator_alive, accelerator_waits;
}

struct Moment {
	int64_t us;
	explicit Moment(int64_t us) : us(us)
	{
		accelerator_alive++;
	}
	~Moment()
	{
		accelerator_alive--;
	}
};

struct Accelerator : ProfilerStubs {
	void record(int8_t *device, ProfilerVoidEventStub *event, int64_t *cpu_ns) const override
	{
		*device = 3;
		*cpu_ns = 1;
		*event = std::make_shared<Moment>(accelerator_marks++);
	}
	float elapsed(const ProfilerVoidEventStub *from, const ProfilerVoidEventStub *to) const override
	{
		return (float)(std::static_pointer_cast<Moment>(*to)->us - std::static_pointer_cast<Moment>(*from)->us);
	}
	void mark(const char *name) const override
	{
		std::printf("mark %s\n", name);
	}
	void rangePush(const char *name) const override
	{
		std::printf("push %s\n", name);
	}
	void rangePop() const override
	{
		std::puts("pop");
	}
	bool enabled() const override
	{
		return accelerator_is_enabled;
	}
	void onEachDevice(std::function<void(int)> op) const override
	{
		std::function<void(int)> copy = op, moved = std::move(copy);

		for (int i = 0; i < 3; i++)
			moved(i);
	}
	void synchronize() const override
	{
		accelerator_waits++;
	}
};

static Accelerator accelerator;

#ifdef REAL
extern "C" void accelerator_register()
{
	registerPrivateUse1Methods(&accelerator);
}
#else
namespace torch::profiler::impl
{

/* Of another class: not to be called. */
struct Stranger {
	virtual ~Stranger() = default;
	virtual void nothing()
	{
		__builtin_trap();
	}
};

const void *privateuse1Stubs();

const void *privateuse1Stubs()
{
	static Stranger stranger;

	return accelerator_is_enabled < 0 ? (const void *)&stranger : (const void *)&accelerator;
}

} // namespace torch::profiler::impl
#endif
