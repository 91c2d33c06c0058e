// SPDX-License-Identifier: GPL-2.0-or-later
/* The link without QEMU: sends datagrams of SIZE bytes to a UDP port on loopback for SECONDS, flat out and one per
 * system call, as QEMU's socket netdev does. Prints how many were sent. Usage: link-host ADDRESS PORT SIZE SECONDS
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static char frame[65507];
	struct sockaddr_in to = { .sin_family = AF_INET };
	unsigned long sent = 0;
	size_t size = argc == 5 ? (size_t)atol(argv[3]) : 0;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || !size || !inet_aton(argv[1], &to.sin_addr) || size > sizeof(frame)) {
		fputs("usage: link-host ADDRESS PORT SIZE SECONDS\n", stderr);
		return 2;
	}
	to.sin_port = htons((unsigned short)atoi(argv[2]));
	for (double end = now() + atof(argv[4]); now() < end;)
		for (int i = 0; i < 256; i++)
			sent += sendto(fd, frame, size, 0, (const struct sockaddr *)&to, sizeof(to)) == (ssize_t)size;
	printf("%lu\n", sent);
	return 0;
}
