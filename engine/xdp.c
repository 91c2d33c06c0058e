// SPDX-License-Identifier: GPL-2.0-or-later
/* Sends XDP live frames through BPF_PROG_TEST_RUN: works with every NIC whose driver can redirect. */
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "error.h"
#include "nic.h"
#include "replay.skel.h"

#define BACKOFF_ROUNDS 128 /* about 50 us in an emulated machine, in which some 15 frames leave */

struct xdp {
	struct replay_bpf *bpf;
	void *page; /* initial contents of every live frame */
	int play_fd;
	int link_fd; /* detaches the program when it is closed, so on any exit */
};

static __u32 cells_of(__u32 len)
{
	return (len + CELL - 1) / CELL;
}

/* Longer than every frame: `play` must always shorten it. */
static __u32 page_len(const struct table *t)
{
	return t->max_len + 4u;
}

/* Fills both maps through mmap: one system call per frame would take seconds in an emulated machine. */
static int fill_maps(const struct xdp *x, const struct table *t)
{
	struct bpf_map *slots = x->bpf->maps.slots, *cells = x->bpf->maps.cells;
	size_t slots_len = (size_t)bpf_map__max_entries(slots) * sizeof(struct slot);
	size_t cells_len = (size_t)bpf_map__max_entries(cells) * CELL;
	struct slot *slot = mmap(NULL, slots_len, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(slots), 0);
	__u8 *bytes = mmap(NULL, cells_len, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(cells), 0);
	int failed = slot == MAP_FAILED || bytes == MAP_FAILED;

	for (__u32 i = 0, cell = 0; !failed && i < t->count; i++) {
		const struct table_record *r = &t->records[i];

		slot[i] = (struct slot){ .cell = cell, .len = r->len, .stream = r->stream };
		memcpy(bytes + (size_t)cell * CELL, t->data + r->offset, r->len);
		cell += cells_of(r->len);
	}
	if (slot != MAP_FAILED)
		munmap(slot, slots_len);
	if (bytes != MAP_FAILED)
		munmap(bytes, cells_len);
	if (failed)
		return print_error(EXIT_CANNOT_SEND, strerror(errno), "give the machine more memory",
				   "cannot map the frame table");
	return 0;
}

static int load(struct nic *n, struct xdp *x)
{
	const struct table *t = n->table;
	__u32 cells = 0, key = 0, ifindex = if_nametoindex(n->dev);
	struct stat ns;

	for (__u32 i = 0; i < t->count; i++)
		cells += cells_of(t->records[i].len);
	x->bpf = replay_bpf__open();
	if (!x->bpf || stat("/proc/self/ns/net", &ns) < 0)
		return print_error(EXIT_CANNOT_SEND, strerror(errno), "mount /proc", "cannot open the BPF object");
	bpf_map__set_max_entries(x->bpf->maps.slots, t->count);
	bpf_map__set_max_entries(x->bpf->maps.cells, cells);
	x->bpf->rodata->count = t->count;
	x->bpf->rodata->page_len = page_len(t);
	x->bpf->rodata->backoff_rounds = BACKOFF_ROUNDS;
	x->bpf->rodata->refusal_limit = n->refusal_limit;
	x->bpf->rodata->ifindex = ifindex;
	x->bpf->rodata->netns = (__u32)ns.st_ino;
	if (replay_bpf__load(x->bpf) < 0)
		return print_error(EXIT_CANNOT_SEND, strerror(errno),
				   errno == EPERM ? "run it as root"
						  : "needs Linux 5.18 or newer with BTF; see --verbose",
				   "cannot load the BPF programs");
	n->stats = &x->bpf->bss->stats;
	x->play_fd = bpf_program__fd(x->bpf->progs.play);
	if (bpf_map_update_elem(bpf_map__fd(x->bpf->maps.nic), &key, &ifindex, BPF_ANY) < 0)
		return print_error(EXIT_CANNOT_SEND, strerror(errno), "use a NIC whose driver can redirect", "%s",
				   n->dev);
	return fill_maps(x, t);
}

static int attach(const struct nic *n, struct xdp *x)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_DRV_MODE);

	x->bpf->links.account = bpf_program__attach(x->bpf->progs.account);
	if (!x->bpf->links.account)
		return print_error(EXIT_CANNOT_SEND, strerror(errno), "use a kernel with BPF tracing",
				   "cannot trace xdp_devmap_xmit");
	x->link_fd = bpf_link_create(x->play_fd, (int)if_nametoindex(n->dev), BPF_XDP, &opts);
	if (x->link_fd < 0)
		return print_error(EXIT_CANNOT_SEND, strerror(errno),
				   errno == EBUSY ? "detach the other XDP program: ip link set dev DEV xdp off"
						  : "use a NIC whose driver supports XDP, with an MTU of at most 3500",
				   "cannot attach an XDP program to %s", n->dev);
	return 0;
}

static int xdp_open(struct nic *n)
{
	struct xdp *x = calloc(1, sizeof(*x));
	int code;

	n->priv = x;
	if (x) {
		x->link_fd = x->play_fd = -1;
		x->page = calloc(1, page_len(n->table));
	}
	if (!x || !x->page)
		return print_error(EXIT_CANNOT_SEND, "no memory", "give the machine more memory",
				   "cannot allocate a frame");
	if (n->table->max_len > LIVE_MAX)
		return print_error(EXIT_USAGE, "too long for a live frame, which must fit one page",
				   "play frames of at most 3392 bytes, or on a virtio NIC: --driver virtio",
				   "a frame of %u bytes", n->table->max_len);
	code = load(n, x);
	return code ? code : attach(n, x);
}

static void xdp_close(struct nic *n)
{
	struct xdp *x = n->priv;

	if (!x)
		return;
	if (x->link_fd >= 0)
		close(x->link_fd);
	replay_bpf__destroy(x->bpf);
	free(x->page);
	free(x);
	n->priv = NULL;
}

static int xdp_play(struct nic *n, __u32 frames)
{
	const struct xdp *x = n->priv;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = x->page, .data_size_in = page_len(n->table),
		    .repeat = (int)frames, .flags = BPF_F_TEST_XDP_LIVE_FRAMES,
		    .batch_size = frames < n->batch ? frames : n->batch);

	if (bpf_prog_test_run_opts(x->play_fd, &opts) < 0 && errno != EINTR)
		return print_error(EXIT_CANNOT_SEND, strerror(errno), "try a smaller --batch; see --verbose",
				   "cannot send on %s", n->dev);
	if (x->bpf->bss->stats.broken || x->bpf->bss->stats.lost ||
	    x->bpf->bss->in_flight_head != x->bpf->bss->in_flight_tail)
		return print_error(EXIT_CANNOT_SEND, "accepts no more frames",
				   "check that it is up and its MTU has not changed: ip -s link show DEV", "%s",
				   n->dev);
	return 0;
}

/* Every bulk was either sent or refused, so nothing is left to wait for. */
static void xdp_drain(struct nic *n)
{
	(void)n;
}

static void xdp_count_streams(const struct nic *n, __u64 *counts)
{
	const struct xdp *x = n->priv;

	table_count_streams(n->table, x->bpf->bss->stats.started, counts);
	for (__u32 i = x->bpf->bss->retry_tail; i != x->bpf->bss->retry_head; i++)
		counts[n->table->records[x->bpf->bss->retry_ring[i % RING_SIZE]].stream]--;
}

const struct driver xdp_driver = {
	.name = "xdp",
	.open = xdp_open,
	.play = xdp_play,
	.drain = xdp_drain,
	.count_streams = xdp_count_streams,
	.close = xdp_close,
};
