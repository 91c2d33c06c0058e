-- SPDX-License-Identifier: GPL-2.0-or-later
-- The agent's operations: what the host can ask for. Their names and fields are those of the agent on Linux.

local cpu_time = require("cpu_time")
local json = require("json")
local Pf = require("pf")
local priority = require("priority")
local Snapshots = require("snapshot")
local Stacks = require("stacks")
local StartState = require("start_state")
local trials = require("trials")

local Agent = {}
Agent.__index = Agent

-- How long the host may take to confirm that a ruleset has not cut it off (s), and the file that says it did not.
local CONFIRM_S = 15
local CUT_OFF = "/var/run/fwlab-cut-off"
-- Where SSH arrives if nothing else says so: the last NIC.
local LAST_NIC = "vtnet2"

-- The port that the host's SSH connection comes in by: the one that holds the address of our end.
function Agent.management(system, connection)
  local address = connection and connection:match("^%S+ %S+ (%S+) ")
  if address then
    local name
    for line in system:output("/sbin/ifconfig", "-a"):gmatch("[^\n]+") do
      name = line:match("^(%w+): flags") or name
      if line:match("^%s+inet6? (%S+)") == address then return name end
    end
  end
  return LAST_NIC
end

-- path  of this program, which undoes everything when it is run with the word "undo"
function Agent.new(system, path, management)
  local pf = Pf.new(system, management)
  local start = StartState.new(system, pf)
  return setmetatable({ system = system, path = path, pf = pf, start = start, contexts = {} }, Agent)
end

-- What snapshots of these devices need, found out once.
function Agent:context(devices)
  self.pid = self.pid or self.system:pid()
  local key = table.concat(devices, " ")
  if not self.contexts[key] then
    local snapshots = Snapshots.new(self.system, devices)
    local processes = snapshots:take().processes
    local serving = priority.threads(self.system, processes, devices)
    priority.lower(self.system, serving) -- now: once packets come it may be too late
    priority.raise_session(self.system, processes, self.pid)
    self.contexts[key] = { system = self.system, snapshots = snapshots, agent = self.pid, serving = serving }
  end
  return self.contexts[key]
end

-- ---- the DUT -----------------------------------------------------------------------------------------------------

function Agent:facts()
  local function sysctl(name) return (self.system:output("/sbin/sysctl", "-n", name):gsub("%s+$", "")) end
  self.system:run("/sbin/kldload", "-n", "pf")
  self.start:recorded()
  local good, image = pcall(json.decode, self.system:read("/etc/fwlab/image.json") or "{}")
  local links = 0
  for line in self.system:output("/usr/bin/netstat", "-B"):gmatch("[^\n]+") do
    -- Only a link counts: the management port has its DHCP client, and the log of pf has its daemon.
    local device = line:match("^%s*%d+%s+(%S+)")
    if device and device:match("^vtnet%d+$") and device ~= self.pf.management then links = links + 1 end
  end
  return {
    facts = {
      kernel = sysctl("kern.ostype") .. " " .. sysctl("kern.osrelease"),
      cmdline = sysctl("kern.bootfile") .. " " .. sysctl("kern.ident"),
      clocksource = sysctl("kern.timecounter.hardware"),
      cpus = tonumber(sysctl("hw.ncpu")),
      image = good and image or {},
      packet_sockets = links,
    },
  }
end

function Agent:states()
  return { states = self.pf:states() }
end

-- ---- rulesets ----------------------------------------------------------------------------------------------------

function Agent:reset()
  self.pf:undo()
  return { stuck_modules = json.array({}), differences = self.start:differences() }
end

-- How long `work` keeps the CPU busy, in seconds. What two snapshots cost is taken off.
local function busy_s(context, work)
  local function busy(first, last)
    return context.snapshots:between(first, last) - cpu_time.between(first, last, context.agent, context.serving).idle
  end
  local calibration = context.snapshots:take()
  local first = context.snapshots:take()
  work()
  local last = context.snapshots:take()
  return math.max(0, busy(first, last) - busy(calibration, first)) / 1e9
end

