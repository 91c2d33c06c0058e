/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One run: hands over what is due, sleeps until more is, reports. */
#ifndef RUN_H
#define RUN_H

#include "nic.h"
#include "schedule.h"

struct run {
	struct schedule schedule;
	__u64 count;	      /* frames to send; 0: no limit */
	__u64 duration_ns;    /* 0: no limit */
	__u64 report_ns;      /* an intermediate line this often; 0: never */
	__u64 tick_ns;	      /* shortest sleep: frames due within it leave as one burst */
};

/* Plays until the count, the duration, SIGTERM or SIGINT, then prints the final line. Exit code. */
int run_play(const struct run *r, struct nic *n);

#endif
