/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The NIC: one door, two drivers behind it. */
#ifndef NIC_H
#define NIC_H

#include "replay.h"
#include "table.h"

struct nic;

/* A way to send. Every function that returns int gives 0, or an exit code with a message printed. */
struct driver {
	const char *name;
	int (*open)(struct nic *n);
	/* Sends up to `frames` more frames, fewer when the ring is full or a signal comes. */
	int (*play)(struct nic *n, __u32 frames);
	/* After the last one: until all that the ring holds has left, or for a moment. */
	void (*drain)(struct nic *n);
	/* counts[table->streams], zeroed: frames sent of each stream. Exact between two calls of play. */
	void (*count_streams)(const struct nic *n, __u64 *counts);
	void (*close)(struct nic *n);
};

extern const struct driver xdp_driver;	  /* XDP live frames; any NIC whose driver redirects */
extern const struct driver virtio_driver; /* drives a virtio NIC itself, without the kernel */

struct nic {
	const char *dev;
	const struct table *table;
	__u32 batch;	/* XDP: frames a round */
	__u32 patience; /* XDP: bulks that a full ring refuses in a row before RING_FULL_SIGNAL ends a hand-over */
	const struct driver *driver;
	const struct tally *tally;
	void *own; /* the driver's */
};

/* `driver` is the name of one of the two. Exit code 0, 2 (the NIC cannot take such frames) or 3 (cannot send); prints
 * what is wrong and the next step. Close it in any case.
 */
int nic_open(struct nic *n, const char *driver);
void nic_close(struct nic *n);

#endif
