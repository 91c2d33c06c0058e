// SPDX-License-Identifier: GPL-2.0-or-later
#include "nic.h"

#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "replay.skel.h"
#include "say.h"

#define HOLD_ROUNDS 128 /* after a refusal; in an emulated machine some 50 us, in which some 15 frames leave */
#define VLAN_TAG 4
#define ETHERNET_HEADER 14

/* Up, and wide enough for the longest frame; the kernel would drop others without a word. */
static int check_dev(const char *dev, const struct table *t)
{
	struct ifreq req = { 0 };
	int fd, flags, mtu;

	if (strlen(dev) >= IFNAMSIZ || !if_nametoindex(dev))
		return say_error(EXIT_USAGE, "no network device is called here", "list them with: ip -br link", "%s", dev);
	strcpy(req.ifr_name, dev);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &req) < 0) {
		if (fd >= 0)
			close(fd);
		return say_error(EXIT_CANNOT_SEND, strerror(errno), "ip -br link", "%s", dev);
	}
	flags = req.ifr_flags;
	mtu = ioctl(fd, SIOCGIFMTU, &req) < 0 ? 0 : req.ifr_mtu;
	close(fd);
	if (!(flags & IFF_UP))
		return say_error(EXIT_CANNOT_SEND, "the device is down", "ip link set dev DEV up", "%s", dev);
	if (t->max_len > mtu + ETHERNET_HEADER + VLAN_TAG)
		return say_error(EXIT_USAGE, "the longest frame does not fit the device's MTU",
				 "raise the MTU (ip link set dev DEV mtu N), or play shorter frames",
				 "%s (MTU %d, longest frame %u bytes)", dev, mtu, t->max_len);
	return 0;
}

static __u32 cells_of(__u32 len)
{
	return (len + CELL - 1) / CELL;
}

/* Longer than every frame: see `play`. */
static __u32 page_len(const struct table *t)
{
	return t->max_len + 4u;
}

/* Both maps are filled through mmap: one system call a frame would take seconds in an emulated machine. */
static int fill_maps(struct nic *n)
{
	const struct table *t = n->table;
	struct bpf_map *slots = n->bpf->maps.slots, *cells = n->bpf->maps.cells;
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
		return say_error(EXIT_CANNOT_SEND, strerror(errno), "give the machine more memory", "the table's maps");
	return 0;
}

static int load(struct nic *n, __u32 patience)
{
	const struct table *t = n->table;
	__u32 cells = 0, key = 0, ifindex = if_nametoindex(n->dev);
	struct stat ns;

	for (__u32 i = 0; i < t->count; i++)
		cells += cells_of(t->records[i].len);
	n->bpf = replay_bpf__open();
	if (!n->bpf || stat("/proc/self/ns/net", &ns) < 0)
		return say_error(EXIT_CANNOT_SEND, strerror(errno), "mount /proc", "the BPF object");
	bpf_map__set_max_entries(n->bpf->maps.slots, t->count);
	bpf_map__set_max_entries(n->bpf->maps.cells, cells);
	n->bpf->rodata->count = t->count;
	n->bpf->rodata->page_len = page_len(t);
	n->bpf->rodata->hold_rounds = HOLD_ROUNDS;
	n->bpf->rodata->patience = patience;
	n->bpf->rodata->ifindex = ifindex;
	n->bpf->rodata->netns = (__u32)ns.st_ino;
	if (replay_bpf__load(n->bpf) < 0)
		return say_error(EXIT_CANNOT_SEND, strerror(errno),
				 errno == EPERM ? "run it as root" : "needs Linux 5.18 or newer with BTF; see --verbose",
				 "the BPF programs");
	n->play_fd = bpf_program__fd(n->bpf->progs.play);
	if (bpf_map_update_elem(bpf_map__fd(n->bpf->maps.nic), &key, &ifindex, BPF_ANY) < 0)
		return say_error(EXIT_CANNOT_SEND, strerror(errno), "use a NIC whose driver can redirect", "%s", n->dev);
	return fill_maps(n);
}

static int attach(struct nic *n)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_DRV_MODE);

	n->bpf->links.account = bpf_program__attach(n->bpf->progs.account);
	if (!n->bpf->links.account)
		return say_error(EXIT_CANNOT_SEND, strerror(errno), "use a kernel with BPF tracing", "xdp_devmap_xmit");
	n->link_fd = bpf_link_create(n->play_fd, (int)if_nametoindex(n->dev), BPF_XDP, &opts);
	if (n->link_fd < 0)
		return say_error(EXIT_CANNOT_SEND, strerror(errno),
				 errno == EBUSY ? "another XDP program is there: ip link set dev DEV xdp off" :
						  "use a NIC whose driver knows XDP, with an MTU of at most 3500",
				 "%s does not take an XDP program", n->dev);
	return 0;
}

int nic_open(struct nic *n, const char *dev, const struct table *t, __u32 batch, __u32 patience)
{
	int code;

	*n = (struct nic){ .dev = dev, .table = t, .link_fd = -1, .play_fd = -1, .batch = batch };
	if (t->max_len > LIVE_MAX)
		return say_error(EXIT_USAGE, "longer than a live frame can be", "play frames of at most 3392 bytes",
				 "a frame of %u bytes", t->max_len);
	code = check_dev(dev, t);
	if (code)
		return code;
	n->page = calloc(1, page_len(t));
	if (!n->page)
		return say_error(EXIT_CANNOT_SEND, "no memory", "give the machine more memory", "the first frame");
	code = load(n, patience);
	return code ? code : attach(n);
}

void nic_close(struct nic *n)
{
	if (n->link_fd >= 0)
		close(n->link_fd);
	replay_bpf__destroy(n->bpf);
	free(n->page);
	n->link_fd = -1;
	n->bpf = NULL;
	n->page = NULL;
}

int nic_play(struct nic *n, __u32 frames)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = n->page, .data_size_in = page_len(n->table),
		    .repeat = (int)frames, .flags = BPF_F_TEST_XDP_LIVE_FRAMES,
		    .batch_size = frames < n->batch ? frames : n->batch);

	if (bpf_prog_test_run_opts(n->play_fd, &opts) < 0 && errno != EINTR)
		return say_error(EXIT_CANNOT_SEND, strerror(errno), "try a smaller --batch; see --verbose",
				 "playing on %s", n->dev);
	if (n->bpf->bss->tally.broken || n->bpf->bss->tally.lost || n->bpf->bss->head != n->bpf->bss->tail)
		return say_error(EXIT_CANNOT_SEND, "it stopped taking frames",
				 "look whether it went down or its MTU changed: ip -s link show DEV", "%s", n->dev);
	return 0;
}

const struct tally *nic_tally(const struct nic *n)
{
	return &n->bpf->bss->tally;
}

void nic_count_streams(const struct nic *n, __u64 *counts)
{
	memset(counts, 0, n->table->streams * sizeof(*counts));
	table_count_streams(n->table, n->bpf->bss->tally.started, counts);
	for (__u32 i = n->bpf->bss->again_tail; i != n->bpf->bss->again_head; i++)
		counts[n->table->records[n->bpf->bss->again[i % ORDER]].stream]--;
}
