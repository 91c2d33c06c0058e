// SPDX-License-Identifier: GPL-2.0-or-later
#include "nic.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "error.h"

#define VLAN_TAG 4
#define ETHERNET_HEADER 14

/* The device must be up, and its MTU must fit the longest frame: the kernel would drop longer ones silently. */
static int check_dev(const char *dev, const struct table *t)
{
	struct ifreq req = { 0 };
	int fd, flags, mtu;

	if (strlen(dev) >= IFNAMSIZ || !if_nametoindex(dev))
		return print_error(EXIT_USAGE, "no network device of this name", "list them with: ip -br link", "%s",
				   dev);
	strcpy(req.ifr_name, dev);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &req) < 0) {
		if (fd >= 0)
			close(fd);
		return print_error(EXIT_CANNOT_SEND, strerror(errno), "ip -br link", "%s", dev);
	}
	flags = req.ifr_flags;
	mtu = ioctl(fd, SIOCGIFMTU, &req) < 0 ? 0 : req.ifr_mtu;
	close(fd);
	if (!(flags & IFF_UP))
		return print_error(EXIT_CANNOT_SEND, "the device is down", "ip link set dev DEV up", "%s", dev);
	if (t->max_len > mtu + ETHERNET_HEADER + VLAN_TAG)
		return print_error(EXIT_USAGE, "the longest frame does not fit the device's MTU",
				   "raise the MTU (ip link set dev DEV mtu N), or play shorter frames",
				   "%s (MTU %d, longest frame %u bytes)", dev, mtu, t->max_len);
	return 0;
}

int nic_open(struct nic *n, const char *driver)
{
	int code = check_dev(n->dev, n->table);

	if (code)
		return code;
	n->driver = !strcmp(driver, virtio_driver.name) ? &virtio_driver : &xdp_driver;
	return n->driver->open(n);
}

void nic_close(struct nic *n)
{
	if (n->driver)
		n->driver->close(n);
	n->driver = NULL;
}
