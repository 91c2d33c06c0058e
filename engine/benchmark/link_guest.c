// SPDX-License-Identifier: GPL-2.0-or-later
/* The cheapest possible sender in a machine: no operating system, one virtio-net NIC whose transmit ring never runs
 * empty, and a constant frame. What arrives at the far end is the capacity of the link for a guest: QEMU's own work.
 * Boots as a multiboot kernel (qemu -kernel); the command line is the frame length in bytes. It never ends.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define MULTIBOOT_MAGIC 0x1BADB002u
#define MULTIBOOT_CMDLINE 4u /* bit in the flags of the boot information */

#define VIRTIO_NET_LEGACY 0x10001AF4u /* device and vendor id in configuration space */
#define F_ANY_LAYOUT (1u << 27)	      /* header and frame in one descriptor, as Linux sends XDP frames */
#define NO_INTERRUPT 1		      /* in avail->flags */
#define NO_NOTIFY 1		      /* in used->flags */
#define TX 1
#define HEADER 10
#define PAGE 4096u
/* Iterations of an empty loop between two polls of the ring: polling without a pause keeps taking the cache line away
 * from QEMU's thread. Of 0 to 3000 iterations, 300 and more were the fastest.
 */
#define POLL_PAUSE 1000

/* Registers of a legacy virtio device, from its first I/O port. */
enum { GUEST_FEATURES = 4, QUEUE_PAGE = 8, QUEUE_SIZE = 12, QUEUE_SELECT = 14, QUEUE_NOTIFY = 16, STATUS = 18 };

struct multiboot {
	u32 magic, flags, checksum;
};
__attribute__((section(".multiboot"), used)) static const struct multiboot header = {
	MULTIBOOT_MAGIC,
	0,
	-MULTIBOOT_MAGIC,
};

struct desc {
	u64 address;
	u32 len;
	u16 flags, next;
};
struct avail {
	u16 flags, idx, ring[];
};
struct used {
	u16 flags, idx;
};

static u8 ring[16 * PAGE] __attribute__((aligned(4096)));
static u8 frame[HEADER + 2048] __attribute__((aligned(64)));
static u8 stack[PAGE] __attribute__((aligned(16), used));

static void out32(u16 port, u32 value)
{
	__asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port) : "memory");
}

static void out16(u16 port, u16 value)
{
	__asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port) : "memory");
}

static void out8(u16 port, u8 value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port) : "memory");
}

static u32 in32(u16 port)
{
	u32 value;

	__asm__ volatile("inl %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static u16 in16(u16 port)
{
	u16 value;

	__asm__ volatile("inw %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static u32 config(u32 slot, u32 at)
{
	out32(0xCF8, 0x80000000u | slot << 11 | at);
	return in32(0xCFC);
}

/* First I/O port of the first virtio-net NIC; 0: none. */
static u16 find_nic(void)
{
	for (u32 slot = 0; slot < 32; slot++) {
		if (config(slot, 0) != VIRTIO_NET_LEGACY)
			continue;
		u32 command = config(slot, 4);

		out32(0xCFC, command | 5); /* I/O ports and bus mastering */
		return config(slot, 16) & ~3u;
	}
	return 0;
}

/* An IPv4 UDP frame from one side of the lab to the other. The far end does not look into it. */
static void write_frame(u32 len)
{
	static const u8 head[] = {
		0x52, 0x54, 0x00, 0x12, 0x00, 0x01, 0x52, 0x54, 0x00, 0x12, 0x00, 0x02, 0x08, 0x00, 0x45, 0, 0, 0, 0,
		0,    0,    0,	  64,	17,   0,    0,	  198,	18,   0,    2,	  198,	19,   0,    2,	  0, 9, 0, 9,
	};
	u8 *out = frame + HEADER;

	for (u32 i = 0; i < sizeof(head); i++)
		out[i] = head[i];
	out[16] = (len - 14) >> 8, out[17] = len - 14;
	out[38] = (len - 34) >> 8, out[39] = len - 34;
}

static u32 number(const char *text)
{
	u32 value = 0;

	while (*text && (*text < '0' || *text > '9' || text[-1] != ' ')) /* QEMU puts the file name first */
		text++;
	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (*text - '0');
	return value;
}

__attribute__((used, noreturn)) static void send_forever(const u32 *boot)
{
	u32 len = boot[0] & MULTIBOOT_CMDLINE ? number((const char *)boot[4]) : 0;
	u16 port = find_nic(), size;

	if (!port || len < 60 || len > 2048)
		for (;;)
			__asm__ volatile("hlt");
	write_frame(len);
	out8(port + STATUS, 0);
	out8(port + STATUS, 3); /* ACKNOWLEDGE and DRIVER */
	out32(port + GUEST_FEATURES, F_ANY_LAYOUT);
	out16(port + QUEUE_SELECT, TX);
	size = in16(port + QUEUE_SIZE);

	struct desc *desc = (void *)ring;
	struct avail *avail = (void *)(desc + size);
	volatile struct used *used = (void *)(((u32)(avail->ring + size + 1) + PAGE - 1) & -PAGE);

	for (u32 i = 0; i < size; i++) {
		desc[i] = (struct desc){ .address = (u32)frame, .len = HEADER + len };
		avail->ring[i] = i;
	}
	avail->flags = NO_INTERRUPT;
	out32(port + QUEUE_PAGE, (u32)ring / PAGE);
	out8(port + STATUS, 7);
	for (;;) {
		for (int i = 0; i < POLL_PAUSE; i++)
			__asm__ volatile("");
		*(volatile u16 *)&avail->idx = used->idx + size;
		__sync_synchronize();
		if (!(used->flags & NO_NOTIFY))
			out16(port + QUEUE_NOTIFY, TX);
	}
}

__attribute__((naked, used, noreturn)) void _start(void)
{
	__asm__ volatile("movl %0, %%esp\n\tpushl %%ebx\n\tcall send_forever" : : "i"(stack + sizeof(stack)));
}
