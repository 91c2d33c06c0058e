-- SPDX-License-Identifier: GPL-2.0-or-later
-- Who used the CPU between two snapshots: packets, nobody, this agent, or something else.

local cpu_time = {}

-- The processes whose threads handle packets: the taskqueues of network drivers are threads of "kernel", interrupt
-- threads belong to "intr". Both have other threads too, which run for a few microseconds in a second.
local SERVING = { kernel = true, intr = true }

-- Whether this process is the agent, or a tool that it has started.
local function of_agent(processes, pid, agent)
  while pid and pid > 1 do
    if pid == agent then return true end
    pid = processes[pid] and processes[pid].parent
  end
  return false
end

-- Nanoseconds between two snapshots:
--   served    handling packets
--   idle      of the idle process
--   other     of programs and of other kernel processes, without the agent
--   programs  of these, of programs
--   by_name   {name of a program or [name] of a kernel process: its share of `other`}
-- The agent's own time is left out: it is no part of the trial. Its tools end in between, and how long they ran is
-- known in ticks only.
function cpu_time.between(first, last, agent)
  local found = { served = 0, idle = 0, other = 0, programs = 0, by_name = {} }
  for pid, now in pairs(last.processes) do
    local before = first.processes[pid]
    if before and before.name ~= now.name then before = nil end
    local ran = (now.ran - (before and before.ran or 0)) * 1000
    if now.kernel and now.name == "idle" then
      found.idle = found.idle + ran
    elseif now.kernel and SERVING[now.name] then
      found.served = found.served + ran
    elseif not of_agent(last.processes, pid, agent) then
      -- Programs that have ended show in their parent's time, which may lag behind by a tick.
      if before then ran = ran + math.max(0, now.children - before.children) * 1000 end
      found.other = found.other + ran
      local shown = now.name
      if now.kernel then shown = "[" .. shown .. "]" else found.programs = found.programs + ran end
      if ran > 0 then found.by_name[shown] = (found.by_name[shown] or 0) + ran end
    end
  end
  return found
end

return cpu_time
