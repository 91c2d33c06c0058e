/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

int cache_make(struct cache *cache, uint64_t blocks, unsigned ways)
{
	memset(cache, 0, sizeof(*cache));
	if (!blocks)
		return 0;
	if (!ways || blocks % ways)
		return -1;
	cache->sets = blocks / ways;
	cache->mask = cache->sets & (cache->sets - 1) ? 0 : cache->sets - 1;
	cache->ways = ways;
	cache->tags = calloc(blocks, sizeof(*cache->tags));
	return cache->tags ? 0 : -1;
}

void cache_free(struct cache *cache)
{
	free(cache->tags);
	memset(cache, 0, sizeof(*cache));
}

void cache_clear(struct cache *cache)
{
	if (cache->sets)
		memset(cache->tags, 0, cache->sets * cache->ways * sizeof(*cache->tags));
}

bool cache_search(struct cache *cache, uint64_t *set, uint64_t tag)
{
	unsigned way = 0;

	while (way < cache->ways - 1 && set[way] != tag)
		way++;
	/* Found, or else the last way, which is the least recently used one: it makes room. */
	bool found = set[way] == tag;
	memmove(set + 1, set, way * sizeof(*set));
	set[0] = tag;
	return found;
}
