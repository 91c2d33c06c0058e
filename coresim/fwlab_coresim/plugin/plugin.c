/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The model as a plugin of QEMU's translator:
 *     -plugin fwlab-model.so,counters=FILE,places=FILE,l1i=32768:8,...
 *
 * QEMU translates the guest's code in blocks. The plugin learns of each block when it is translated, and is called when
 * it runs and when one of its instructions accesses memory. How a block's branch went shows when the next block begins.
 *
 * Caches of the first level go by virtual address, as QEMU gives it. Below them all goes by guest-physical address. For
 * data QEMU is asked for it then. Of code QEMU tells where it lies in its own memory; the guest's memory is one mapping
 * there, which begins at the physical address 0 (of a guest with less than 3 GiB).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "decode.h"
#include "marks.h"
#include "places.h"
#include "qemu_plugin_api.h"
#include "settings.h"

/* Code that lies elsewhere, such as the firmware's: by virtual address, apart from all memory. */
#define ELSEWHERE (1ull << 62)
#define SMALLEST_MEMORY (64ull << 20)
#define PAGE_MASK ((1ull << SMALL_PAGE) - 1)
#define LINE_MASK ((1ull << LINE) - 1)
/* A block is short: QEMU ends it at a branch, and at the end of the second page at the latest. */
#define MAX_LINES (2 << (SMALL_PAGE - LINE))

EXPORTED int qemu_plugin_version = API_VERSION;

struct line {
	uint64_t address, physical;
};

struct block {
	struct block *older; /* all blocks, so that they can be freed */
	uint64_t start, after, branch, target;
	enum ending ending;
	unsigned instructions, locked, lines;
	struct place *place;
	struct line line[];
};

static struct core core;
static struct marks *marks;
static struct account account;

/* The guest's memory in QEMU's; empty until the first block of code shows where it is. */
static uint64_t memory_start, memory_end;
static struct block *blocks;

/* How the last block ended. A copy: the block itself may be freed before the next one runs. */
static struct {
	enum ending ending;
	uint64_t branch, after, target;
} last;

static void ran(unsigned int vcpu, void *data)
{
	const struct block *block = data;

	(void)vcpu;
	if (last.ending != END_OTHER)
		core_ended(&core, last.ending, last.branch, last.after, last.target, block->start);
	if (account.places) {
		account_settle(&account, &marks->now);
		account.place = block->place;
	}
	core_block(&core, block->instructions, block->locked);
	for (unsigned i = 0; i < block->lines; i++) {
		if (core_fetch(&core, block->line[i].address))
			core_fetch_below(&core, block->line[i].physical);
	}
	last.ending = block->ending;
	last.branch = block->branch;
	last.after = block->after;
	last.target = block->target;
}

/* A miss of the first level goes on by the physical address; a device's memory is not cached. */
static bool physical_of(qemu_plugin_meminfo_t info, uint64_t address, uint64_t *physical)
{
	struct qemu_plugin_hwaddr *found = qemu_plugin_get_hwaddr(info, address);

	if (!found || qemu_plugin_hwaddr_is_io(found))
		return false;
	*physical = qemu_plugin_hwaddr_phys_addr(found);
	return true;
}

static void accessed(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	bool store = qemu_plugin_mem_is_store(info);
	uint64_t physical;

	(void)vcpu;
	(void)data;
	if (!(store ? core_store(&core, address) : core_load(&core, address)) || !physical_of(info, address, &physical))
		return;
	if (store)
		core_store_below(&core, physical);
	else
		core_load_below(&core, physical);
}

static void marked(unsigned int vcpu, void *data)
{
	(void)vcpu;
	marks_add(marks, (uint32_t)(uintptr_t)data);
	account_window(&account, &marks->now, (uintptr_t)data == MARK_BEGIN);
}

/* Find the mapping that this address lies in. QEMU aligns the guest's memory for large pages; any other mapping is not
 * it. */
