// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// As much of PyTorch as the agent meets, by the exact names that it exports: built with -DLAYOUT=0, 1 or 2 its classes
// have three different layouts; with 3 nothing is where it could be found. -DPART=1 is libc10.so, -DPART=2 is
// libtorch_cpu.so. What begins with stand_in is called by torch/__init__.py through ctypes.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <vector>

namespace c10 {

struct Device {
	int8_t type, index;
};

struct OptionalDevice {
	Device device;
	bool is_there;
};

struct TensorImpl {
	virtual ~TensorImpl();
	uint64_t reference_counts = 1;
	void *storage = nullptr;
#if LAYOUT == 1
	uint16_t type = 0;
	OptionalDevice device = {};
	uint64_t keys = 0x1234;
#endif
#if LAYOUT == 2
	uint64_t more[3] = {7, 7, 7};
#endif
	uint64_t n_dims = 0;
	union {
		int64_t in_place[10];
		int64_t *outside;
	} dims = {};
	int64_t n_elements = 0;
#if LAYOUT != 1
	OptionalDevice device = {};
	uint16_t type = 0;
	uint64_t keys = 0x1234;
#endif
};

struct UndefinedTensorImpl : TensorImpl {
	~UndefinedTensorImpl() override;
};

struct IValue {
	uint64_t payload;
	uint32_t tag;
};

bool memoryProfilingEnabled();
void reportMemoryUsageToProfiler(void *block, int64_t n_bytes, size_t allocated, size_t reserved, Device device);
void reportOutOfMemoryToProfiler(int64_t n_bytes, size_t allocated, size_t reserved, Device device);

#if PART == 1
TensorImpl::~TensorImpl() = default;
UndefinedTensorImpl::~UndefinedTensorImpl() = default;

/* The profiler's side: switched on by the test, with a count of its events. */
extern "C" {
int stand_in_profiles;
int64_t stand_in_reported, stand_in_sum, stand_in_out_of_memory;
}

__attribute__((noinline)) bool memoryProfilingEnabled()
{
	return stand_in_profiles;
}

__attribute__((noinline)) void reportMemoryUsageToProfiler(void *, int64_t n_bytes, size_t allocated, size_t, Device)
{
	stand_in_reported += n_bytes;
	stand_in_sum = (int64_t)allocated;
}

__attribute__((noinline)) void reportOutOfMemoryToProfiler(int64_t n_bytes, size_t, size_t, Device)
{
	stand_in_out_of_memory += n_bytes;
}
#endif

} // namespace c10

#if PART == 2

namespace at {

namespace sequence_number {
static thread_local uint64_t next;
uint64_t peek()
{
	return next;
}
} // namespace sequence_number

struct ObserverContext {
	virtual ~ObserverContext() = default;
};

struct RecordFunction {
	virtual ~RecordFunction() = default;
	const char *name() const;
#if LAYOUT != 1
	const char *overload_name() const;
#endif
	static uint64_t currentThreadId();

#if LAYOUT == 0
	uint64_t before[4] = {};
#elif LAYOUT == 1
	uint64_t before[21] = {2, 2, 2}; /* lengths of nothing */
#else
	uint64_t before[11] = {};
#endif
	const char *text = nullptr;
	int64_t sequence = -1;
	const c10::IValue *inputs = nullptr;
	size_t n_inputs = 0;
	uint64_t after[8] = {};
	uint64_t forward_thread = 0;
#if LAYOUT == 2
	uint64_t forward_thread_again = 0; /* which cannot be distinguished */
#endif
	const char *overload = nullptr;
};

const char *RecordFunction::name() const
{
	return text;
}

#if LAYOUT != 1
const char *RecordFunction::overload_name() const
{
	return overload;
}
#endif

uint64_t RecordFunction::currentThreadId()
{
	static std::atomic<uint64_t> last;
	static thread_local uint64_t own = ++last;

	return own;
}

struct RecordFunctionCallback {
	std::unique_ptr<ObserverContext> (*start)(const RecordFunction &);
	void (*end)(const RecordFunction &, ObserverContext *);
	double probability;
	bool scopes[10], needs_inputs, needs_outputs, needs_ids;
};

static std::vector<RecordFunctionCallback> callbacks;

uint64_t addGlobalCallback(RecordFunctionCallback callback)
{
	callbacks.push_back(callback);
	return callbacks.size();
}

/* What a thread has of observers. In the last layout it is kept the other way round. */
struct RecordFunctionTLS {
#if LAYOUT == 3
	bool is_enabled = true;
#endif
	std::vector<RecordFunctionCallback> own;
#if LAYOUT != 3
	bool is_enabled = true;
#endif
};

static thread_local RecordFunctionTLS state;

__attribute__((noinline)) const RecordFunctionTLS &get_record_function_tls_()
{
	return state;
}

/* How often lists of observers were made anew. */
extern "C" {
int stand_in_made_anew;
}

__attribute__((noinline)) void set_record_function_tls_(const RecordFunctionTLS &other)
{
	stand_in_made_anew++;
	state = other;
}

bool isRecordFunctionEnabled()
{
	return state.is_enabled;
}

void enableRecordFunction(bool is_enabled)
{
	state.is_enabled = is_enabled;
}

} // namespace at

