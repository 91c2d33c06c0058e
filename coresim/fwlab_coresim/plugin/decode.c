/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "decode.h"

#include <string.h>

static bool legacy_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65: /* segments, branch hints */
	case 0x66:
	case 0x67: /* sizes */
	case 0xf0:
	case 0xf2:
	case 0xf3: /* lock, repeat */ return true;
	}
	return false;
}

/* The signed displacement in the last `size` bytes of a direct branch. */
static uint64_t displaced(const uint8_t *bytes, size_t length, size_t size, uint64_t address)
{
	int8_t one;
	int32_t four;

	if (size == 1) {
		memcpy(&one, bytes + length - 1, 1);
		return address + length + (int64_t)one;
	}
	memcpy(&four, bytes + length - 4, 4);
	return address + length + (int64_t)four;
}

static void two_byte(struct decoded *found, const uint8_t *bytes, size_t length, size_t at, uint64_t address)
{
	static const uint8_t mark[4] = { 0x0f, 0x1f, 0x84, 0x00 };
	uint32_t value;

	if (at + 1 >= length)
		return;
	if ((bytes[at + 1] & 0xf0) == 0x80 && length - at >= 6) {
		found->ending = END_CONDITIONAL;
		found->target = displaced(bytes, length, 4, address);
	}
	if (at == 0 && length == 8 && !memcmp(bytes, mark, sizeof(mark))) {
		memcpy(&value, bytes + 4, 4);
		if (value == MARK_BEGIN || value == MARK_END)
			found->mark = value;
	}
}

struct decoded decode(const uint8_t *bytes, size_t length, uint64_t address)
{
	struct decoded found = { .ending = END_OTHER };
	size_t at = 0;
	bool rex = false;

	while (at < length && legacy_prefix(bytes[at]))
		found.locked |= bytes[at++] == 0xf0;
	if (at < length && (bytes[at] & 0xf0) == 0x40) {
		rex = true;
		at++;
	}
	if (at >= length)
		return found;

	uint8_t opcode = bytes[at], modrm = at + 1 < length ? bytes[at + 1] : 0;

	if (opcode == 0x0f) {
		two_byte(&found, bytes, length, at, address);
	} else if ((opcode & 0xf0) == 0x70 || (opcode >= 0xe0 && opcode <= 0xe3)) { /* jcc, loop, jrcxz */
		found.ending = END_CONDITIONAL;
		found.target = displaced(bytes, length, 1, address);
	} else if (opcode == 0xeb || opcode == 0xe9) {
		found.ending = END_JUMP;
		found.target = displaced(bytes, length, opcode == 0xeb ? 1 : 4, address);
	} else if (opcode == 0xe8) {
		found.ending = END_CALL;
		found.target = displaced(bytes, length, 4, address);
	} else if (opcode == 0xc3 || opcode == 0xc2) {
		found.ending = END_RETURN;
	} else if (opcode == 0xff && (modrm >> 3 & 7) == 2) {
		found.ending = END_INDIRECT_CALL;
	} else if (opcode == 0xff && (modrm >> 3 & 7) == 4) {
		found.ending = END_INDIRECT_JUMP;
	} else if ((opcode == 0x86 || opcode == 0x87) && modrm >> 6 != 3) {
		found.locked = true; /* xchg with memory is locked without a prefix */
	} else if (opcode == 0x89 && rex && (modrm & 0xc7) == 0x04 && at + 2 < length && bytes[at + 2] == 0x24) {
		found.writes_top = true;
	}
	return found;
}
