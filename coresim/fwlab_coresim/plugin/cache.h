/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A set-associative cache with LRU replacement: of lines, or of pages (then it is a TLB's array). It holds no data. */
#ifndef FWLAB_MODEL_CACHE_H
#define FWLAB_MODEL_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct cache {
	uint64_t sets; /* 0: there is no such cache, and nothing is ever found in it */
	uint64_t mask; /* sets - 1 if sets is a power of two, else 0 */
	unsigned ways;
	uint64_t *tags; /* sets x ways; within a set the most recently used comes first */
};

/* `blocks` lines or pages, `ways` to a set. Returns 0, or -1 if the shape is impossible or memory is short. */
int cache_make(struct cache *cache, uint64_t blocks, unsigned ways);
void cache_free(struct cache *cache);
void cache_clear(struct cache *cache);

/* The slow part of cache_use: any way but the first. */
bool cache_search(struct cache *cache, uint64_t *set, uint64_t tag);

/* Use a block: whether it was there. It is the most recently used one of its set afterwards. */
static inline bool cache_use(struct cache *cache, uint64_t block)
{
	uint64_t *set, tag = block + 1; /* 0 is an empty way */

	if (!cache->sets)
		return false;
	set = cache->tags + (cache->mask ? block & cache->mask : block % cache->sets) * cache->ways;
	return set[0] == tag || cache_search(cache, set, tag);
}

#endif
