/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Definitions shared by the BPF programs and their loader. */
#ifndef REPLAY_H
#define REPLAY_H

#include <linux/types.h>

#define CELL 64	      /* bytes per element of the map that stores the frames */
#define LIVE_MAX 3392 /* longest frame, in whole cells, that a live-frame page has room for */
#define BULK_MAX 32   /* twice the kernel's bulk of 16, to be safe */
#define RING_SIZE 128 /* entries of in_flight and retry_ring; a power of two, well above a bulk */

#define RING_FULL_SIGNAL 12 /* SIGUSR2, which interrupts the test run */

struct slot {
	__u32 cell; /* the frame's first cell */
	__u16 len;
	__u16 stream;
};

/* Frame counts, written by the BPF programs and read by the loader between test runs. */
struct stats {
	__u64 started;	  /* taken from the table */
	__u64 sent;	  /* accepted by the driver's transmit ring */
	__u64 refused;	  /* refused by a full ring; each is retried */
	__u64 lost;	  /* refused beyond BULK_MAX in one bulk, so not retried */
	__u64 broken;	  /* frames that the program could not build */
	__s64 last_error; /* the driver's last error code */
};

#endif
