// SPDX-License-Identifier: GPL-2.0-or-later
/* The memory is a packet socket's ring: the kernel allocates it in blocks of contiguous pages, never moves or swaps it,
 * and maps it into this process. It needs no huge pages. The socket is bound to no protocol, so it receives nothing.
 */
#include "dma.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "error.h"

#define PRESENT (1ull << 63)
#define FRAME_NUMBER ((1ull << 55) - 1)

/* Without an IOMMU a bus address is a physical address. */
static int resolve_addresses(struct dma *d)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = DMA_BLOCK / page;
	int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	__u64 entry[DMA_BLOCK / 4096];
	int result = map < 0 ? -1 : 0;

	for (__u32 b = 0; !result && b < d->blocks; b++) {
		size_t at = (size_t)(d->bytes + (size_t)b * DMA_BLOCK) / page * sizeof(*entry);

		if (pread(map, entry, pages * sizeof(*entry), (off_t)at) != (ssize_t)(pages * sizeof(*entry)))
			result = -1;
		for (size_t p = 0; !result && p < pages; p++) {
			/* Frame number 0: the kernel hides it (no CAP_SYS_ADMIN). */
			if (!(entry[p] & PRESENT) || !(entry[p] & FRAME_NUMBER) || entry[p] - entry[0] != p) {
				errno = ENOMEM;
				result = -1;
			}
		}
		d->bus[b] = (entry[0] & FRAME_NUMBER) * page;
	}
	if (map >= 0)
		close(map);
	return result;
}

int dma_allocate(struct dma *d, __u32 blocks)
{
	struct tpacket_req ring = {
		.tp_block_size = DMA_BLOCK,
		.tp_block_nr = blocks,
		.tp_frame_size = DMA_BLOCK,
		.tp_frame_nr = blocks,
	};
	size_t len = (size_t)blocks * DMA_BLOCK;

	*d = (struct dma){ .blocks = blocks, .bytes = MAP_FAILED };
	d->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	d->bus = calloc(blocks, sizeof(*d->bus));
	if (d->fd >= 0 && d->bus && !setsockopt(d->fd, SOL_PACKET, PACKET_TX_RING, &ring, sizeof(ring)))
		d->bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, d->fd, 0);
	if (d->bytes == MAP_FAILED || resolve_addresses(d) < 0)
		return print_error(EXIT_CANNOT_SEND, strerror(errno),
				   "run it as root, give the machine more memory, or use --driver xdp",
				   "cannot allocate %zu MiB of DMA memory", len >> 20);
	return 0;
}

void dma_free(struct dma *d)
{
	if (d->bytes && d->bytes != MAP_FAILED)
		munmap(d->bytes, (size_t)d->blocks * DMA_BLOCK);
	if (d->fd >= 0)
		close(d->fd);
	free(d->bus);
	*d = (struct dma){ .fd = -1 };
}
