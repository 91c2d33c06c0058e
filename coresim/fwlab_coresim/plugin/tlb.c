/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tlb.h"

enum tlb_found tlb_use(struct tlb *tlb, uint64_t address)
{
	unsigned shift = page_shift(address);
	uint64_t page = address >> shift;
	bool large = shift == LARGE_PAGE;

	if (cache_use(large ? &tlb->large : &tlb->small, page))
		return TLB_FIRST;
	if (large && !tlb->second_has_large)
		return TLB_WALK;
	/* Pages of both sizes share the second level's sets, and must not be taken for each other. */
	return cache_use(tlb->second, large ? page | 1ull << 63 : page) ? TLB_SECOND : TLB_WALK;
}