-- Load rulesets. On a refusal the DUT is back in its start state, and pfctl's message is returned.
function Agent:load(request)
  local context = self:context({})
  local runs = json.array({})
  local good, message = pcall(function()
    for _ = 1, request.times or 1 do
      self.pf:undo()
      local run = json.array({})
      for _, file in ipairs(request.files) do
        if file.kind ~= "pf" then
          error(string.format("%s: this DUT has no tool for such a file (%s)", file.name, file.kind), 0)
        elseif request.each then
          error(file.name .. ": such a file can only be loaded whole", 0)
        end
        run[#run + 1] = self.pf:load(file.name, file.text, function(work) return busy_s(context, work) end)
      end
      runs[#runs + 1] = run
    end
  end)
  if not good then
    self:reset()
    return { refused = tostring(message) }
  end
  self:watch()
  return { seconds = runs }
end

-- Have a separate process undo the ruleset if the host stays silent: a ruleset that drops everything drops this
-- conversation too, and this program waits for the host's next word.
function Agent:watch()
  self.system:remove(CUT_OFF)
  local undo = string.format("/usr/libexec/flua %s undo", self.path)
  self.watchdog = self.system:background(string.format("/bin/sleep %d; : > %s; %s", CONFIRM_S, CUT_OFF, undo))
end

-- The host has spoken.
function Agent:unwatch()
  if not self.watchdog then return end
  self.system:run("/bin/kill", tostring(self.watchdog))
  self.watchdog = nil
  if self.system:read(CUT_OFF) then
    self.system:remove(CUT_OFF)
    self.pf:undo() -- the watchdog may not have come to its end
    self.cut_off = true
  end
end

-- The host asks twice after every load, first with `again`: it can still reach us, and it hears our answers.
-- reached  whether it always could. If not, the ruleset was undone.
function Agent:confirm(request)
  local reached = not self.cut_off
  if request.again then
    self:watch()
  else
    self.cut_off = false
  end
  return { reached = reached }
end

function Agent:entries()
  return { entries = self.pf:entries() }
end

-- ---- packets -----------------------------------------------------------------------------------------------------

function Agent:counters(request)
  return { counters = self:context(request.devices).snapshots:take().counts }
end

function Agent:drain(request)
  local context = self:context(request.devices)
  trials.drain(context, request.devices[1], request.quiet_s, request.patience_s)
  return { counters = context.snapshots:take().counts }
end

function Agent:measure(request)
  local context, device = self:context(request.devices), request.devices[1]
  trials.wait(context, device, request)
  self.system:sleep(request.settle_s)
  return trials.measure(context, device, request)
end

-- ---- the profiler ------------------------------------------------------------------------------------------------

-- Start dtrace, so that it runs before the packets come.
function Agent:prepare_stacks(request)
  self:context({}) -- dtrace gets this agent's priority
  if self.stacks then self.stacks:drop() end -- of a recording that failed
  self.stacks = nil
  self.stacks = Stacks.start(self.system, request.rates)
  return {}
end

-- Wait for packets on the first link, then sample for `seconds`. Returns what passed meanwhile.
function Agent:record_stacks(request)
  if not self.stacks then error("dtrace was not started", 0) end
  local context, device = self:context(request.devices), request.devices[1]
  trials.wait(context, device, request)
  self.system:sleep(request.settle_s)
  return { recorded = trials.watch(context, function()
    self.stacks:mark()
    self.system:sleep(request.seconds)
    self.stacks:mark()
  end) }
end

-- Samples by call stack. Ends dtrace.
function Agent:read_stacks()
  local stacks = self.stacks or error("dtrace was not started", 0)
  self.stacks = nil
  return { stacks = stacks:read() }
end

-- ---- the conversation --------------------------------------------------------------------------------------------

local OPERATIONS = {}
for _, name in ipairs({
  "facts", "reset", "load", "confirm", "entries", "states",
  "counters", "drain", "measure", "prepare_stacks", "record_stacks", "read_stacks",
}) do
  OPERATIONS[name] = Agent[name]
end

-- The answer to one request. It carries the operation (op) and the request's number.
function Agent:answer(line)
  self:unwatch()
  local request = json.decode(line)
  local operation = OPERATIONS[request.op]
  if not operation then return { op = request.op, number = request.number, unknown = true } end
  local good, answer = pcall(operation, self, request)
  if not good then answer = { failed = tostring(answer) } end
  answer.op, answer.number = request.op, request.number
  return answer
end

-- Answer requests until the host ends the conversation. A ruleset that is loaded then is undone.
function Agent:serve(requests, answers)
  for line in requests:lines() do
    answers:write(json.encode(self:answer(line)), "\n")
    answers:flush()
  end
  self:unwatch()
  if self.stacks then self.stacks:drop() end
  if self.system:read(Pf.LOADED) then self.pf:undo() end
end

return Agent