/* Tags as in torch 1.13, 2.0 and 2.9; what is 0, 1 and 3 never moved. */
enum { NONE = 0, TENSOR = 1, DOUBLE = 3, INT = 5 };
static const uint32_t BOOL = LAYOUT == 0 ? 7 : LAYOUT == 1 ? 9 : 10, LIST = LAYOUT == 0 ? 11 : LAYOUT == 1 ? 13 : 14;

struct ListImpl {
	uint64_t first, counts = 1;
#if LAYOUT == 1
	uint64_t more = 1;
#endif
	std::vector<c10::IValue> values;
};

static size_t allocated;
static std::map<void *, size_t> known;
static thread_local std::vector<c10::IValue> arguments;
static thread_local std::vector<std::unique_ptr<ListImpl>> lists;
static thread_local ListImpl *open_list;

static void push(uint32_t tag, uint64_t payload)
{
	(open_list ? open_list->values : arguments).push_back({payload, tag});
}

extern "C" {

/*
 * A tensor's memory, and behind it bytes of others' that look like devices: torch's tensors are made where others were freed,
 * two places in turn, and each call makes one more of them.
 */
static void *place_tensor()
{
	static unsigned n_made;
	const c10::OptionalDevice host = {{0, -1}, true}, none = {};
	const bool is_second = n_made++ / 2 % 2;
	auto *place = static_cast<uint8_t *>(::operator new(sizeof(c10::TensorImpl) + 2 * sizeof(host)));

	memcpy(place + sizeof(c10::TensorImpl), is_second ? &none : &host, sizeof(host));
	memcpy(place + sizeof(c10::TensorImpl) + sizeof(host), is_second ? &host : &none, sizeof(host));
	return place;
}

c10::TensorImpl *stand_in_tensor(int n_dims, const int64_t *sizes, const int64_t *strides, int type, int device)
{
	auto *tensor = new (place_tensor()) c10::TensorImpl;
	int64_t *dims = tensor->dims.in_place;
	int gap = 5;

	if (n_dims > gap) {
		dims = tensor->dims.outside = new int64_t[2 * (size_t)n_dims];
		gap = n_dims;
	}
	tensor->n_dims = (uint64_t)n_dims;
	for (int i = 0; i < n_dims; i++) {
		dims[i] = LAYOUT == 3 ? -sizes[i] : sizes[i];
		dims[gap + i] = strides[i];
	}
	tensor->type = (uint16_t)type;
	tensor->device = {{(int8_t)device, (int8_t)(device == 1 ? 0 : -1)}, true};
	return tensor;
}

/* The memory of a tensor: as in libc10, a free is reported if the allocation was. */
void *stand_in_allocate(size_t n_bytes)
{
	void *block = malloc(n_bytes);

	if (c10::memoryProfilingEnabled()) {
		known[block] = n_bytes;
		allocated += n_bytes;
		c10::reportMemoryUsageToProfiler(block, (int64_t)n_bytes, allocated, 0, {0, -1});
	}
	return block;
}

void stand_in_free(void *block)
{
	if (c10::memoryProfilingEnabled() && known.count(block)) {
		size_t n_bytes = known[block];

		known.erase(block);
		allocated -= n_bytes;
		c10::reportMemoryUsageToProfiler(block, -(int64_t)n_bytes, allocated, 0, {0, -1});
	}
	free(block);
}

void stand_in_run_out(int64_t n_bytes)
{
	c10::reportOutOfMemoryToProfiler(n_bytes, 1000, 2000, {1, 0});
}

void stand_in_push_tensor(c10::TensorImpl *tensor)
{
	push(TENSOR, (uint64_t)tensor);
}

void stand_in_push_undefined()
{
	static c10::UndefinedTensorImpl undefined;

	push(TENSOR, (uint64_t)&undefined);
}

void stand_in_push_none()
{
	push(NONE, 0);
}

void stand_in_push_integer(int64_t number)
{
	push(INT, (uint64_t)number);
}

void stand_in_push_double(double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	push(DOUBLE, bits);
}

/* Of a bool only the lowest byte of the payload is written. */
void stand_in_push_bool(int value)
{
	push(BOOL, UINT64_C(0xabababababababab) << 8 | (uint64_t)value);
}

void stand_in_open_list()
{
	lists.push_back(std::make_unique<ListImpl>());
	open_list = lists.back().get();
}

void stand_in_close_list()
{
	ListImpl *list = open_list;

	open_list = nullptr;
	push(LIST, (uint64_t)list);
}

uint64_t stand_in_thread()
{
	return at::RecordFunction::currentThreadId();
}

uint64_t stand_in_sequence()
{
	return at::sequence_number::peek();
}

/* As autograd does where a thread takes over the state of another one, which has n observers of its own. */
void stand_in_take_over(int n, int is_enabled)
{
	at::RecordFunctionTLS other;

	other.own.resize((size_t)n);
	other.is_enabled = is_enabled;
	at::set_record_function_tls_(other);
}

/* How many observers of its own the calling thread has, and 100 where they are called. */
int stand_in_state()
{
	return (int)at::get_record_function_tls_().own.size() + (at::isRecordFunctionEnabled() ? 100 : 0);
}

/*
 * Begin an operator with the arguments pushed so far; what stand_in_end gets. forward: 0, or the
 * thread that owns the node with this sequence number.
 */
at::RecordFunction *stand_in_begin(const char *name, const char *overload, int scope, int makes_node, uint64_t forward,
				   uint64_t sequence)
{
	auto *record = new at::RecordFunction;
	auto *values = new std::vector<c10::IValue>(std::move(arguments));

	arguments.clear();
	record->text = strdup(name);
	record->overload = strdup(overload);
	record->sequence = (int64_t)(forward ? sequence : at::sequence_number::peek());
	record->forward_thread = forward;
#if LAYOUT == 2
	record->forward_thread_again = forward;
#endif
	record->inputs = values->data();
	record->n_inputs = values->size();
	for (const auto &callback : at::callbacks)
		if (callback.scopes[scope])
			callback.start(*record);
	at::sequence_number::next += (uint64_t)makes_node;
	delete values;
	lists.clear();
	return record;
}

void stand_in_end(at::RecordFunction *record, int scope)
{
	for (const auto &callback : at::callbacks)
		if (callback.scopes[scope])
			callback.end(*record, nullptr);
	free((void *)record->text);
	free((void *)record->overload);
	delete record;
}

} // extern "C"

#endif
