/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DMA memory: pinned, with known bus addresses, in physically contiguous blocks. */
#ifndef DMA_H
#define DMA_H

#include <linux/types.h>
#include <stddef.h>

#define DMA_BLOCK 32768u

struct dma {
	int fd;	     /* keeps the memory allocated as long as any process has this file open */
	__u8 *bytes; /* blocks * DMA_BLOCK */
	__u64 *bus;  /* [blocks] bus address of each block */
	__u32 blocks;
};

/* Returns 0, or prints a message and returns 3. Call dma_free in either case. */
int dma_allocate(struct dma *d, __u32 blocks);
void dma_free(struct dma *d);

#endif
