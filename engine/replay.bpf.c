// SPDX-License-Identifier: GPL-2.0-or-later
/* Plays the frame table. `play` runs once per live frame: it copies the next stored frame into the page it is given and
 * redirects it to the NIC. The kernel recycles pages without clearing them, so every byte is written.
 *
 * `play` is also attached to the NIC, where it passes every packet, for two reasons. virtio-net redirects only if a
 * program is attached. And the test run of a program that is attached nowhere waits for two RCU grace periods (24 ms in
 * an emulated machine), because the kernel patches its XDP dispatcher before and after.
 *
 * `account` learns how many frames of each bulk (at most 16) the transmit ring accepted and queues the rest to be sent
 * again: a full ring delays frames but loses none.
 */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "replay.h"

char LICENSE[] SEC("license") = "GPL";

/* Only the fields that `account` reads; the loader relocates them to the kernel's offsets (CO-RE). */
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));
struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));
typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;
struct net_device {
	int ifindex;
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct cell {
	__u64 word[CELL / 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, __u32);
	__type(value, struct cell);
} cells SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} nic SEC(".maps");

const volatile __u32 count;    /* frames in the table */
const volatile __u32 page_len; /* initial length of every page, greater than any frame's */
const volatile __u32 ifindex;
const volatile __u32 refusal_limit;  /* bulks refused in a row before the loader is told to sleep */
const volatile __u32 backoff_rounds; /* rounds of `play` to skip after a refusal */
const volatile __u32 netns;	     /* inode number; ifindex is unique only within a namespace */

struct stats stats;
__u32 cursor;
/* Frames in the NIC's bulk queue, oldest at `in_flight_tail`. */
__u32 in_flight[RING_SIZE];
__u32 in_flight_head, in_flight_tail;
/* Frames that a full ring refused, oldest at `retry_tail`. */
__u32 retry_ring[RING_SIZE];
__u32 retry_head, retry_tail;
__u32 refused_bulks;
__u32 backoff; /* rounds of `play` still to skip */
/* The NIC's net_device, once identified. */
unsigned long known_dev;

#define COPY(n)                                                                                                        \
	do {                                                                                                           \
		if ((void *)(to + (n) / 8) > end)                                                                      \
			return -1;                                                                                     \
		for (int w = 0; w < (n) / 8; w++)                                                                      \
			to[w] = from[w];                                                                               \
		to += (n) / 8;                                                                                         \
		from += (n) / 8;                                                                                       \
	} while (0)

static __always_inline int write_frame(struct xdp_md *ctx, const struct slot *slot)
{
	__u32 left = slot->len, at = slot->cell;
	__u64 *to = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	const __u64 *from;
	struct cell *cell;

	for (int i = 0; i < LIVE_MAX / CELL && left >= CELL; i++) {
		cell = bpf_map_lookup_elem(&cells, &at);
		if (!cell)
			return -1;
		from = cell->word;
		COPY(CELL);
		left -= CELL;
		at++;
	}
	if (!left)
		return 0;
	cell = bpf_map_lookup_elem(&cells, &at);
	if (!cell)
		return -1;
	from = cell->word;
	if (left & 32)
		COPY(32);
	if (left & 16)
		COPY(16);
	if (left & 8)
		COPY(8);
	if (left & 4) {
		if ((void *)to + 4 > end)
			return -1;
		*(__u32 *)to = *(__u32 *)from;
		to = (void *)to + 4;
		from = (void *)from + 4;
	}
	if (left & 2) {
		if ((void *)to + 2 > end)
			return -1;
		*(__u16 *)to = *(__u16 *)from;
		to = (void *)to + 2;
		from = (void *)from + 2;
	}
	if (left & 1) {
		if ((void *)to + 1 > end)
			return -1;
		*(__u8 *)to = *(__u8 *)from;
	}
	return 0;
}

SEC("xdp")
int play(struct xdp_md *ctx)
{
	struct slot *slot;
	__u32 frame;

	if (ctx->ingress_ifindex == ifindex)
		return XDP_PASS; /* a received packet, not a live frame */
	if (backoff) {
		backoff--;
		return XDP_DROP;
	}
	if (retry_tail != retry_head) {
		frame = retry_ring[retry_tail++ % RING_SIZE];
	} else {
		frame = cursor;
		cursor = frame + 1 < count ? frame + 1 : 0;
		stats.started++;
	}
	slot = bpf_map_lookup_elem(&slots, &frame);
	if (!slot)
		goto broken;
	/* Always change the length. Drivers modify the frame's descriptor (virtio-net pushes its header), and Linux
	 * before 6.3 resets it when the page is reused only if the program changed the bounds.
	 */
	if (bpf_xdp_adjust_tail(ctx, (int)slot->len - (int)page_len) < 0)
		goto broken;
	if (write_frame(ctx, slot) < 0)
		goto broken;
	in_flight[in_flight_head++ % RING_SIZE] = frame;
	return bpf_redirect_map(&nic, 0, 0);
broken:
	stats.broken++;
	return XDP_DROP;
}

static __always_inline int is_our_nic(struct net_device *dev)
{
	if ((unsigned long)dev == known_dev)
		return 1;
	if (known_dev || (__u32)BPF_CORE_READ(dev, ifindex) != ifindex ||
	    BPF_CORE_READ(dev, nd_net.net, ns.inum) != netns)
		return 0;
	known_dev = (unsigned long)dev;
	return 1;
}

/* xdp_devmap_xmit(from_dev, to_dev, sent, drops, err) */
SEC("raw_tp/xdp_devmap_xmit")
int account(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 sent, drops;

	if (!is_our_nic((struct net_device *)ctx->args[1]))
		return 0;
	sent = ctx->args[2];
	drops = ctx->args[3];
	stats.sent += sent;
	in_flight_tail += sent;
	if (sent)
		refused_bulks = 0;
	if (!drops)
		return 0;
	/* virtio-net notifies the device for every frame it refuses. In an emulated machine the notification takes the
	 * lock that the device's thread needs, so skip a few rounds before the next attempt.
	 */
	backoff = backoff_rounds;
	/* The thread that empties the ring may need this CPU, so let the loader sleep. */
	if (++refused_bulks == refusal_limit) {
		refused_bulks = 0;
		bpf_send_signal(RING_FULL_SIGNAL);
	}
	stats.refused += drops;
	if ((int)ctx->args[4] < 0)
		stats.last_error = (int)ctx->args[4];
	/* At most a bulk and the frame after it wait here, so retry_ring never overflows. */
	for (__u32 i = 0; i < BULK_MAX; i++) {
		if (i >= drops)
			return 0;
		retry_ring[retry_head++ % RING_SIZE] = in_flight[in_flight_tail++ % RING_SIZE];
	}
	stats.lost += drops - BULK_MAX;
	return 0;
}
