/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the BPF program and the program that loads it share. */
#ifndef REPLAY_H
#define REPLAY_H

#include <linux/types.h>

#define CELL 64		/* frames are kept in cells of this many bytes, one array element each */
#define LIVE_MAX 3392	/* longest frame that fits a live-frame page (4096 less its heads and tail), in cells */
#define BULK_MAX 32	/* the kernel hands frames to a driver in bulks of 16; twice that, to be safe */
#define ORDER 128	/* frames handed over and not yet accounted; a power of two, well above a bulk */

#define RING_FULL_SIGNAL 12 /* SIGUSR2, which ends a hand-over early */

struct slot {
	__u32 cell; /* the frame's first cell */
	__u16 len;
	__u16 stream;
};

/* Written by the BPF programs, read by the loader between runs. Frame counts. */
struct tally {
	__u64 started;	/* taken from the table */
	__u64 sent;	/* accepted by the driver's transmit ring */
	__u64 refused;	/* hand-overs that the ring refused; each is played again */
	__u64 lost;	/* refused in a bulk above BULK_MAX and not remembered */
	__u64 broken;	/* the program could not build the frame */
	__s64 last_error; /* the driver's last negative answer */
};

#endif
