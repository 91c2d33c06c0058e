// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE /* pipe2 */
#include "borrow.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/virtio_pci.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "say.h"

#define PCI "/sys/bus/pci/"
#define KERNELS_OWN PCI "drivers/virtio-pci/"
#define TRANSITIONAL_NIC "0x1000\n"
#define COMMAND 4     /* in configuration space */
#define MAY_ANSWER 5u /* its I/O ports answer; it may read and write memory */

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t done;

	if (fd < 0)
		return -1;
	done = write(fd, text, strlen(text));
	close(fd);
	return done < 0 ? -1 : 0;
}

static int put_of(const char *address, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), PCI "devices/%s/%s", address, file);
	return put(path, text);
}

static int open_of(const char *address, const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), PCI "devices/%s/%s", address, file);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* The PCI address of the device behind `dev`: the parent of the virtio device in /sys. */
static bool find(const char *dev, char *address, size_t len)
{
	char path[128], real[PATH_MAX], text[16] = { 0 };
	char *last;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device", dev);
	if (!realpath(path, real))
		return false;
	last = strrchr(real, '/');
	if (strncmp(last, "/virtio", 7))
		return false;
	*last = 0;
	last = strrchr(real, '/') + 1;
	if ((size_t)snprintf(address, len, "%s", last) >= len)
		return false;
	snprintf(path, sizeof(path), PCI "devices/%s/device", address);
	file = fopen(path, "re");
	if (!file)
		return false;
	last = fgets(text, sizeof(text), file);
	fclose(file);
	return last && !strcmp(text, TRANSITIONAL_NIC);
}

/* As it was before: up, and as wide. The next run need not wait for the machine's network configuration. */
static bool raise_again(const struct borrowed *b)
{
	struct ifreq req = b->before;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool good = fd >= 0 && ioctl(fd, SIOCSIFMTU, &req) == 0;

	req.ifr_flags = IFF_UP;
	good = good && ioctl(fd, SIOCSIFFLAGS, &req) == 0;
	if (fd >= 0)
		close(fd);
	return good;
}

/* Waits for the end of the process that borrowed, then resets the device and gives it back. */
static void guard(const struct borrowed *b, int leash)
{
	static const uint8_t reset;
	int nowhere = open("/dev/null", O_RDWR);
	char byte, path[128];

	setsid(); /* a Ctrl-C is for the process that plays; so is what is sent to processes of its name */
	prctl(PR_SET_NAME, "replay-guardian");
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	dup2(nowhere, STDIN_FILENO);
	dup2(nowhere, STDOUT_FILENO);
	while (read(leash, &byte, 1) < 0 && errno == EINTR)
		;
	/* Where the kernel still has it, there is nothing to do. */
	snprintf(path, sizeof(path), PCI "devices/%s/driver", b->address);
	if (access(path, F_OK) == 0)
		_exit(0);
	if (pwrite(b->ports, &reset, 1, VIRTIO_PCI_STATUS) != 1 || put(KERNELS_OWN "bind", b->address) < 0)
		_exit(1);
	_exit(raise_again(b) ? 0 : 1);
}

static int start_guardian(struct borrowed *b)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	b->guardian = fork();
	if (b->guardian == 0) {
		close(ends[1]);
		guard(b, ends[0]);
	}
	close(ends[0]);
	if (b->guardian < 0) {
		close(ends[1]);
		return -1;
	}
	b->leash = ends[1];
	return 0;
}

static bool remember(struct borrowed *b, const char *dev)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool good;

	snprintf(b->before.ifr_name, sizeof(b->before.ifr_name), "%s", dev);
	good = fd >= 0 && ioctl(fd, SIOCGIFMTU, &b->before) == 0;
	if (fd >= 0)
		close(fd);
	return good;
}

static bool enable(const struct borrowed *b)
{
	int config = open_of(b->address, "config");
	uint16_t command;
	bool good;

	good = config >= 0 && put_of(b->address, "enable", "1") == 0 &&
	       pread(config, &command, sizeof(command), COMMAND) == sizeof(command);
	if (good) {
		command |= MAY_ANSWER;
		good = pwrite(config, &command, sizeof(command), COMMAND) == sizeof(command);
	}
	if (config >= 0)
		close(config);
	return good;
}

int borrow(struct borrowed *b, const char *dev)
{
	*b = (struct borrowed){ .ports = -1, .leash = -1, .guardian = -1 };
	if (!find(dev, b->address, sizeof(b->address)))
		return say_error(EXIT_CANNOT_SEND, "not a virtio NIC that answers on I/O ports", "use --driver xdp", "%s", dev);
	b->ports = open_of(b->address, "resource0");
	if (b->ports < 0 || !remember(b, dev) || start_guardian(b) < 0 || put(KERNELS_OWN "unbind", b->address) < 0 || !enable(b))
		return say_error(EXIT_CANNOT_SEND, strerror(errno), "run it as root, or use --driver xdp",
				 "%s cannot be taken from the kernel", dev);
	return 0;
}

void give_back(struct borrowed *b)
{
	int status = 0;

	if (b->leash >= 0) {
		close(b->leash);
		if (waitpid(b->guardian, &status, 0) < 0 || status)
			say_error(EXIT_CANNOT_SEND, "the kernel does not take it back", "reboot this machine",
				  "the NIC at %s", b->address);
	}
	if (b->ports >= 0)
		close(b->ports);
	b->leash = b->ports = -1;
}
