/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes a virtio NIC from the kernel and gives it back, whatever happens to this process in between. */
#ifndef BORROW_H
#define BORROW_H

#include <net/if.h>
#include <sys/types.h>

struct borrowed {
	char address[32]; /* on the PCI bus */
	struct ifreq before; /* its name and MTU */
	int ports;	  /* the device's I/O ports as a file: a register is read and written at its offset */
	int leash;	  /* closes when this process ends, however it does: then the guardian gives the NIC back */
	pid_t guardian;
};

/* Only a virtio NIC on PCI that still answers on I/O ports (a transitional device). It is then off the kernel's list and
 * allowed to read memory. What it shall read must be held by a file that is open by now: the guardian keeps that until
 * the device has been reset. 0, or 3 with a message.
 */
int borrow(struct borrowed *b, const char *dev);

/* Back to the kernel, which finds it as new: up as before; its addresses are for the machine's network configuration. */
void give_back(struct borrowed *b);

#endif
