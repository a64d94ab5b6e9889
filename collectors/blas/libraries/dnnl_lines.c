/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Lines that oneDNN prints of the primitives it executed, as "onednn_verbose,v1,primitive,exec,cpu,"
 * kind, implementation, propagation, memory, attributes, algorithm, sizes and milliseconds,
 * separated by commas. The time is oneDNN's, by gettimeofday.
 */
#include <errno.h>
#include <string.h>

#include "agent/process/config.h"
#include "agent/producer/label.h"
#include "agent/producer/producer.h"
#include "agent/producer/schedule.h"
#include "collectors/blas/blas_time.h"
#include "collectors/blas/libraries/library_call.h"
#include "shim/find_text.h"

struct piece {
	const char *bytes;
	size_t n;
};

/* From *at to the next comma, behind which *at is set. */
static struct piece take_piece(const char **at)
{
	struct piece piece = {.bytes = *at};

	while (**at && **at != ',')
		(*at)++;
	piece.n = (size_t)(*at - piece.bytes);
	*at += **at == ',';
	return piece;
}

/* The piece between the comma before end and end, which is set to that comma. */
static struct piece take_last(const char *begin, const char **end)
{
	const char *last = *end;
	struct piece piece;

	while (*end > begin && (*end)[-1] != ',')
		(*end)--;
	piece = (struct piece){*end, (size_t)(last - *end)};
	*end -= *end > begin;
	return piece;
}

/* "0.0869141" milliseconds as nanoseconds, also "1.2e-05". */
static uint64_t nanoseconds(struct piece text)
{
	uint64_t number = 0;
	int places = 0, exponent = 0, sign = 1;
	bool is_fraction = false;
	size_t i = 0;

	for (; i < text.n; i++) {
		char c = text.bytes[i];

		if (c == '.')
			is_fraction = true;
		else if (c < '0' || c > '9' || number > UINT64_MAX / 1000000000)
			break;
		else {
			number = number * 10 + (uint64_t)(c - '0');
			places += is_fraction;
		}
	}
	if (i + 1 < text.n && text.bytes[i] == 'e') {
		sign = text.bytes[++i] == '-' ? -1 : 1;
		for (i++;
		     i < text.n && text.bytes[i] >= '0' && text.bytes[i] <= '9' && exponent < 99;
		     i++)
			exponent = exponent * 10 + (text.bytes[i] - '0');
	}
	for (places = 6 + sign * exponent - places; places > 0; places--)
		number *= 10;
	for (; places < 0 && number; places++)
		number /= 10;
	return number;
}

/* Of the first memory, "src:f32:a:blocked..." or "src_f32::blocked...". */
static uint32_t type_of(struct piece memory)
{
	static const struct {
		const char *name;
		char letter;
	} types[] = {{"f32", 's'}, {"bf16", 'b'}, {"f16", 'h'},	    {"f64", 'd'},    {"s8", 'i'},
		     {"u8", 'u'},  {"s32", 'j'},  {"f8_e4m3", 'e'}, {"f8_e5m2", 'f'}};
	const char *at = memory.bytes, *end = at + memory.n;

	while (at < end && *at != ':' && *at != '_')
		at++;
	at += at < end;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		size_t n = strlen(types[i].name);

		if ((size_t)(end - at) > n && at[n] == ':' && !memcmp(at, types[i].name, n))
			return (uint8_t)types[i].letter;
	}
	return 0;
}

static void put_detail(struct library_call *call, struct piece piece)
{
	if (piece.n > 4 && !memcmp(piece.bytes, "alg:", 4))
		piece = (struct piece){piece.bytes + 4, piece.n - 4};
	if (!piece.n || (piece.n == 5 && !memcmp(piece.bytes, "undef", 5)))
		return;
	if (call->details.length)
		torsh_text_put(&call->details, ", ");
	torsh_text_put_bytes(&call->details, piece.bytes, piece.n);
}

/*
 * Returns the primitive's kind; 0 bytes: the line is another one. Not inlined: it isn't on the
 * stack while the event is sent.
 */
static __attribute__((noinline)) struct piece read_line(struct library_call *call, const char *line,
							uint64_t *duration_ns)
{
	const char *exec = torsh_find_text(line, ",exec,"), *at, *end;
	struct piece kind, implementation, propagation, memory, auxiliary, sizes;

	if (!exec || torsh_find_text(line, ",graph,"))
		return (struct piece){0};
	at = exec + strlen(",exec,");
	take_piece(&at); /* the engine */
	kind = take_piece(&at);
	implementation = take_piece(&at);
	propagation = take_piece(&at);
	memory = take_piece(&at);
	end = at + strcspn(at, "\n");
	*duration_ns = nanoseconds(take_last(at, &end));
	sizes = take_last(at, &end);
	auxiliary = take_last(at, &end);
	call->type = type_of(memory);
	torsh_text_put_bytes(&call->shape, sizes.bytes, sizes.n);
	put_detail(call, implementation);
	put_detail(call, propagation);
	put_detail(call, auxiliary);
	return kind;
}

static __attribute__((noinline)) void record(const char *line, const void *caller)
{
	struct library_call call;
	struct event event = {.id = EVENT_LIBRARY_CALL};
	struct producer *producer;
	struct piece kind;
	uint64_t now_ns = torsh_blas_now_ns(), duration_ns;

	torsh_library_call_init(&call);
	kind = read_line(&call, line, &duration_ns);
	if (!kind.n)
		return;
	producer = torsh_producer_enter();
	if (!producer)
		return;
	if (torsh_schedule_is_on(producer)) {
		event.library_call.begin = now_ns - duration_ns;
		event.library_call.duration_ns = duration_ns;
		event.library_call.name = torsh_label("dnnl_primitive_execute", 22);
		event.library_call.library = torsh_label("libtorch_cpu.so", 15);
		torsh_library_call_label(&call, &event);
		event.library_call.routine = torsh_label(kind.bytes, kind.n);
		torsh_producer_event(producer, &event, torsh_config.with_stack ? caller : NULL);
	}
	torsh_producer_leave(producer);
}

void torsh_dnnl_executed(const char *line, const void *caller)
{
	int saved = errno;

	if (torsh_blas_is_on())
		record(line, caller);
	errno = saved;
}
