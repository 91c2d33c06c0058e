// SPDX-License-Identifier: GPL-2.0-or-later
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

static void print_intended(const struct outcome *o)
{
	static const char *const modes[] = { "flat_out", "rate", "times" };
	const struct run *r = o->run;

	printf("\"intended\": {\"mode\": \"%s\"", modes[r->schedule.mode]);
	if (r->schedule.mode != FLAT_OUT)
		printf(", \"pps\": %.6g", schedule_mean_rate(&r->schedule));
	if (r->schedule.mode == BY_TIMES)
		printf(", \"speed\": %.6g", r->schedule.speed);
	if (r->count)
		printf(", \"count\": %llu", (unsigned long long)r->count);
	if (r->duration_ns)
		printf(", \"duration_s\": %.9g", (double)r->duration_ns / 1e9);
	if (o->intended != ~0ull)
		printf(", \"frames\": %llu", (unsigned long long)o->intended);
	printf("}");
}

static void print_streams(const struct nic *n)
{
	__u64 *counts = calloc(n->table->streams, sizeof(*counts));
	const char *gap = "";

	printf("\"per_stream\": [");
	if (counts)
		n->driver->count_streams(n, counts);
	for (__u32 s = 0; counts && s < n->table->streams; s++) {
		if (!n->table->per_loop[s])
			continue;
		printf("%s{\"id\": %u, \"sent\": %llu}", gap, s, (unsigned long long)counts[s]);
		gap = ", ";
	}
	printf("]");
	free(counts);
}

void report_line(const struct outcome *o, bool final)
{
	const struct stats t = *o->nic->stats;
	double seconds = (double)o->elapsed_ns / 1e9;

	printf("{\"version\": \"%s\", \"final\": %s, \"dev\": \"%s\", \"driver\": \"%s\", ", ENGINE_VERSION,
	       final ? "true" : "false", o->nic->dev, o->nic->driver->name);
	print_intended(o);
	printf(", \"duration_s\": %.6f, \"attempted\": %llu, \"sent\": %llu, \"dropped\": %llu, ", seconds,
	       (unsigned long long)t.started, (unsigned long long)t.sent, (unsigned long long)(t.started - t.sent));
	if (o->intended != ~0ull)
		printf("\"unsent\": %llu, ", (unsigned long long)(o->intended > t.sent ? o->intended - t.sent : 0));
	printf("\"ring_full\": %llu, \"pps\": %.1f, ", (unsigned long long)t.refused,
	       seconds > 0 ? (double)t.sent / seconds : 0);
	print_streams(o->nic);
	printf("}\n");
	fflush(stdout);
}

void report_table(const struct table *t)
{
	__u32 streams = 0;

	for (__u32 s = 0; s < t->streams; s++)
		streams += t->per_loop[s] != 0;
	printf("{\"version\": \"%s\", \"frames\": %u, \"streams\": %u, \"shortest\": %u, \"longest\": %u, "
	       "\"loop_ns\": %llu}\n",
	       ENGINE_VERSION, t->count, streams, t->min_len, t->max_len, (unsigned long long)t->head->loop_ns);
}
