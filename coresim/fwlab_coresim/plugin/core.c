/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core.h"

#include <string.h>

/* Page tables lie nowhere else: their entries need lines of their own in the caches. */
#define PAGE_TABLES (1ull << 61)

int core_make(struct core *core, const struct parameters *p, struct counters *count)
{
	bool bad = false;

	memset(core, 0, sizeof(*core));
	core->parameters = *p;
	core->count = count;
	bad |= !p->l1i_size || !p->l1d_size || !p->l2_size;
	bad |= (p->l1i_size | p->l1d_size | p->l2_size | p->llc_size) & ((1 << LINE) - 1);
	bad |= p->l1_latency > p->l2_latency || p->l2_latency > p->memory_latency;
	bad |= p->llc_size && (p->l2_latency > p->llc_latency || p->llc_latency > p->memory_latency);
	bad |= cache_make(&core->l1i, p->l1i_size >> LINE, p->l1i_ways) < 0;
	bad |= cache_make(&core->l1d, p->l1d_size >> LINE, p->l1d_ways) < 0;
	bad |= cache_make(&core->l2, p->l2_size >> LINE, p->l2_ways) < 0;
	bad |= cache_make(&core->llc, p->llc_size >> LINE, p->llc_ways) < 0;
	bad |= cache_make(&core->itlb.small, p->itlb_small, p->itlb_small_ways) < 0;
	bad |= cache_make(&core->itlb.large, p->itlb_large, p->itlb_large_ways) < 0;
	bad |= cache_make(&core->dtlb.small, p->dtlb_small, p->dtlb_small_ways) < 0;
	bad |= cache_make(&core->dtlb.large, p->dtlb_large, p->dtlb_large_ways) < 0;
	bad |= cache_make(&core->stlb[0], p->stlb, p->stlb_ways) < 0;
	bad |= p->stlb_split && cache_make(&core->stlb[1], p->stlb, p->stlb_ways) < 0;
	core->dtlb.second = &core->stlb[0];
	core->itlb.second = &core->stlb[p->stlb_split];
	core->itlb.second_has_large = core->dtlb.second_has_large = p->stlb_large;
	bad |= predictor_make(&core->predictor, p->counters, p->outcomes, p->targets, p->target_history, p->returns) <
	       0;
	if (bad)
		core_free(core);
	return bad ? -1 : 0;
}

void core_free(struct core *core)
{
	struct cache *all[] = { &core->l1i,	   &core->l1d,	      &core->l2,	 &core->llc,
				&core->itlb.small, &core->itlb.large, &core->dtlb.small, &core->dtlb.large,
				&core->stlb[0],	   &core->stlb[1] };

	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
		cache_free(all[i]);
	predictor_free(&core->predictor);
}

/* A line is wanted that the first level lacks. Returns the cycles to wait. */
static unsigned below(struct core *core, uint64_t physical)
{
	const struct parameters *p = &core->parameters;
	uint64_t line = physical >> LINE;

	if (cache_use(&core->l2, line))
		return p->l2_latency - p->l1_latency;
	core->count->l2_misses++;
	if (cache_use(&core->llc, line))
		return p->llc_latency - p->l1_latency;
	core->count->llc_misses++;
	return p->memory_latency - p->l1_latency;
}

/* The translation of an address: counts misses, and returns the cycles that a load or fetch waits for it. */
static unsigned translate(struct core *core, struct tlb *tlb, uint64_t *misses, uint64_t address)
{
	enum tlb_found found = tlb_use(tlb, address);

	if (found == TLB_FIRST)
		return 0;
	++*misses;
	if (found == TLB_SECOND)
		return core->parameters.stlb_latency;
	/* A walk loads the last entry of the page tables, of which a line holds eight. It comes through the caches from
	 * the second level on; the entries above it are in the core's own caches of them. */
	core->count->walks++;
	return core->parameters.stlb_latency + core->parameters.l1_latency +
	       below(core, PAGE_TABLES | (address >> page_shift(address)) << 3);
}

bool core_load(struct core *core, uint64_t address)
{
	core->count->loads++;
	core->count->tlb_wait += translate(core, &core->dtlb, &core->count->dtlb_misses, address);
	return !cache_use(&core->l1d, address >> LINE);
}

bool core_store(struct core *core, uint64_t address)
{
	core->count->stores++;
	translate(core, &core->dtlb, &core->count->dtlb_misses, address);
	return !cache_use(&core->l1d, address >> LINE);
}

bool core_fetch(struct core *core, uint64_t address)
{
	core->count->tlb_wait += translate(core, &core->itlb, &core->count->itlb_misses, address);
	return !cache_use(&core->l1i, address >> LINE);
}

void core_load_below(struct core *core, uint64_t physical)
{
	core->count->l1d_misses++;
	core->count->load_wait += below(core, physical);
}

void core_store_below(struct core *core, uint64_t physical)
{
	core->count->l1d_misses++;
	below(core, physical);
}

void core_fetch_below(struct core *core, uint64_t physical)
{
	core->count->l1i_misses++;
	core->count->fetch_wait += below(core, physical);
}

static void resolved(struct core *core, uint64_t *misses, bool right)
{
	if (right)
		return;
	++*misses;
	core->count->branch_wait += core->parameters.mispredicted;
}

void core_ended(struct core *core, enum ending ending, uint64_t branch, uint64_t after, uint64_t target, uint64_t next)
{
	struct predictor *predictor = &core->predictor;
	struct counters *count = core->count;

	switch (ending) {
	case END_CONDITIONAL:
		/* Anywhere else an interrupt came first: how the branch would have gone is not known. */
		if (next != after && next != target)
			break;
		count->conditional++;
		resolved(core, &count->direction_misses, predict_direction(predictor, branch, next != after));
		break;
	case END_INDIRECT_CALL:
	case END_INDIRECT_JUMP:
		count->indirect++;
		resolved(core, &count->target_misses, predict_target(predictor, branch, next));
		if (ending == END_INDIRECT_CALL)
			push_return(predictor, after);
		break;
	case END_CALL: push_return(predictor, after); break;
	case END_RETURN:
		count->returns++;
		resolved(core, &count->return_misses, predict_return(predictor, next));
		break;
	case END_RETPOLINE:
		count->retpolines++;
		bool right = predict_return(predictor, next);

		/* What remains on the stack is where the function returns to that the retpoline calls: it names the
		 * place of the call, whereas the retpoline itself is shared by all of them. */
		if (core->parameters.retpolines_predicted)
			right = predict_target(predictor, top_return(predictor), next);
		resolved(core, &count->target_misses, right);
		break;
	case END_JUMP:
	case END_OTHER: break;
	}
}
