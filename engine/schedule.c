// SPDX-License-Identifier: GPL-2.0-or-later
#include "schedule.h"

/* A 64-bit mantissa counts nanoseconds exactly for more than a century. */
typedef long double real;

static __u64 frames_until(const struct table *t, __u64 loop_time)
{
	__u32 low = 0, high = t->count;

	while (low < high) {
		__u32 middle = low + (high - low) / 2;

		if (t->records[middle].time_ns <= loop_time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

__u64 schedule_when(const struct schedule *s, __u64 frame)
{
	const struct table *t = s->table;
	real at;

	if (s->mode == FLAT_OUT)
		return 0;
	if (s->mode == BY_RATE) {
		at = frame * 1e9L / s->rate;
	} else {
		at = (real)(frame / t->count) * t->head->loop_ns + t->records[frame % t->count].time_ns;
		at /= s->speed;
	}
	/* Round up: a frame must not be due before its time. */
	return (__u64)at + ((real)(__u64)at < at);
}

__u64 schedule_due(const struct schedule *s, __u64 elapsed_ns)
{
	const struct table *t = s->table;
	__u64 at;

	if (s->mode == FLAT_OUT)
		return ~0ull;
	if (s->mode == BY_RATE)
		return (__u64)((real)elapsed_ns * s->rate / 1e9L) + 1;
	at = (__u64)((real)elapsed_ns * s->speed);
	return at / t->head->loop_ns * t->count + frames_until(t, at % t->head->loop_ns);
}

double schedule_mean_rate(const struct schedule *s)
{
	if (s->mode == FLAT_OUT)
		return 0;
	if (s->mode == BY_RATE)
		return s->rate;
	return s->table->count * 1e9 / s->table->head->loop_ns * s->speed;
}
