/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The NIC and the BPF programs: loads them, fills the table's maps, hands frames over, reads the tally. */
#ifndef NIC_H
#define NIC_H

#include "replay.h"
#include "table.h"

struct replay_bpf;

struct nic {
	const char *dev;
	struct replay_bpf *bpf;
	const struct table *table;
	void *page;    /* the first contents of every live frame, a little longer than the longest */
	int play_fd;
	int link_fd;   /* holds the attached program; closed on any exit, so nothing stays attached */
	__u32 batch;
};

/* `patience`: bulks that a full ring refuses in a row before RING_FULL_SIGNAL ends a hand-over.
 * Exit code 0, 2 (the NIC cannot take such frames) or 3 (cannot send); prints what is wrong and the next step. */
int nic_open(struct nic *n, const char *dev, const struct table *t, __u32 batch, __u32 patience);
void nic_close(struct nic *n);

/* Plays `frames` frames; a signal ends it early. 0, or 3 with a message: the NIC cannot send. */
int nic_play(struct nic *n, __u32 frames);

const struct tally *nic_tally(const struct nic *n);

/* Frames sent of each stream, counts[table->streams]. Exact between two nic_play(). */
void nic_count_streams(const struct nic *n, __u64 *counts);

#endif
