// SPDX-License-Identifier: GPL-2.0-or-later
/* Plays the frame table. `play` runs once per live frame: it writes the next stored frame over the page it is
 * given and redirects it to the NIC. Pages come back with their old contents, so every byte is written.
 * It is attached to the NIC as well, where it lets all pass: virtio-net redirects only where some program is
 * attached, and a test run of a program that is attached nowhere waits for two RCU grace periods (24 ms in an
 * emulated machine), because the kernel patches its XDP dispatcher on the way in and out.
 * `account` sees what the driver's transmit ring took of each bulk (at most 16 frames) and queues the rest to be
 * played again: a full ring delays frames and loses none.
 */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "replay.h"

char LICENSE[] SEC("license") = "GPL";

/* Only what `account` reads; the loader's BTF relocation finds the true offsets. */
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

const volatile __u32 count;	/* frames in the table */
const volatile __u32 page_len;	/* every page arrives with this length, above every frame's */
const volatile __u32 ifindex;
const volatile __u32 patience; /* bulks refused in a row before the loader is woken to sleep a little */
const volatile __u32 hold_rounds; /* idle rounds after a refusal */
const volatile __u32 netns;	/* inode number: another namespace may use the same ifindex */

struct tally tally;
__u32 cursor;
/* Frames given to the NIC's bulk queue, oldest at `tail`. */
__u32 order[ORDER];
__u32 head, tail;
/* Frames that a full ring refused, oldest at `again_tail`. */
__u32 again[ORDER];
__u32 again_head, again_tail;
__u32 refused_bulks;
__u32 hold; /* rounds of `play` still to pass idly */
/* The NIC's net_device, once seen. */
unsigned long known_dev;

#define COPY(n)                                                                                               \
	do {                                                                                                  \
		if ((void *)(to + (n) / 8) > end)                                                             \
			return -1;                                                                            \
		for (int w = 0; w < (n) / 8; w++)                                                             \
			to[w] = from[w];                                                                      \
		to += (n) / 8;                                                                                \
		from += (n) / 8;                                                                              \
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
		return XDP_PASS; /* truly received */
	if (hold) {
		hold--;
		return XDP_DROP;
	}
	if (again_tail != again_head) {
		frame = again[again_tail++ % ORDER];
	} else {
		frame = cursor;
		cursor = frame + 1 < count ? frame + 1 : 0;
		tally.started++;
	}
	slot = bpf_map_lookup_elem(&slots, &frame);
	if (!slot)
		goto broken;
	/* Always a change of length. Drivers write into the frame's own description (virtio-net adds its header to it);
	 * Linux before 6.3 mends that on the page's next use only where the program changed the bounds.
	 */
	if (bpf_xdp_adjust_tail(ctx, (int)slot->len - (int)page_len) < 0)
		goto broken;
	if (write_frame(ctx, slot) < 0)
		goto broken;
	order[head++ % ORDER] = frame;
	return bpf_redirect_map(&nic, 0, 0);
broken:
	tally.broken++;
	return XDP_DROP;
}

static __always_inline int ours(struct net_device *dev)
{
	if ((unsigned long)dev == known_dev)
		return 1;
	if (known_dev || (__u32)BPF_CORE_READ(dev, ifindex) != ifindex || BPF_CORE_READ(dev, nd_net.net, ns.inum) != netns)
		return 0;
	known_dev = (unsigned long)dev;
	return 1;
}

/* xdp_devmap_xmit(from_dev, to_dev, sent, drops, err) */
SEC("raw_tp/xdp_devmap_xmit")
int account(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 sent, drops;

	if (!ours((struct net_device *)ctx->args[1]))
		return 0;
	sent = ctx->args[2];
	drops = ctx->args[3];
	tally.sent += sent;
	tail += sent;
	if (sent)
		refused_bulks = 0;
	if (!drops)
		return 0;
	/* virtio-net notifies the device for every frame that it refuses, which in an emulated machine takes the lock
	 * that the device's own thread needs. So a few rounds pass idly before the next attempt.
	 */
	hold = hold_rounds;
	/* The thread that empties the ring may need the CPU on which we would go on asking. */
	if (++refused_bulks == patience) {
		refused_bulks = 0;
		bpf_send_signal(RING_FULL_SIGNAL);
	}
	tally.refused += drops;
	if ((int)ctx->args[4] < 0)
		tally.last_error = (int)ctx->args[4];
	/* At most a bulk and the frame after it can be waiting here, so `again` never overflows. */
	for (__u32 i = 0; i < BULK_MAX; i++) {
		if (i >= drops)
			return 0;
		again[again_head++ % ORDER] = order[tail++ % ORDER];
	}
	tally.lost += drops - BULK_MAX;
	return 0;
}
