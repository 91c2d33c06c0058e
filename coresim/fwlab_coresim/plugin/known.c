/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs with known answers, for a machine whose core is modelled: they mark what they do (decode.h).
 *     fwlab-known chase BYTES        load after load through a random ring of lines, after one round to warm up
 *     fwlab-known branch 0|1         a loop with a branch that alternates (0), or that goes by random bits (1)
 *     fwlab-known indirect TARGETS   a loop with an indirect call of TARGETS functions in turns
 * Prints how often it did it. Linked statically, without any library but C's. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define TURNS 200000
#define LARGE_PAGE (2ul << 20)

struct line {
	struct line *next;
	char rest[56];
};

static inline void begin(void)
{
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0x01, 0x46, 0x57, 0x4d" ::: "memory");
}

static inline void end(void)
{
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0x02, 0x46, 0x57, 0x4d" ::: "memory");
}

/* The same numbers everywhere. */
static uint64_t drawn(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static int chase(uint64_t bytes)
{
	uint64_t lines = bytes / sizeof(struct line), loads = lines < TURNS ? TURNS - TURNS % lines : 2 * lines;
	uint64_t room = (bytes + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
	/* Large pages, which are whole in physical memory: others would leave the sets of L2 and LLC to chance. */
	struct line *ring = mmap(NULL, room, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0);
	uint32_t *order = malloc(lines * sizeof(*order));
	struct line *at;

	if (ring == MAP_FAILED || !order || lines < 2)
		return 1;
	for (uint64_t i = 0; i < lines; i++)
		order[i] = i;
	for (uint64_t i = lines - 1; i > 0; i--) {
		uint64_t other = drawn() % i;
		uint32_t kept = order[i];

		order[i] = order[other];
		order[other] = kept;
	}
	for (uint64_t i = 0; i < lines; i++)
		ring[order[i]].next = &ring[order[(i + 1) % lines]];
	at = ring;
	for (uint64_t i = 0; i < lines; i++)
		at = at->next;
	__asm__ volatile("" : "+r"(at));
	begin();
	for (uint64_t i = 0; i < loads; i++) {
		at = at->next;
		__asm__ volatile("" : "+r"(at));
	}
	end();
	printf("%lu\n", (unsigned long)loads);
	return 0;
}

static int branch(int by_chance)
{
	static uint8_t bits[TURNS];
	uint64_t sum = 0;

	for (uint64_t i = 0; i < TURNS; i++)
		bits[i] = by_chance ? drawn() >> 40 & 1 : i & 1;
	begin();
	for (uint64_t i = 0; i < TURNS; i++) {
		/* In assembler, so that it stays a branch. */
		__asm__ volatile("testb $1, %1\n\tjz 1f\n\tincq %0\n1:" : "+r"(sum) : "r"(bits[i]) : "cc");
	}
	end();
	printf("%d\n", TURNS);
	return sum == 0;
}

#define FUNCTION(n)                                                                                                    \
	static __attribute__((noinline, aligned(64))) void function_##n(uint64_t *sum)                                 \
	{                                                                                                              \
		*sum += n;                                                                                             \
	}
#define EIGHT(_, a) _(a##0) _(a##1) _(a##2) _(a##3) _(a##4) _(a##5) _(a##6) _(a##7)
#define ALL(_) EIGHT(_, 1) EIGHT(_, 2) EIGHT(_, 3) EIGHT(_, 4) EIGHT(_, 5) EIGHT(_, 6) EIGHT(_, 7) EIGHT(_, 8)
#define NAME(n) function_##n,

ALL(FUNCTION)

static int indirect(unsigned targets)
{
	static void (*const all[])(uint64_t *) = { ALL(NAME) };
	uint64_t sum = 0;

	if (!targets || targets > sizeof(all) / sizeof(*all))
		return 1;
	begin();
	for (uint64_t i = 0; i < TURNS; i++) {
		void (*function)(uint64_t *) = all[i & (targets - 1)];

		__asm__ volatile("" : "+r"(function));
		function(&sum);
	}
	end();
	printf("%d\n", TURNS);
	return sum == 0;
}

int main(int argc, char **argv)
{
	uint64_t number = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;

	if (argc == 3 && !strcmp(argv[1], "chase"))
		return chase(number);
	if (argc == 3 && !strcmp(argv[1], "branch"))
		return branch(number);
	if (argc == 3 && !strcmp(argv[1], "indirect"))
		return indirect(number);
	fprintf(stderr, "usage: %s chase BYTES | branch 0|1 | indirect TARGETS\n", argv[0]);
	return 2;
}
