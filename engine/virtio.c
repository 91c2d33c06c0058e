// SPDX-License-Identifier: GPL-2.0-or-later
/* Drives a virtio NIC without the kernel. The whole table lies in memory that the device can read, each frame behind the
 * header that virtio-net wants, so that sending a frame is to write its address into the transmit ring: nothing is copied,
 * and the CPU is left to whoever carries the frames. Only the transmit queue is set up; what arrives is not taken.
 */
#include <errno.h>
#include <linux/virtio_net.h>
#include <linux/virtio_pci.h>
#include <linux/virtio_ring.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "borrow.h"
#include "dma.h"
#include "nic.h"
#include "say.h"

#define TX 1 /* queue number */
#define HEADER sizeof(struct virtio_net_hdr)
#define ALIGN 16u
#define POLLS 50000	/* of a full ring before a nap; about a millisecond in an emulated machine */
#define NAP_NS 50000	/* in which a fraction of the ring leaves */
#define NAPS 100	/* before the caller is asked again */
#define DRAIN_NS 1000000000ull

struct item {
	__u64 address; /* of the frame's virtio-net header, for the device */
	__u32 len;     /* with the header */
};

struct virtio {
	struct borrowed nic;
	struct dma memory;
	struct vring ring;
	struct item *items; /* [table->count] */
	struct tally tally;
	__u32 cursor;	    /* next frame of the table */
	__u16 filled;	    /* as avail->idx */
	__u16 seen;	    /* of used->idx */
};

static __u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (__u64)t.tv_sec * 1000000000ull + (__u64)t.tv_nsec;
}

static __u32 space(__u32 len)
{
	return (__u32)(len + HEADER + ALIGN - 1) / ALIGN * ALIGN;
}

/* Where the frames go, from block 1 on (block 0 holds the ring); no frame crosses a block's end. Returns the blocks. */
static __u32 lay_out(const struct table *t, struct virtio *v, const struct dma *memory)
{
	__u32 block = 1, at = 0;

	for (__u32 i = 0; i < t->count; i++) {
		const struct table_record *r = &t->records[i];

		if (at + space(r->len) > DMA_BLOCK)
			block++, at = 0;
		if (memory) {
			memcpy(memory->bytes + (size_t)block * DMA_BLOCK + at + HEADER, t->data + r->offset, r->len);
			v->items[i] = (struct item){ .address = memory->bus[block] + at, .len = (__u32)HEADER + r->len };
		}
		at += space(r->len);
	}
	return block + 1;
}

static bool put(const struct virtio *v, off_t at, __u32 value, size_t size)
{
	return pwrite(v->nic.ports, &value, size, at) == (ssize_t)size;
}

static int start(struct nic *n)
{
	struct virtio *v = n->own;
	__u16 size = 0;

	if (!put(v, VIRTIO_PCI_STATUS, 0, 1) ||
	    !put(v, VIRTIO_PCI_STATUS, VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER, 1) ||
	    !put(v, VIRTIO_PCI_GUEST_FEATURES, 1u << VIRTIO_F_ANY_LAYOUT, 4) ||
	    !put(v, VIRTIO_PCI_QUEUE_SEL, TX, 2) ||
	    pread(v->nic.ports, &size, sizeof(size), VIRTIO_PCI_QUEUE_NUM) != sizeof(size))
		return say_error(EXIT_CANNOT_SEND, strerror(errno), "use --driver xdp", "%s does not answer", n->dev);
	if (!size || vring_size(size, VIRTIO_PCI_VRING_ALIGN) > DMA_BLOCK)
		return say_error(EXIT_CANNOT_SEND, "not a size that this engine serves", "use --driver xdp",
				 "%s's ring of %u", n->dev, size);
	vring_init(&v->ring, size, v->memory.bytes, VIRTIO_PCI_VRING_ALIGN);
	/* Descriptors are used in turn, so the ring that names them never changes. */
	for (__u16 i = 0; i < size; i++)
		v->ring.avail->ring[i] = i;
	v->ring.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	if (!put(v, VIRTIO_PCI_QUEUE_PFN, (__u32)(v->memory.bus[0] >> VIRTIO_PCI_QUEUE_ADDR_SHIFT), 4) ||
	    !put(v, VIRTIO_PCI_STATUS,
		 VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER | VIRTIO_CONFIG_S_DRIVER_OK, 1))
		return say_error(EXIT_CANNOT_SEND, strerror(errno), "use --driver xdp", "%s does not start", n->dev);
	return 0;
}

