// SPDX-License-Identifier: GPL-2.0-or-later
/* Drives a virtio NIC without the kernel. The whole table is in DMA memory, each frame preceded by its virtio-net
 * header, so that sending a frame means writing its address into the transmit ring: nothing is copied, and the CPU is
 * free for QEMU. Only the transmit queue is set up; nothing is received.
 */
#include <errno.h>
#include <linux/virtio_net.h>
#include <linux/virtio_pci.h>
#include <linux/virtio_ring.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dma.h"
#include "error.h"
#include "nic.h"
#include "nic_unbind.h"

#define TX 1 /* queue number */
#define HEADER sizeof(struct virtio_net_hdr)
#define ALIGN 16u
#define MAX_POLLS 50000 /* of a full ring before a sleep; about a millisecond in an emulated machine */
#define SLEEP_NS 50000	/* a fraction of the ring leaves in this time */
#define MAX_SLEEPS 100	/* before control returns to the caller */
#define DRAIN_NS 1000000000ull

struct buffer {
	__u64 address; /* bus address of the frame's virtio-net header */
	__u32 len;     /* including the header */
};

struct virtio {
	struct unbound_nic nic;
	struct dma memory;
	struct vring ring;
	struct buffer *buffers; /* [table->count] */
	struct stats stats;
	__u32 cursor;	 /* next frame of the table */
	__u16 avail_idx; /* as written to avail->idx */
	__u16 used_idx;	 /* as last read from used->idx */
};

static __u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (__u64)t.tv_sec * 1000000000ull + (__u64)t.tv_nsec;
}

static __u32 padded_len(__u32 len)
{
	return (__u32)(len + HEADER + ALIGN - 1) / ALIGN * ALIGN;
}

/* Places the frames from block 1 on (block 0 holds the ring); no frame crosses the end of a block. Copies them if
 * `memory` is given. Returns the number of blocks.
 */
static __u32 place_frames(const struct table *t, struct virtio *v, const struct dma *memory)
{
	__u32 block = 1, at = 0;

	for (__u32 i = 0; i < t->count; i++) {
		const struct table_record *r = &t->records[i];

		if (at + padded_len(r->len) > DMA_BLOCK)
			block++, at = 0;
		if (memory) {
			memcpy(memory->bytes + (size_t)block * DMA_BLOCK + at + HEADER, t->data + r->offset, r->len);
			v->buffers[i] =
				(struct buffer){ .address = memory->bus[block] + at, .len = (__u32)HEADER + r->len };
		}
		at += padded_len(r->len);
	}
	return block + 1;
}

static bool write_register(const struct virtio *v, off_t at, __u32 value, size_t size)
{
	return pwrite(v->nic.io_ports, &value, size, at) == (ssize_t)size;
}

static int start_device(struct nic *n)
{
	struct virtio *v = n->priv;
	__u16 size = 0;

	if (!write_register(v, VIRTIO_PCI_STATUS, 0, 1) ||
	    !write_register(v, VIRTIO_PCI_STATUS, VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER, 1) ||
	    !write_register(v, VIRTIO_PCI_GUEST_FEATURES, 1u << VIRTIO_F_ANY_LAYOUT, 4) ||
	    !write_register(v, VIRTIO_PCI_QUEUE_SEL, TX, 2) ||
	    pread(v->nic.io_ports, &size, sizeof(size), VIRTIO_PCI_QUEUE_NUM) != sizeof(size))
		return print_error(EXIT_CANNOT_SEND, strerror(errno), "use --driver xdp", "%s does not respond",
				   n->dev);
	if (!size || vring_size(size, VIRTIO_PCI_VRING_ALIGN) > DMA_BLOCK)
		return print_error(EXIT_CANNOT_SEND, "unsupported size", "use --driver xdp",
				   "transmit ring of %s (%u entries)", n->dev, size);
	vring_init(&v->ring, size, v->memory.bytes, VIRTIO_PCI_VRING_ALIGN);
	/* Descriptors are used in order, so the ring of their indexes never changes. */
	for (__u16 i = 0; i < size; i++)
		v->ring.avail->ring[i] = i;
	v->ring.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	if (!write_register(v, VIRTIO_PCI_QUEUE_PFN, (__u32)(v->memory.bus[0] >> VIRTIO_PCI_QUEUE_ADDR_SHIFT), 4) ||
	    !write_register(v, VIRTIO_PCI_STATUS,
			    VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER | VIRTIO_CONFIG_S_DRIVER_OK, 1))
		return print_error(EXIT_CANNOT_SEND, strerror(errno), "use --driver xdp", "%s does not start", n->dev);
	return 0;
}

