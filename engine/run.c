// SPDX-License-Identifier: GPL-2.0-or-later
#include "run.h"

#include <signal.h>
#include <time.h>

#include "report.h"
#include "say.h"

#define SECOND 1000000000ull
#define CHUNK_NS (20 * 1000000ull) /* flat out: one hand-over takes about this long, so a stop is seen soon */
#define LONGEST_SLEEP (50 * 1000000ull) /* a signal between the test and the sleep waits no longer */
#define NAP_NS 100000ull /* ring full: long enough for some 30 frames to leave, too short for all of its 256 */
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

/* No SA_RESTART: the hand-over and the sleep must end when a signal comes. */
static void catch_signals(void)
{
	struct sigaction ending = { .sa_handler = on_stop }, telling = { .sa_handler = on_report };
	struct sigaction waiting = { .sa_handler = on_ring_full };

	sigaction(SIGTERM, &ending, NULL);
	sigaction(SIGINT, &ending, NULL);
	sigaction(SIGHUP, &ending, NULL);
	sigaction(RING_FULL_SIGNAL, &waiting, NULL);
	sigaction(SIGUSR1, &telling, NULL);
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

static __u64 least(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

/* Frames that should have left after `elapsed`. Those due exactly at the end of the run are the next run's. */
static __u64 due(const struct run *r, __u64 elapsed)
{
	__u64 frames, limit = r->count ? r->count : ~0ull;

	if (r->duration_ns && elapsed >= r->duration_ns)
		elapsed = r->duration_ns - 1;
	frames = schedule_due(&r->schedule, elapsed);
	return least(frames, limit);
}

/* Flat out, a hand-over grows or shrinks until it takes about CHUNK_NS, and never outlasts the duration by much. */
static __u32 next_chunk(__u32 chunk, __u64 took, __u64 left, __u32 batch)
{
	double want = chunk * ((double)least(CHUNK_NS, left) / (took ? took : 1));

	if (want > 4.0 * chunk)
		want = 4.0 * chunk;
	if (want > 1 << 20)
		want = 1 << 20;
	return want < batch ? batch : (__u32)want;
}

int run_play(const struct run *r, struct nic *n)
{
	const volatile struct tally *tally = n->tally;
	__u64 begin, moved, next_report, sent_before = 0;
	struct outcome o = { .run = r, .nic = n };
	__u32 chunk = n->batch;
	int code = 0;

	catch_signals();
	begin = moved = now();
	next_report = r->report_ns ? r->report_ns : ~0ull;
	while (!stop) {
		__u64 t = now(), elapsed = t - begin, sent = tally->sent, want;

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
			moved = t;
		sent_before = sent;
		want = due(r, elapsed);
		if (want <= sent) {
			__u64 wake = schedule_when(&r->schedule, sent);

			moved = t;
			if (wake < elapsed + r->tick_ns)
				wake = elapsed + r->tick_ns;
			wake = least(wake, elapsed + LONGEST_SLEEP);
			if (r->duration_ns)
				wake = least(wake, r->duration_ns);
			sleep_until(begin + least(wake, next_report));
			continue;
		}
		if (t - moved > STUCK_NS) {
			code = say_error(EXIT_CANNOT_SEND, "its driver takes no frames",
					 "look at its state: ip -s link show DEV; ethtool -S DEV",
					 "%s (last answer %lld)", n->dev, (long long)tally->last_error);
			break;
		}
		code = n->driver->play(n, (__u32)least(want - sent, chunk));
		if (code)
			break;
		if (ring_full) {
			ring_full = 0;
			sleep_until(now() + NAP_NS);
		} else if (want - sent >= chunk)
			chunk = next_chunk(chunk, now() - t, r->duration_ns ? r->duration_ns - elapsed : CHUNK_NS, n->batch);
	}
	n->driver->drain(n);
	o.elapsed_ns = now() - begin;
	o.intended = due(r, o.elapsed_ns);
	report_line(&o, true);
	return code;
}
