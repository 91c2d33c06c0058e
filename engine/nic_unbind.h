/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unbinds a virtio NIC from the kernel's driver and rebinds it, even if this process dies in between. */
#ifndef NIC_UNBIND_H
#define NIC_UNBIND_H

#include <net/if.h>
#include <sys/types.h>

struct unbound_nic {
	char address[32];   /* on the PCI bus */
	struct ifreq saved; /* the link's name and MTU */
	int io_ports;	    /* the device's I/O ports as a file: a register is at its offset */
	int watchdog_pipe;  /* closes when this process ends for any reason; the watchdog then rebinds the NIC */
	pid_t watchdog;
};

/* Works only for a virtio NIC on PCI that has I/O ports (a transitional device). Unbinds it and enables bus mastering.
 * DMA memory must already be backed by an open file descriptor, which the watchdog inherits and holds until the device
 * has been reset. Returns 0, or prints a message and returns 3.
 */
int nic_unbind(struct unbound_nic *b, const char *dev);

/* Rebinds the NIC and restores its MTU and its up state. Addresses are left to the machine's network configuration. */
void nic_rebind(struct unbound_nic *b);

#endif
