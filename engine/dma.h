/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory that a device may read: never moved, with known addresses on the bus, in blocks without a seam. */
#ifndef DMA_H
#define DMA_H

#include <linux/types.h>
#include <stddef.h>

#define DMA_BLOCK 32768u

struct dma {
	int fd;	     /* holds the memory: it stays as long as any process has this file open */
	__u8 *bytes; /* blocks * DMA_BLOCK */
	__u64 *bus;  /* [blocks] each block's address for the device */
	__u32 blocks;
};

/* 0, or 3 with a message. Free it in any case. */
int dma_allocate(struct dma *d, __u32 blocks);
void dma_free(struct dma *d);

#endif
