/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "predictor.h"

#include <stdlib.h>
#include <string.h>

/* Of each target so many bits enter the path. */
#define PATH_BITS 8

static bool power_of_two(uint64_t number)
{
	return number && !(number & (number - 1));
}

int predictor_make(struct predictor *predictor, uint64_t counters, unsigned outcomes, uint64_t targets,
		   unsigned target_history, unsigned returns)
{
	memset(predictor, 0, sizeof(*predictor));
	if (!power_of_two(counters) || !power_of_two(targets) || outcomes > 63 || target_history > 64 / PATH_BITS ||
	    !returns || returns > MAX_RETURNS)
		return -1;
	predictor->counters = malloc(counters);
	predictor->targets = calloc(targets, sizeof(*predictor->targets));
	if (!predictor->counters || !predictor->targets)
		return -1;
	memset(predictor->counters, 1, counters); /* weakly not taken */
	predictor->counters_mask = counters - 1;
	predictor->outcomes_mask = (1ull << outcomes) - 1;
	predictor->targets_mask = targets - 1;
	predictor->target_history = target_history;
	predictor->returns_size = returns;
	return 0;
}

void predictor_free(struct predictor *predictor)
{
	free(predictor->counters);
	free(predictor->targets);
	memset(predictor, 0, sizeof(*predictor));
}

bool predict_direction(struct predictor *predictor, uint64_t branch, bool taken)
{
	uint8_t *counter = predictor->counters + ((branch ^ predictor->outcomes) & predictor->counters_mask);
	bool right = (*counter >= 2) == taken;

	if (taken && *counter < 3)
		++*counter;
	if (!taken && *counter > 0)
		--*counter;
	predictor->outcomes = (predictor->outcomes << 1 | taken) & predictor->outcomes_mask;
	return right;
}

bool predict_target(struct predictor *predictor, uint64_t branch, uint64_t target)
{
	/* Multiplied, not folded: of targets that take turns, the halves of the path would cancel each other. */
	uint64_t path = predictor->path * 0x9e3779b97f4a7c15 >> 40;
	struct target *entry = predictor->targets + ((branch ^ path) & predictor->targets_mask);
	bool right = entry->branch == branch && entry->target == target;

	*entry = (struct target){ .branch = branch, .target = target };
	if (predictor->target_history) {
		unsigned kept = predictor->target_history * PATH_BITS;
		uint64_t mixed = (target ^ target >> 4 ^ target >> 12) & ((1 << PATH_BITS) - 1);

		predictor->path = predictor->path << PATH_BITS | mixed;
		if (kept < 64)
			predictor->path &= (1ull << kept) - 1;
	}
	return right;
}

void push_return(struct predictor *predictor, uint64_t address)
{
	predictor->returns_top = (predictor->returns_top + 1) % predictor->returns_size;
	predictor->returns[predictor->returns_top] = address;
	if (predictor->returns_held < predictor->returns_size)
		predictor->returns_held++;
}

uint64_t top_return(const struct predictor *predictor)
{
	return predictor->returns_held ? predictor->returns[predictor->returns_top] : 0;
}

bool predict_return(struct predictor *predictor, uint64_t target)
{
	bool right = predictor->returns_held && top_return(predictor) == target;

	if (predictor->returns_held) {
		predictor->returns_top =
			(predictor->returns_top + predictor->returns_size - 1) % predictor->returns_size;
		predictor->returns_held--;
	}
	return right;
}
