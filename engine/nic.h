/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The NIC, behind one interface for both drivers. */
#ifndef NIC_H
#define NIC_H

#include "replay.h"
#include "table.h"

struct nic;

/* A way to send. Functions that return int return 0, or print a message and return an exit code. */
struct driver {
	const char *name;
	int (*open)(struct nic *n);
	/* Sends up to `frames` more frames; fewer if the ring is full or a signal arrives. */
	int (*play)(struct nic *n, __u32 frames);
	/* Called after the last frame: waits for a moment until the ring is empty. */
	void (*drain)(struct nic *n);
	/* Fills counts[table->streams], zeroed by the caller, with the frames sent of each stream. Exact between two
	 * calls of play.
	 */
	void (*count_streams)(const struct nic *n, __u64 *counts);
	void (*close)(struct nic *n);
};

extern const struct driver xdp_driver;	  /* XDP live frames; any NIC whose driver can redirect */
extern const struct driver virtio_driver; /* drives a virtio NIC directly, without the kernel */

struct nic {
	const char *dev;
	const struct table *table;
	__u32 batch;	     /* XDP: frames per round */
	__u32 refusal_limit; /* XDP: bulks refused in a row before RING_FULL_SIGNAL interrupts the test run */
	const struct driver *driver;
	const struct stats *stats;
	void *priv; /* the driver's own state */
};

/* `driver` is the name of one of the two. Returns 0, or prints a message and returns 2 (the NIC cannot send such
 * frames) or 3 (the machine cannot send). Call nic_close in either case.
 */
int nic_open(struct nic *n, const char *driver);
void nic_close(struct nic *n);

#endif
