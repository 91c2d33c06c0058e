/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Translation lookaside buffers: a first level for each of instructions and data, and a second level. */
#ifndef FWLAB_MODEL_TLB_H
#define FWLAB_MODEL_TLB_H

#include "cache.h"

#define SMALL_PAGE 12 /* log2 of 4 KiB */
#define LARGE_PAGE 21 /* log2 of 2 MiB */

struct tlb {
	struct cache small, large; /* first level, for each size of page */
	struct cache *second;	   /* second level; may be shared with the other TLB */
	bool second_has_large;	   /* whether the second level also holds large pages */
};

enum tlb_found { TLB_FIRST, TLB_SECOND, TLB_WALK };

/* log2 of the page size that Linux on x86-64 uses at this address: QEMU's plugin API does not tell. The kernel maps all
 * memory (the direct map), what it keeps of each page (the memory map) and its own text by large pages, everything else
 * by small ones. The addresses are those of the kernel's documentation (x86_64/mm.rst) for four-level tables, without
 * randomization (nokaslr). */
static inline unsigned page_shift(uint64_t address)
{
	bool direct_map = address >= 0xffff888000000000 && address < 0xffffc88000000000;
	bool memory_map = address >= 0xffffea0000000000 && address < 0xffffeb0000000000;
	bool text = address >= 0xffffffff80000000 && address < 0xffffffffc0000000;

	return direct_map || memory_map || text ? LARGE_PAGE : SMALL_PAGE;
}

/* Use the page of an address: where its translation was found. */
enum tlb_found tlb_use(struct tlb *tlb, uint64_t address);

#endif
