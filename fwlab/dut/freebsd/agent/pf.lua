-- SPDX-License-Identifier: GPL-2.0-or-later
-- pf: loads a pf.conf, removes it, and says what the kernel holds.
--
-- In the start state pf is off and empty, so a packet does not visit it. It is switched on after a ruleset was loaded.

local json = require("json")

local Pf = {}
Pf.__index = Pf

local PFCTL = "/sbin/pfctl"
-- With -t a tool has the usual priority, not the agent's: otherwise logins fail while pfctl folds a long list.
local RTPRIO = "/usr/sbin/rtprio"
local FILE = "/var/run/fwlab-pf.conf"
-- Exists as long as a ruleset may be loaded.
Pf.LOADED = "/var/run/fwlab-loaded"
-- Characters of pfctl's message that are passed on.
local MAX_MESSAGE = 2000
-- What a reset must restore, by the words that pfctl(8) shows it with.
local LISTED = { "nat", "rules", "Tables", "memory", "timeouts", "states" }
local PAGE = 4096
-- With it, the kernel's allocator keeps next to nothing of what states took.
local LOWEST = "set limit states 1\n"

-- management  the port that SSH comes in by
function Pf.new(system, management)
  return setmetatable({ system = system, management = management }, Pf)
end

-- What pfctl is given: the file, and before it the line that keeps pf away from the management port. The file's own
-- lines are one further down.
function Pf:given(text)
  return "set skip on " .. self.management .. "\n" .. text
end

