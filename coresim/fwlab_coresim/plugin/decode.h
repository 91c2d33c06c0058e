/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the model needs to know of an x86-64 instruction, from its bytes. QEMU has decoded it already: it gives whole
 * instructions and their lengths. */
#ifndef FWLAB_MODEL_DECODE_H
#define FWLAB_MODEL_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core.h"

/* A mark: a NOP of eight bytes whose displacement names what it marks. Every CPU executes it as a NOP.
 *     nopl MARK(%rax,%rax,1) */
#define MARK_BEGIN 0x4d574601 /* "FWM", 1: a window begins */
#define MARK_END 0x4d574602   /* it ends */

struct decoded {
	enum ending ending;
	uint64_t target; /* of a direct branch */
	bool locked;
	bool writes_top; /* mov %reg,(%rsp): before a return, it makes a retpoline */
	uint32_t mark;	 /* MARK_BEGIN, MARK_END, or 0 */
};

struct decoded decode(const uint8_t *bytes, size_t length, uint64_t address);

#endif
