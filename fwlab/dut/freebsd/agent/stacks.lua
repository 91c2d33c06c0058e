-- SPDX-License-Identifier: GPL-2.0-or-later
-- Samples the kernel under load with DTrace, to find the cost of a packet function by function.
--
-- dtrace(1) starts before the packets come, since it takes seconds to compile its program, and is read after they have
-- gone. In between it waits for a mark: a run of true(1) switches the sampling on, and the next one off.

local Stacks = {}
Stacks.__index = Stacks

local DTRACE, MARK = "/usr/sbin/dtrace", "/usr/bin/true"
-- Providers of the probes below. dtraceall would load fasttrap, too: once that is unloaded, its thread may
-- still run in its code, and the kernel panics.
local MODULES = { "sdt", "profile" }
local PROGRAM, OUTPUT, MESSAGES = "/var/run/fwlab-stacks.d", "/var/run/fwlab-stacks", "/var/run/fwlab-stacks.err"
-- Seconds that dtrace may take to start, and to write what it has sampled; how often it is looked at.
local PATIENCE_S, LOOK_S = 120, 0.1
-- Characters of its messages that are passed on.
local MAX_MESSAGE = 500

local TEXT = [[
#pragma D option quiet
#pragma D option switchrate=10hz
#pragma D option aggsize=4m
BEGIN { on = 0; printf("ready\n"); }
proc:::exec-success /execname == "true"/ { on = !on; }
%s /on/ { @[execname, stack(64)] = count(); }
END { printa("program %%s%%kcount %%@u\n", @); printf("end\n"); }
]]

-- What dtrace is to do. rates: samples per second; each has its own timer.
function Stacks.program(rates)
  local probes = {}
  for place, rate in ipairs(rates) do probes[place] = string.format("profile-%d", rate) end
  return TEXT:format(table.concat(probes, ","))
end

-- Start dtrace. Raises an error in its words if it does not sample.
function Stacks.start(system, rates)
  local self = setmetatable({ system = system, loaded = {} }, Stacks)
  for _, name in ipairs(MODULES) do
    local _, status = system:run("/sbin/kldload", name)
    if status == 0 then table.insert(self.loaded, 1, name) end
  end
  -- By default, as many frames are left out as the interrupt might have, and some of the stack with them.
  system:run("/sbin/sysctl", "kern.dtrace.profile.aframes=0")
  system:write(PROGRAM, Stacks.program(rates))
  system:write(OUTPUT, "")
  self.pid = system:background(string.format("exec %s -o %s -s %s 2>%s", DTRACE, OUTPUT, PROGRAM, MESSAGES))
  self:await("ready")
  return self
end

-- Wait until dtrace has written a line with this word alone.
function Stacks:await(word)
  for _ = 1, PATIENCE_S / LOOK_S do
    if ("\n" .. (self.system:read(OUTPUT) or "")):find("\n" .. word .. "\n", 1, true) then return end
    local _, status = self.system:run("/bin/kill", "-0", tostring(self.pid))
    if status ~= 0 then break end
    self.system:sleep(LOOK_S)
  end
  local said = (self.system:read(MESSAGES) or ""):gsub("%s+$", ""):sub(-MAX_MESSAGE)
  self:drop()
  error("dtrace does not sample: " .. said, 0)
end

-- Switch the sampling on, or off again.
function Stacks:mark()
  self.system:run(MARK)
end

-- Take out the modules that dtrace no longer holds. Returns whether none is left.
function Stacks:unload()
  while self.loaded[1] do
    local _, status = self.system:run("/sbin/kldunload", self.loaded[1])
    if status ~= 0 then return false end
    table.remove(self.loaded, 1)
  end
  return true
end

-- End dtrace, whatever it has, and take its modules out again.
function Stacks:drop()
  self.system:run("/bin/kill", "-KILL", tostring(self.pid))
  for _ = 1, PATIENCE_S / LOOK_S do
    if self:unload() then break end
    self.system:sleep(LOOK_S)
  end
  for _, path in ipairs({ PROGRAM, OUTPUT, MESSAGES }) do self.system:remove(path) end
end

-- End dtrace and read its samples: {"program;outermost function;…;innermost function": samples}.
function Stacks:read()
  self.system:run("/bin/kill", "-TERM", tostring(self.pid))
  self:await("end")
  local found = Stacks.fold(self.system:read(OUTPUT))
  self:drop()
  return found
end

-- The frames of one stack, from the innermost outwards, without those of the timer's interrupt: dtrace names the place
-- that was interrupted first, and then its own way here. The interrupt begins at an entry point in assembly, whose name
-- begins with X or is not known.
function Stacks.interrupted(frames)
  local first
  for place, name in ipairs(frames) do
    if name == "profile_fire" then first = place end
    if first and name:find("^[X0]") then
      return table.move(frames, place + 1, #frames + place - first + 1, first)
    end
  end
  return frames
end

-- Samples of equal stacks in dtrace's output: a line with the program, a line for each function from the innermost
-- outwards as "module`function+offset", a line with their number.
function Stacks.fold(text)
  local found, program, frames = {}, nil, {}
  for line in text:gmatch("[^\n]+") do
    local begun, count = line:match("^program (.-)%s*$"), line:match("^%s*count (%d+)$")
    if begun then
      program, frames = begun, {}
    elseif count and program then
      local stack = program
      for place = #Stacks.interrupted(frames), 1, -1 do stack = stack .. ";" .. frames[place] end
      found[stack] = (found[stack] or 0) + tonumber(count)
      program = nil
    elseif line:find("%S") then
      frames[#frames + 1] = line:match("`([^+%s]+)") or "[unknown]"
    end
  end
  return found
end

return Stacks
