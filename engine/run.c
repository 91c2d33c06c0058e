// SPDX-License-Identifier: GPL-2.0-or-later
#include "run.h"

#include <signal.h>
#include <time.h>

#include "error.h"
#include "report.h"

#define SECOND 1000000000ull
#define CHUNK_NS (20 * 1000000ull)	/* flat out: target duration of one call of play, short enough to stop soon */
#define LONGEST_SLEEP (50 * 1000000ull) /* bounds the delay of a signal that arrives just before the sleep */
#define RING_FULL_SLEEP_NS 100000ull	/* some 30 frames leave in this time, out of the 256 of a full ring */
#define STUCK_NS (2 * SECOND)

static volatile sig_atomic_t stop, report, ring_full;

static void on_stop(int signal)
{
	(void)signal;
	stop = 1;
}

static void on_ring_full(int signal)
{
	(void)signal;
	ring_full = 1;
}

static void on_report(int signal)
{
	(void)signal;
	report = 1;
}

/* No SA_RESTART: a signal must interrupt the test run and the sleep. */
static void catch_signals(void)
{
	struct sigaction ending = { .sa_handler = on_stop }, reporting = { .sa_handler = on_report };
	struct sigaction waiting = { .sa_handler = on_ring_full };

	sigaction(SIGTERM, &ending, NULL);
	sigaction(SIGINT, &ending, NULL);
	sigaction(SIGHUP, &ending, NULL);
	sigaction(RING_FULL_SIGNAL, &waiting, NULL);
	sigaction(SIGUSR1, &reporting, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static __u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (__u64)t.tv_sec * SECOND + (__u64)t.tv_nsec;
}

static void sleep_until(__u64 at)
{
	struct timespec t = { .tv_sec = (time_t)(at / SECOND), .tv_nsec = (long)(at % SECOND) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static __u64 min_u64(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

/* Frames due after `elapsed`. A frame due exactly at the end of the run belongs to the next one. */
static __u64 due(const struct run *r, __u64 elapsed)
{
	__u64 frames, limit = r->count ? r->count : ~0ull;

	if (r->duration_ns && elapsed >= r->duration_ns)
		elapsed = r->duration_ns - 1;
	frames = schedule_due(&r->schedule, elapsed);
	return min_u64(frames, limit);
}

/* Adapts the number of frames per call of play so that a call takes about CHUNK_NS, and less near the end of the run.
 */
static __u32 next_chunk(__u32 chunk, __u64 took, __u64 left, __u32 batch)
{
	double want = chunk * ((double)min_u64(CHUNK_NS, left) / (took ? took : 1));

	if (want > 4.0 * chunk)
		want = 4.0 * chunk;
	if (want > 1 << 20)
		want = 1 << 20;
	return want < batch ? batch : (__u32)want;
}

int run_play(const struct run *r, struct nic *n)
{
	const volatile struct stats *stats = n->stats;
	__u64 begin, last_progress, next_report, sent_before = 0;
	struct outcome o = { .run = r, .nic = n };
	__u32 chunk = n->batch;
	int code = 0;

	catch_signals();
	begin = last_progress = now();
	next_report = r->report_ns ? r->report_ns : ~0ull;
	while (!stop) {
		__u64 t = now(), elapsed = t - begin, sent = stats->sent, want;

		if (elapsed >= next_report || report) {
			o.elapsed_ns = elapsed;
			o.intended = due(r, elapsed);
			report_line(&o, false);
			report = 0;
			while (next_report <= elapsed)
				next_report += r->report_ns;
		}
		if ((r->duration_ns && elapsed >= r->duration_ns) || (r->count && sent >= r->count))
			break;
		if (sent != sent_before)
			last_progress = t;
		sent_before = sent;
		want = due(r, elapsed);
		if (want <= sent) {
			__u64 wake = schedule_when(&r->schedule, sent);

			last_progress = t;
			if (wake < elapsed + r->tick_ns)
				wake = elapsed + r->tick_ns;
			wake = min_u64(wake, elapsed + LONGEST_SLEEP);
			if (r->duration_ns)
				wake = min_u64(wake, r->duration_ns);
			sleep_until(begin + min_u64(wake, next_report));
			continue;
		}
		if (t - last_progress > STUCK_NS) {
			code = print_error(EXIT_CANNOT_SEND, "the driver accepts no frames",
					   "check its state: ip -s link show DEV; ethtool -S DEV",
					   "%s (last error %lld)", n->dev, (long long)stats->last_error);
			break;
		}
		code = n->driver->play(n, (__u32)min_u64(want - sent, chunk));
		if (code)
			break;
		if (ring_full) {
			ring_full = 0;
			sleep_until(now() + RING_FULL_SLEEP_NS);
		} else if (want - sent >= chunk)
			chunk = next_chunk(chunk, now() - t, r->duration_ns ? r->duration_ns - elapsed : CHUNK_NS,
					   n->batch);
	}
	n->driver->drain(n);
	o.elapsed_ns = now() - begin;
	o.intended = due(r, o.elapsed_ns);
	report_line(&o, true);
	return code;
}
