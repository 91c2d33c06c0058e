-- SPDX-License-Identifier: GPL-2.0-or-later
-- One reading of everything that a trial counts: the clock, the packet counters, and the CPU time of every thread.
--
-- A single run of sysctl(8) reads all of it in binary form. So there is next to nothing between the readings, and the
-- CPU times have microseconds, not the ticks of kern.cp_time: the scheduler adds to a thread's time whenever it takes
-- the CPU away from it. Only the running thread's time is behind, and that one is sysctl itself.

local Snapshots = {}
Snapshots.__index = Snapshots

-- Places in struct kinfo_proc of FreeBSD's 64-bit systems (sys/user.h), from 0.
local SIZE, PID, PPID, PGID, RUNTIME, CHILDTIME, FLAG = 0, 72, 76, 80, 328, 352, 368
-- The name of a thread has a second part, for what finds no room in the first.
local TDNAME, COMM, MORETDNAME, TID = 394, 447, 502, 600
local KINFO_BYTES = 1088
-- The clock is read once more behind the table.
local TICK_BYTES = 4
-- Flag of a process of the kernel (sys/proc.h).
local P_KPROC = 0x4

-- A reading that took longer than the quickest one by this factor was interrupted. Maximum number of attempts, and
-- readings that are taken first to know the quickest.
local INTERRUPTED, TRIES, CALIBRATIONS = 1.2, 8, 3

-- Sysctls of a queue of vtnet(4), by the name under which the host knows them.
local RECEIVED = { rx_packets = "ipackets", rx_bytes = "ibytes", rx_dropped = "iqdrops" }
local SENT = { tx_packets = "opackets" }

-- devices  names of the links
-- A snapshot cannot be taken of a device without counters: raises an error.
function Snapshots.new(system, devices)
  local self = setmetatable({ system = system, words = {}, counters = {}, quickest = math.huge }, Snapshots)
  local clock = system:output("/sbin/sysctl", "-n", "kern.timecounter.hardware"):match("%S+")
  local root = "kern.timecounter.tc." .. clock
  self.frequency = tonumber(system:output("/sbin/sysctl", "-n", root .. ".frequency"))
  self.mask = tonumber(system:output("/sbin/sysctl", "-n", root .. ".mask"))
  self.words[1] = root .. ".counter"
  for _, device in ipairs(devices or {}) do self:add(device) end
  self.words[#self.words + 1] = "kern.proc.all"
  self.words[#self.words + 1] = self.words[1]
  for _ = 1, CALIBRATIONS do self:take() end
  return self
end

function Snapshots:add(device)
  local unit = device:match("^vtnet(%d+)$")
  local names = unit and self.system:output("/sbin/sysctl", "-N", "dev.vtnet." .. unit) or ""
  local function counted(queue, wanted)
    for oid in names:gmatch("[^\n]+") do
      local name = oid:match("^dev%.vtnet%.%d+%." .. queue .. "%d+%.(%w+)$")
      for shown, sysctl in pairs(wanted) do
        if name == sysctl then
          self.words[#self.words + 1] = oid
          self.counters[#self.counters + 1] = device .. "." .. shown
        end
      end
    end
  end
  local before = #self.counters
  counted("rxq", RECEIVED)
  counted("txq", SENT)
  if #self.counters == before then error(device .. ": no such link, or its driver does not count packets", 0) end
end

-- Processes of kern.proc.all, by process id: name, parent, group, whether it is the kernel's, and microseconds of CPU
-- time, its own (ran) and that of its children that have ended (children). The table has a row for each thread;
-- `threads` has their times by name, `numbers` their numbers.
function Snapshots.processes(bytes, place)
  local found = {}
  local rows = (#bytes - TICK_BYTES - place + 1) / KINFO_BYTES
  if rows % 1 ~= 0 or rows < 1 or string.unpack("<i4", bytes, place + SIZE) ~= KINFO_BYTES then
    error("kern.proc.all has another form than FreeBSD 14 and 15 give it", 0)
  end
  for _ = 1, rows do
    local pid, ran = string.unpack("<i4", bytes, place + PID), string.unpack("<i8", bytes, place + RUNTIME)
    local process = found[pid]
    if not process then
      local seconds, microseconds = string.unpack("<i8i8", bytes, place + CHILDTIME)
      process = {
        name = string.unpack("z", bytes, place + COMM),
        parent = string.unpack("<i4", bytes, place + PPID),
        group = string.unpack("<i4", bytes, place + PGID),
        kernel = string.unpack("<i8", bytes, place + FLAG) & P_KPROC ~= 0,
        ran = 0,
        children = seconds * 1000000 + microseconds,
        threads = {},
        numbers = {},
      }
      found[pid] = process
    end
    process.ran = process.ran + ran
    local name = string.unpack("z", bytes, place + TDNAME) .. string.unpack("z", bytes, place + MORETDNAME)
    process.threads[name] = (process.threads[name] or 0) + ran
    process.numbers[name] = string.unpack("<i4", bytes, place + TID)
    place = place + KINFO_BYTES
  end
  return found
end

function Snapshots:read()
  local seconds = self.system:seconds()
  local bytes = self.system:output("/sbin/sysctl", "-b", table.unpack(self.words))
  local ticks, place = string.unpack("<I4", bytes)
  local counts = {}
  for _, name in ipairs(self.counters) do
    local value
    value, place = string.unpack("<I8", bytes, place)
    counts[name] = (counts[name] or 0) + value -- one for each queue
  end
  local processes = Snapshots.processes(bytes, place)
  local took = (string.unpack("<I4", bytes, #bytes - TICK_BYTES + 1) - ticks) & self.mask
  return { ticks = ticks, seconds = seconds, counts = counts, processes = processes }, took
end

-- {ticks, seconds, counts, processes}, with no packets handled between the counters and the times. `seconds` are whole
-- ones: they say how often the tick counter has wrapped.
function Snapshots:take()
  local best, least
  for _ = 1, TRIES do
    local found, took = self:read()
    if not least or took < least then best, least = found, took end
    if took <= self.quickest * INTERRUPTED then break end
  end
  self.quickest = math.min(self.quickest, least)
  return best
end

-- Nanoseconds between two snapshots. The clock's counter wraps after mask + 1 ticks, which takes seconds; the
-- whole seconds recorded with it are off by one at most.
function Snapshots:between(first, last)
  local around = self.mask + 1
  local ticks = (last.ticks - first.ticks) & self.mask
  local missing = (last.seconds - first.seconds) * self.frequency - ticks
  local rounds = math.max(0, math.floor(missing / around + 0.5))
  return math.floor((ticks + rounds * around) * 1e9 / self.frequency)
end

return Snapshots
