-- SPDX-License-Identifier: GPL-2.0-or-later
-- Who used the CPU between two snapshots: packets, nobody, this agent, or something else.

local cpu_time = {}

-- Whether this process is the agent, or a tool that it has started.
local function of_agent(processes, pid, agent)
  while pid and pid > 1 do
    if pid == agent then return true end
    pid = processes[pid] and processes[pid].parent
  end
  return false
end

-- Nanoseconds between two snapshots, where `serving` has the names of the threads that handle packets:
--   served    handling packets
--   idle      of the idle thread
--   other     of programs and of other threads of the kernel, without the agent
--   programs  of these, of programs
--   by_name   {name of a program, or [name] of a kernel's process: its share of `other`}
-- The agent's own time is left out: it is no part of the trial. Its tools end in between, and how long they ran is
-- known in ticks only.
function cpu_time.between(first, last, agent, serving)
  local found = { served = 0, idle = 0, other = 0, programs = 0, by_name = {} }
  local function add(name, ran, program)
    found.other = found.other + ran
    if program then found.programs = found.programs + ran end
    if ran > 0 then found.by_name[name] = (found.by_name[name] or 0) + ran end
  end
  for pid, now in pairs(last.processes) do
    local before = first.processes[pid]
    if not before or before.name ~= now.name then before = { ran = 0, children = now.children, threads = {} } end
    if now.kernel then
      for name, ran in pairs(now.threads) do
        ran = (ran - (before.threads[name] or 0)) * 1000
        if now.name == "idle" then
          found.idle = found.idle + ran
        elseif serving[name] then
          found.served = found.served + ran
        else
          add("[" .. now.name .. "]", ran, false)
        end
      end
    elseif not of_agent(last.processes, pid, agent) then
      -- Programs that have ended show in their parent's time, which may lag behind by a tick.
      add(now.name, (now.ran - before.ran + math.max(0, now.children - before.children)) * 1000, true)
    end
  end
  return found
end

return cpu_time