-- pfctl's message with the name and the lines of the user's file.
function Pf.words(name, output)
  local own = FILE:gsub("%p", "%%%0")
  output = output:gsub(own .. ":(%d+)", function(line) return name .. ":" .. math.max(1, tonumber(line) - 1) end)
  output = output:gsub(own, name)
  local kept = {}
  for line in output:gmatch("[^\n]+") do
    -- The GENERIC kernel has no ALTQ, and every run says so.
    if not line:find("ALTQ", 1, true) then kept[#kept + 1] = line end
  end
  return table.concat(kept, "\n"):sub(1, MAX_MESSAGE)
end

local function refused(name, option, output, status)
  if status < 0 then
    local words = Pf.words(name, output)
    local said = words == "" and " without a message" or ", and said: " .. words
    local helps = "it gives no line: remove statements until it loads"
    return string.format("%s: pfctl %s crashed (signal %d)%s; %s", name, option, -status, said, helps)
  end
  return string.format("%s: pfctl %s said (exit %s): %s", name, option, status, Pf.words(name, output))
end

-- Load a file. `timed` is called with a function, and calls it once; what that takes is the loading time.
-- Raises an error in pfctl's words. Then something of the file may be loaded.
function Pf:load(name, text, timed)
  self.system:write(FILE, self:given(text))
  self.system:write(Pf.LOADED, "")
  -- Not tried with -n first: nothing of a file with an error is loaded, and folding a list of 10,000 takes a minute.
  local output, status
  local took = timed(function() output, status = self.system:run(RTPRIO, "-t", PFCTL, "-f", FILE) end)
  if status ~= 0 then error(refused(name, "-f", output, status), 0) end
  if not self:enabled() then
    output, status = self.system:run(PFCTL, "-e")
    if status ~= 0 then error(refused(name, "-e", output, status), 0) end
  end
  return took
end

function Pf:enabled()
  return self.system:output(PFCTL, "-s", "info"):find("Status: Enabled", 1, true) ~= nil
end

-- Switch pf off and flush everything: the rules first, since an anchor stays while a rule names it. Its module stays.
-- The states go under the lowest limit. Under another one, the allocator would keep as many for later use, and hand
-- them out to a ruleset with a lower limit beyond that limit.
function Pf:undo()
  self.system:run(PFCTL, "-d")
  self.system:write(FILE, LOWEST)
  self.system:run(PFCTL, "-f", FILE)
  self.system:run(PFCTL, "-F", "states")
  self.system:run(PFCTL, "-F", "all")
  self.system:run(PFCTL, "-a", "*", "-F", "all")
  self.system:remove(FILE)
  self.system:remove(Pf.LOADED)
end

-- Rules of all anchors. An anchor without any stays until pf's thread comes round to freeing it, and costs nothing.
function Pf:anchored()
  local found = {}
  for name in self.system:output(PFCTL, "-v", "-s", "Anchors"):gmatch("[^\n]+") do
    name = name:match("^%s*(.-)%s*$")
    for rule in self.system:output(PFCTL, "-a", name, "-s", "rules"):gmatch("[^\n]+") do
      found[#found + 1] = name .. ": " .. rule
    end
  end
  return table.concat(found, "\n")
end

-- {words of pfctl: what it shows}, for comparison with the start state.
function Pf:state()
  local found = { status = self:enabled() and "Enabled" or "Disabled", Anchors = self:anchored() }
  for _, words in ipairs(LISTED) do found[words] = self.system:output(PFCTL, "-s", words) end
  return found
end

-- Rules that `pfctl -s rules` or `-s nat` has printed. The end of an anchor's block is none.
function Pf.rules_in(listing)
  local count = 0
  for line in listing:gmatch("[^\n]+") do
    if line:find("%S") and not line:find("^%s*}") then count = count + 1 end
  end
  return count
end

-- {rules, addresses} that the kernel holds. The addresses are counted one by one: where `pfctl -vvs Tables` of
-- FreeBSD 15.1 says "Addresses", it prints how often the table is referred to.
function Pf:entries()
  local rules = self.system:output(PFCTL, "-a", "*", "-s", "rules")
  local nat = self.system:output(PFCTL, "-s", "nat")
  local addresses = 0
  for name in self.system:output(PFCTL, "-s", "Tables"):gmatch("[^\n]+") do
    local _, lines = self.system:output(PFCTL, "-t", name, "-T", "show"):gsub("\n", "")
    addresses = addresses + lines
  end
  return { rules = Pf.rules_in(rules) + Pf.rules_in(nat), addresses = addresses }
end

-- The number after a name at the beginning of a line.
local function number(listing, name)
  return tonumber(("\n" .. listing):match("\n%s*" .. name .. "%s+(%d+)")) or 0
end

-- A zone of the kernel's allocator, as sysctl vm.uma.NAME shows it: bytes of an item, bytes of all its slabs.
function Pf.zone(shown)
  local item, pages = tonumber(shown:match("%.keg%.rsize: (%d+)")) or 0, 0
  for count in shown:gmatch("%.keg%.domain%.%d+%.pages: (%d+)") do pages = pages + tonumber(count) end
  return item, pages * PAGE
end

-- Bytes that the kernel has allocated of a type of memory, as `vmstat --libxo json -m` prints them.
function Pf.allocated(listing, name)
  local shown = json.decode(listing)
  shown = shown.vmstat or shown -- its second version has the tool's name around everything
  for _, memory in ipairs(shown["malloc-statistics"].memory) do
    if memory.type == name then return math.tointeger(memory["memory-use"]) end
  end
  return 0
end

-- pf's states, by the names of model.trial.States. A state has one key, of its own zone, or two if addresses change.
function Pf:states()
  local function sysctl(...) return self.system:output("/sbin/sysctl", ...) end
  local state_bytes, state_slabs = Pf.zone(sysctl("vm.uma.pf_states"))
  local key_bytes, key_slabs = Pf.zone(sysctl("vm.uma.pf_state_keys"))
  return {
    held = number(self.system:output(PFCTL, "-s", "info"), "current entries"),
    most = tonumber(self.system:output(PFCTL, "-s", "memory"):match("states%s+hard limit%s+(%d+)")) or 0,
    buckets = tonumber(sysctl("-n", "net.pf.states_hashsize")) or 0,
    object_bytes = state_bytes + key_bytes,
    slab_bytes = state_slabs + key_slabs,
    bucket_bytes = Pf.allocated(self.system:output("/usr/bin/vmstat", "--libxo", "json", "-m"), "pf_hash"),
  }
end

return Pf
