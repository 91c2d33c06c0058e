/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reference core: counts what a stream of instructions misses, and the cycles that it waits for that.
 *
 * The cycles of a window are instructions / width + waits. An access that the first level holds waits for nothing. Any
 * other load or fetch waits for the latency of the level that holds the line, less that of the first level. A store
 * waits for nothing: it leaves the core through a buffer. */
#ifndef FWLAB_MODEL_CORE_H
#define FWLAB_MODEL_CORE_H

#include "cache.h"
#include "predictor.h"
#include "tlb.h"

#define LINE 6 /* log2 of 64 bytes */

/* Everything that is counted, in this order in the file of counters (marks.h). The first six are also
 * counted by place (places.h). */
#define COUNTERS(_)                                                                                                    \
	_(instructions)                                                                                                \
	_(fetch_wait)                                                                                                  \
	_(load_wait)                                                                                                   \
	_(tlb_wait)                                                                                                    \
	_(branch_wait)                                                                                                 \
	_(locked_wait)                                                                                                 \
	_(loads)                                                                                                       \
	_(stores)                                                                                                      \
	_(l1i_misses)                                                                                                  \
	_(l1d_misses)                                                                                                  \
	_(l2_misses)                                                                                                   \
	_(llc_misses)                                                                                                  \
	_(itlb_misses)                                                                                                 \
	_(dtlb_misses)                                                                                                 \
	_(walks)                                                                                                       \
	_(conditional)                                                                                                 \
	_(indirect)                                                                                                    \
	_(returns)                                                                                                     \
	_(retpolines)                                                                                                  \
	_(locked)                                                                                                      \
	_(direction_misses)                                                                                            \
	_(target_misses)                                                                                               \
	_(return_misses)

struct counters {
#define MEMBER(name) uint64_t name;
	COUNTERS(MEMBER)
#undef MEMBER
};

/* How a block of instructions ends. */
enum ending {
	END_OTHER, /* no branch, or a far one, which no core predicts */
	END_CONDITIONAL,
	END_JUMP, /* direct: always predicted */
	END_CALL, /* the same */
	END_INDIRECT_JUMP,
	END_INDIRECT_CALL,
	END_RETURN,
	END_RETPOLINE, /* a return to an address that the block has just written over the stack's top */
};

struct parameters {
	uint64_t l1i_size, l1d_size, l2_size, llc_size; /* bytes; no LLC: 0 */
	unsigned l1i_ways, l1d_ways, l2_ways, llc_ways;
	unsigned l1_latency, l2_latency, llc_latency, memory_latency;	   /* cycles, load to use */
	unsigned itlb_small, itlb_small_ways, itlb_large, itlb_large_ways; /* pages */
	unsigned dtlb_small, dtlb_small_ways, dtlb_large, dtlb_large_ways;
	unsigned stlb, stlb_ways, stlb_latency; /* pages, cycles more than for the first level */
	bool stlb_split;			/* one for instructions and one for data */
	bool stlb_large;			/* holds large pages, too */
	uint64_t counters;			/* two-bit counters for directions */
	unsigned outcomes;			/* outcomes that choose the counter */
	uint64_t targets;			/* entries for indirect targets */
	unsigned target_history;		/* targets that choose the entry */
	unsigned returns;			/* entries of the return stack */
	unsigned mispredicted;			/* cycles */
	bool retpolines_predicted; /* the core needs no retpolines: price them as the indirect branches they stand for
				    */
	unsigned locked;	   /* cycles of an instruction with a lock prefix */
};

struct core {
	struct parameters parameters;
	struct counters *count; /* may lie in a mapped file */
	struct cache l1i, l1d, l2, llc, stlb[2];
	struct tlb itlb, dtlb;
	struct predictor predictor;
};

/* Returns 0, or -1 if a parameter is impossible or memory is short. */
int core_make(struct core *core, const struct parameters *parameters, struct counters *count);
void core_free(struct core *core);

/* A load, a store or a fetch by virtual address. Returns whether the first level misses: then its other half follows,
 * by physical address, unless the memory is a device's. */
bool core_load(struct core *core, uint64_t address);
bool core_store(struct core *core, uint64_t address);
bool core_fetch(struct core *core, uint64_t address);
void core_load_below(struct core *core, uint64_t physical);
void core_store_below(struct core *core, uint64_t physical);
void core_fetch_below(struct core *core, uint64_t physical);

/* A block of instructions runs, of which `locked` have a lock prefix. */
static inline void core_block(struct core *core, unsigned instructions, unsigned locked)
{
	core->count->instructions += instructions;
	core->count->locked += locked;
	core->count->locked_wait += (uint64_t)locked * core->parameters.locked;
}

/* A block ended at `branch` (address of its last instruction), and execution went on at `next`. `after` is the address
 * behind the block, `target` that of a direct branch. */
void core_ended(struct core *core, enum ending ending, uint64_t branch, uint64_t after, uint64_t target, uint64_t next);

#endif