static void find_memory(uint64_t host)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t start, end;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && host >= start && host < end &&
		    !(start & ((1ull << LARGE_PAGE) - 1)) && end - start >= SMALLEST_MEMORY) {
			memory_start = start;
			memory_end = end;
		}
	}
	if (maps)
		fclose(maps);
}

static uint64_t physical_code(uint64_t host, uint64_t address)
{
	static bool searched;

	if (host && !searched)
		find_memory(host);
	searched |= host != 0;
	return host >= memory_start && host < memory_end ? host - memory_start : ELSEWHERE | address;
}

/* Note the lines of an instruction behind those of the block so far. */
static unsigned add_lines(struct line *lines, unsigned count, struct qemu_plugin_insn *insn)
{
	uint64_t first = qemu_plugin_insn_vaddr(insn), end = first + qemu_plugin_insn_size(insn);
	uint64_t host = (uintptr_t)qemu_plugin_insn_haddr(insn);

	for (uint64_t at = first & ~LINE_MASK; at < end && count < MAX_LINES; at += 1 << LINE) {
		if (count && lines[count - 1].address == at)
			continue;
		/* Of an instruction that crosses into another page only the first page's place is known. */
		bool known = host && !((at ^ first) & ~PAGE_MASK);

		lines[count++] = (struct line){ at, physical_code(known ? host + at - first : 0, at) };
	}
	return count;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb);
	struct line lines[MAX_LINES];
	struct block draft = { .instructions = count }, *block;
	bool writes_top = false;

	(void)id;
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);
		size_t size = qemu_plugin_insn_size(insn);
		struct decoded found = decode(qemu_plugin_insn_data(insn), size, address);

		if (!i)
			draft.start = address;
		draft.branch = address;
		draft.after = address + size;
		draft.target = found.target;
		draft.ending = found.ending == END_RETURN && writes_top ? END_RETPOLINE : found.ending;
		draft.locked += found.locked;
		draft.lines = add_lines(lines, draft.lines, insn);
		writes_top = found.writes_top;
		/* One callback for both: QEMU 7.2 calls one for loads alone at stores, and one for stores alone at
		 * both. */
		qemu_plugin_register_vcpu_mem_cb(insn, accessed, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
		if (found.mark)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, marked, QEMU_PLUGIN_CB_NO_REGS,
							       (void *)(uintptr_t)found.mark);
	}
	block = malloc(sizeof(*block) + draft.lines * sizeof(*lines));
	if (!block)
		abort(); /* counters that miss a block would be wrong and not look it */
	*block = draft;
	memcpy(block->line, lines, draft.lines * sizeof(*lines));
	block->place = account.places ? places_find(account.places, block->start) : NULL;
	block->older = blocks;
	blocks = block;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, ran, QEMU_PLUGIN_CB_NO_REGS, block);
}

/* QEMU has thrown all translations away, and translates again what it needs. */
static void flushed(qemu_plugin_id_t id)
{
	(void)id;
	while (blocks) {
		struct block *older = blocks->older;

		free(blocks);
		blocks = older;
	}
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv);

/* Without counters or with a wrong parameter QEMU does not start, and prints no reason but that. */
EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	struct parameters parameters = { 0 };
	const char *path = NULL, *places = NULL;

	if (strcmp(info->target_name, "x86_64") || !info->system_emulation || info->system.smp_vcpus != 1)
		return -1;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "counters=", 9))
			path = argv[i] + 9;
		else if (!strncmp(argv[i], "places=", 7))
			places = argv[i] + 7;
		else if (settings_word(&parameters, argv[i]) < 0)
			return -1;
	}
	marks = path ? marks_open(path) : NULL;
	if (!marks || core_make(&core, &parameters, &marks->now) < 0)
		return -1;
	account.places = places ? places_open(places) : NULL;
	if (places && !account.places)
		return -1;
	if (account.places)
		account.place = account.places->place;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_flush_cb(id, flushed);
	return 0;
}
