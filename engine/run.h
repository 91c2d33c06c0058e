/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One run: sends what is due, sleeps until more is due, reports. */
#ifndef RUN_H
#define RUN_H

#include "nic.h"
#include "schedule.h"

struct run {
	struct schedule schedule;
	__u64 count;	   /* frames to send; 0: no limit */
	__u64 duration_ns; /* 0: no limit */
	__u64 report_ns;   /* interval of intermediate lines; 0: none */
	__u64 tick_ns;	   /* shortest sleep; frames due within it leave as one burst */
};

/* Plays until the count or the duration is reached, or until SIGTERM or SIGINT; prints the final line and returns the
 * exit code.
 */
int run_play(const struct run *r, struct nic *n);

#endif