static int virtio_open(struct nic *n)
{
	struct virtio *v = calloc(1, sizeof(*v));
	int code;

	n->own = v;
	if (v) {
		v->memory.fd = v->nic.ports = v->nic.leash = -1;
		v->items = calloc(n->table->count, sizeof(*v->items));
	}
	if (!v || !v->items)
		return say_error(EXIT_CANNOT_SEND, "no memory", "give the machine more memory", "the table's addresses");
	n->tally = &v->tally;
	code = dma_allocate(&v->memory, lay_out(n->table, v, NULL));
	if (code)
		return code;
	lay_out(n->table, v, &v->memory);
	code = borrow(&v->nic, n->dev);
	return code ? code : start(n);
}

/* Frames that the device has taken since the last look. */
static __u16 look(struct virtio *v)
{
	__u16 used = __atomic_load_n(&v->ring.used->idx, __ATOMIC_ACQUIRE), more = (__u16)(used - v->seen);

	v->seen = used;
	return more;
}

/* Until the device has taken some; false when it has not for a while, or a signal came. Asking costs nobody else anything
 * and keeps the ring full; but where the device does not move at all, its thread may need this very CPU.
 */
static bool wait_for_room(struct virtio *v)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	for (int naps = 0; naps < NAPS; naps++) {
		for (int polls = 0; polls < POLLS; polls++)
			if (look(v))
				return true;
		v->tally.refused++;
		if (nanosleep(&nap, NULL) < 0)
			return false;
	}
	return false;
}

static int virtio_play(struct nic *n, __u32 frames)
{
	struct virtio *v = n->own;
	const __u32 size = v->ring.num;

	while (frames) {
		__u32 room, take;

		look(v);
		room = size - (__u16)(v->filled - v->seen);
		if (!room) {
			if (!wait_for_room(v))
				return 0;
			continue;
		}
		take = room < frames ? room : frames;
		for (__u32 i = 0; i < take; i++) {
			const struct item *item = &v->items[v->cursor];
			struct vring_desc *desc = &v->ring.desc[(v->filled + i) & (size - 1)];

			desc->addr = item->address;
			desc->len = item->len;
			v->cursor = v->cursor + 1 < n->table->count ? v->cursor + 1 : 0;
		}
		v->filled = (__u16)(v->filled + take);
		__atomic_store_n(&v->ring.avail->idx, v->filled, __ATOMIC_RELEASE);
		__atomic_thread_fence(__ATOMIC_SEQ_CST); /* the device looks at idx after it clears the flag */
		if (!(__atomic_load_n(&v->ring.used->flags, __ATOMIC_RELAXED) & VRING_USED_F_NO_NOTIFY) &&
		    !put(v, VIRTIO_PCI_QUEUE_NOTIFY, TX, 2))
			return say_error(EXIT_CANNOT_SEND, strerror(errno), "ip -br link", "%s does not answer", n->dev);
		v->tally.started += take;
		v->tally.sent += take;
		frames -= take;
	}
	return 0;
}

/* What the device never took was not sent. */
static void virtio_drain(struct nic *n)
{
	struct virtio *v = n->own;
	__u64 end = now() + DRAIN_NS;

	while (look(v), v->filled != v->seen && now() < end)
		;
	v->tally.sent -= (__u16)(v->filled - v->seen);
}

static void virtio_count_streams(const struct nic *n, __u64 *counts)
{
	table_count_streams(n->table, n->tally->sent, counts);
}

static void virtio_close(struct nic *n)
{
	struct virtio *v = n->own;

	if (!v)
		return;
	give_back(&v->nic);
	dma_free(&v->memory);
	free(v->items);
	free(v);
	n->own = NULL;
}

const struct driver virtio_driver = {
	.name = "virtio",
	.open = virtio_open,
	.play = virtio_play,
	.drain = virtio_drain,
	.count_streams = virtio_count_streams,
	.close = virtio_close,
};