static int virtio_open(struct nic *n)
{
	struct virtio *v = calloc(1, sizeof(*v));
	int code;

	n->priv = v;
	if (v) {
		v->memory.fd = v->nic.io_ports = v->nic.watchdog_pipe = -1;
		v->buffers = calloc(n->table->count, sizeof(*v->buffers));
	}
	if (!v || !v->buffers)
		return print_error(EXIT_CANNOT_SEND, "no memory", "give the machine more memory",
				   "cannot store the frames' addresses");
	n->stats = &v->stats;
	code = dma_allocate(&v->memory, place_frames(n->table, v, NULL));
	if (code)
		return code;
	place_frames(n->table, v, &v->memory);
	code = nic_unbind(&v->nic, n->dev);
	return code ? code : start_device(n);
}

/* Reads the used index; returns how many frames the device has consumed since the last call. */
static __u16 poll_used(struct virtio *v)
{
	__u16 used = __atomic_load_n(&v->ring.used->idx, __ATOMIC_ACQUIRE), more = (__u16)(used - v->used_idx);

	v->used_idx = used;
	return more;
}

/* Waits until the device has consumed frames; false on a timeout or a signal. Polling disturbs nobody and keeps the
 * ring full, but if the device makes no progress at all, its thread may need this CPU: then sleep.
 */
static bool wait_for_room(struct virtio *v)
{
	const struct timespec sleep_time = { .tv_nsec = SLEEP_NS };

	for (int sleeps = 0; sleeps < MAX_SLEEPS; sleeps++) {
		for (int polls = 0; polls < MAX_POLLS; polls++)
			if (poll_used(v))
				return true;
		v->stats.refused++;
		if (nanosleep(&sleep_time, NULL) < 0)
			return false;
	}
	return false;
}

static int virtio_play(struct nic *n, __u32 frames)
{
	struct virtio *v = n->priv;
	const __u32 size = v->ring.num;

	while (frames) {
		__u32 room, take;

		poll_used(v);
		room = size - (__u16)(v->avail_idx - v->used_idx);
		if (!room) {
			if (!wait_for_room(v))
				return 0;
			continue;
		}
		take = room < frames ? room : frames;
		for (__u32 i = 0; i < take; i++) {
			const struct buffer *buffer = &v->buffers[v->cursor];
			struct vring_desc *desc = &v->ring.desc[(v->avail_idx + i) & (size - 1)];

			desc->addr = buffer->address;
			desc->len = buffer->len;
			v->cursor = v->cursor + 1 < n->table->count ? v->cursor + 1 : 0;
		}
		v->avail_idx = (__u16)(v->avail_idx + take);
		__atomic_store_n(&v->ring.avail->idx, v->avail_idx, __ATOMIC_RELEASE);
		__atomic_thread_fence(__ATOMIC_SEQ_CST); /* the device reads idx after it clears the flag */
		if (!(__atomic_load_n(&v->ring.used->flags, __ATOMIC_RELAXED) & VRING_USED_F_NO_NOTIFY) &&
		    !write_register(v, VIRTIO_PCI_QUEUE_NOTIFY, TX, 2))
			return print_error(EXIT_CANNOT_SEND, strerror(errno), "ip -br link", "%s does not respond",
					   n->dev);
		v->stats.started += take;
		v->stats.sent += take;
		frames -= take;
	}
	return 0;
}

/* Frames that the device never consumed were not sent. */
static void virtio_drain(struct nic *n)
{
	struct virtio *v = n->priv;
	__u64 end = now() + DRAIN_NS;

	while (poll_used(v), v->avail_idx != v->used_idx && now() < end)
		;
	v->stats.sent -= (__u16)(v->avail_idx - v->used_idx);
}

static void virtio_count_streams(const struct nic *n, __u64 *counts)
{
	table_count_streams(n->table, n->stats->sent, counts);
}

static void virtio_close(struct nic *n)
{
	struct virtio *v = n->priv;

	if (!v)
		return;
	nic_rebind(&v->nic);
	dma_free(&v->memory);
	free(v->buffers);
	free(v);
	n->priv = NULL;
}

const struct driver virtio_driver = {
	.name = "virtio",
	.open = virtio_open,
	.play = virtio_play,
	.drain = virtio_drain,
	.count_streams = virtio_count_streams,
	.close = virtio_close,
};
