/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When each frame is due. Pure arithmetic, without a clock. Times are in ns from the start of the run. */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "table.h"

enum schedule_mode { FLAT_OUT, BY_RATE, BY_TIMES };

struct schedule {
	enum schedule_mode mode;
	double rate;  /* frames per second, BY_RATE */
	double speed; /* speed-up of the table's own times, BY_TIMES */
	const struct table *table;
};

/* Frames due at `elapsed` or before; UINT64_MAX if flat out. */
__u64 schedule_due(const struct schedule *s, __u64 elapsed_ns);

/* When frame number `frame` (from 0, over all loops) is due; 0 if flat out. */
__u64 schedule_when(const struct schedule *s, __u64 frame);

/* Mean frames per second; 0 if flat out. */
double schedule_mean_rate(const struct schedule *s);

#endif
