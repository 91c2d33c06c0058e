/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Branch prediction: directions, targets of indirect branches, returns. */
#ifndef FWLAB_MODEL_PREDICTOR_H
#define FWLAB_MODEL_PREDICTOR_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_RETURNS 64

/* Directions: two-bit counters, chosen by the branch's address and the last outcomes of all conditional branches
 * (gshare). Indirect targets: a table of the last target, chosen by the branch's address and, if target_history is not
 * 0, by the targets before. Returns: a stack that overwrites its oldest entry when it is full. */
struct predictor {
	uint8_t *counters;
	uint64_t counters_mask;
	uint64_t outcomes, outcomes_mask;

	struct target {
		uint64_t branch, target;
	} *targets;
	uint64_t targets_mask;
	unsigned target_history; /* targets that choose the entry: 0, or up to 8 */
	uint64_t path;

	uint64_t returns[MAX_RETURNS];
	unsigned returns_size, returns_top, returns_held;
};

/* Tables of a power of two. Returns 0, or -1 if a size is impossible or memory is short. */
int predictor_make(struct predictor *predictor, uint64_t counters, unsigned outcomes, uint64_t targets,
		   unsigned target_history, unsigned returns);
void predictor_free(struct predictor *predictor);

/* Each says whether the prediction was right, and learns. */
bool predict_direction(struct predictor *predictor, uint64_t branch, bool taken);
bool predict_target(struct predictor *predictor, uint64_t branch, uint64_t target);
bool predict_return(struct predictor *predictor, uint64_t target);

void push_return(struct predictor *predictor, uint64_t address);
/* The newest return address, which stays; 0 if there is none. */
uint64_t top_return(const struct predictor *predictor);

#endif
