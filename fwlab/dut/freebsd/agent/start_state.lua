-- SPDX-License-Identifier: GPL-2.0-or-later
-- The start state: what the DUT is like before any ruleset is loaded. Recorded once after each boot.

local json = require("json")

local StartState = {}
StartState.__index = StartState

local RECORD = "/var/run/fwlab-start-state.json"
-- Differences that are reported at most, and characters of each.
local MAX_DIFFERENCES, MAX_CHARACTERS = 20, 100
local SYSCTLS = { "net.inet.ip.forwarding", "net.inet6.ip6.forwarding", "net.inet.ip.redirect" }

function StartState.new(system, pf)
  return setmetatable({ system = system, pf = pf }, StartState)
end

function StartState:now()
  local found = self.pf:state()
  found.sysctls = self.system:output("/sbin/sysctl", table.unpack(SYSCTLS))
  found.interfaces = self.system:output("/sbin/ifconfig", "-l", "-u")
  return found
end

-- Recorded now if no agent has done so since boot (/var/run is emptied then). pf is off and empty first, whatever the
-- system has loaded at boot.
function StartState:recorded()
  local text = self.system:read(RECORD)
  if text then
    local good, found = pcall(json.decode, text)
    if good then return found end
  end
  self.pf:undo()
  local found = self:now()
  self.system:write(RECORD, json.encode(found))
  return found
end

local function lines_of(text)
  local found = {}
  for line in text:gmatch("[^\n]+") do found[line] = true end
  return found
end

-- What differs from the start state: one line each, "+" where it is new and "-" where it is missing.
function StartState:differences()
  local before, now = self:recorded(), self:now()
  local found = json.array({})
  local sections = {}
  for section in pairs(now) do sections[#sections + 1] = section end
  table.sort(sections)
  for _, section in ipairs(sections) do
    local was, is = lines_of(before[section] or ""), lines_of(now[section])
    for _, change in ipairs({ { "+", is, was }, { "-", was, is } }) do
      local mark, here, there = table.unpack(change)
      for line in pairs(here) do
        if not there[line] and #found < MAX_DIFFERENCES then
          found[#found + 1] = (section .. " " .. mark .. " " .. line):sub(1, MAX_CHARACTERS)
        end
      end
    end
  end
  table.sort(found)
  return found
end

return StartState
