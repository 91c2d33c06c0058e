// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE /* pipe2 */
#include "nic_unbind.h"

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

#include "error.h"

#define PCI "/sys/bus/pci/"
#define KERNEL_DRIVER PCI "drivers/virtio-pci/"
#define TRANSITIONAL_NIC "0x1000\n"
#define COMMAND 4	  /* offset of the command register in configuration space */
#define COMMAND_ENABLE 5u /* I/O ports on, bus mastering on */

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t done;

	if (fd < 0)
		return -1;
	done = write(fd, text, strlen(text));
	close(fd);
	return done < 0 ? -1 : 0;
}

static int write_attribute(const char *address, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), PCI "devices/%s/%s", address, file);
	return write_file(path, text);
}

static int open_attribute(const char *address, const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), PCI "devices/%s/%s", address, file);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* The PCI address of the NIC `dev`: in /sys, the parent of its virtio device. */
static bool find_pci_address(const char *dev, char *address, size_t len)
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

/* Sets the saved MTU and brings the link up, so that the next run need not wait for the network configuration. */
static bool restore_link(const struct unbound_nic *b)
{
	struct ifreq req = b->saved;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool good = fd >= 0 && ioctl(fd, SIOCSIFMTU, &req) == 0;

	req.ifr_flags = IFF_UP;
	good = good && ioctl(fd, SIOCSIFFLAGS, &req) == 0;
	if (fd >= 0)
		close(fd);
	return good;
}

/* Waits until the parent process has ended, then resets the device and rebinds it. */
static void run_watchdog(const struct unbound_nic *b, int pipe_end)
{
	static const uint8_t reset;
	int null = open("/dev/null", O_RDWR);
	char byte, path[128];

	setsid(); /* Ctrl-C, and signals sent by process name, are meant for the parent */
	prctl(PR_SET_NAME, "replay-watchdog");
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	while (read(pipe_end, &byte, 1) < 0 && errno == EINTR)
		;
	/* If the kernel still owns the device, there is nothing to do. */
	snprintf(path, sizeof(path), PCI "devices/%s/driver", b->address);
	if (access(path, F_OK) == 0)
		_exit(0);
	if (pwrite(b->io_ports, &reset, 1, VIRTIO_PCI_STATUS) != 1 || write_file(KERNEL_DRIVER "bind", b->address) < 0)
		_exit(1);
	_exit(restore_link(b) ? 0 : 1);
}

static int start_watchdog(struct unbound_nic *b)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	b->watchdog = fork();
	if (b->watchdog == 0) {
		close(ends[1]);
		run_watchdog(b, ends[0]);
	}
	close(ends[0]);
	if (b->watchdog < 0) {
		close(ends[1]);
		return -1;
	}
	b->watchdog_pipe = ends[1];
	return 0;
}

static bool save_link(struct unbound_nic *b, const char *dev)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool good;

	snprintf(b->saved.ifr_name, sizeof(b->saved.ifr_name), "%s", dev);
	good = fd >= 0 && ioctl(fd, SIOCGIFMTU, &b->saved) == 0;
	if (fd >= 0)
		close(fd);
	return good;
}

static bool enable_device(const struct unbound_nic *b)
{
	int config = open_attribute(b->address, "config");
	uint16_t command;
	bool good;

	good = config >= 0 && write_attribute(b->address, "enable", "1") == 0 &&
	       pread(config, &command, sizeof(command), COMMAND) == sizeof(command);
	if (good) {
		command |= COMMAND_ENABLE;
		good = pwrite(config, &command, sizeof(command), COMMAND) == sizeof(command);
	}
	if (config >= 0)
		close(config);
	return good;
}

int nic_unbind(struct unbound_nic *b, const char *dev)
{
	*b = (struct unbound_nic){ .io_ports = -1, .watchdog_pipe = -1, .watchdog = -1 };
	if (!find_pci_address(dev, b->address, sizeof(b->address)))
		return print_error(EXIT_CANNOT_SEND, "not a virtio NIC with I/O ports", "use --driver xdp", "%s", dev);
	b->io_ports = open_attribute(b->address, "resource0");
	if (b->io_ports < 0 || !save_link(b, dev) || start_watchdog(b) < 0 ||
	    write_file(KERNEL_DRIVER "unbind", b->address) < 0 || !enable_device(b))
		return print_error(EXIT_CANNOT_SEND, strerror(errno), "run it as root, or use --driver xdp",
				   "cannot unbind %s from the kernel", dev);
	return 0;
}

void nic_rebind(struct unbound_nic *b)
{
	int status = 0;

	if (b->watchdog_pipe >= 0) {
		close(b->watchdog_pipe);
		if (waitpid(b->watchdog, &status, 0) < 0 || status)
			print_error(EXIT_CANNOT_SEND, "cannot be bound to the kernel again", "reboot this machine",
				    "the NIC at %s", b->address);
	}
	if (b->io_ports >= 0)
		close(b->io_ports);
	b->watchdog_pipe = b->io_ports = -1;
}
