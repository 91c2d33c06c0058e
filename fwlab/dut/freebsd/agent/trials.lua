-- SPDX-License-Identifier: GPL-2.0-or-later
-- Measures trials under overload, and decides which are valid: to ask the host would take too long.

local cpu_time = require("cpu_time")
local json = require("json")

local trials = {}

-- Packets that must arrive before traffic counts as begun.
local BEGUN = 64
-- Largest share of the CPU that something may use beside the packets in every trial alike, and still be their own work.
local MOST_OWN = 0.1
-- How many trials in which a program ran are tolerated.
local MOST_BUSY = 8
-- A trial ends after so many times its length, however few packets arrived.
local LONGEST = 20

-- Raises an error if the host has ended the conversation: nobody wants any more what would be measured, and it would
-- cost the next session's packets. The process that passes the host's words on is gone then.
local function check_host(snapshot, agent)
  local me = snapshot.processes[agent]
  if not me then return end
  for _, process in pairs(snapshot.processes) do
    if process.name == "cat" and process.group == me.group then return end
  end
  error("the host is gone", 0)
end

-- Wait until packets arrive at the first link.
function trials.wait(context, device, patience_s)
  local name = device .. ".rx_packets"
  local first = context.snapshots:take()
  while true do
    local now = context.snapshots:take()
    if now.counts[name] >= first.counts[name] + BEGUN then return end
    if context.snapshots:between(first, now) > patience_s * 1e9 then
      error(string.format("no packet arrived at %s within %g s", device, patience_s), 0)
    end
    check_host(now, context.agent)
    context.system:sleep(0.005)
  end
end

-- Wait until the receive ring is empty: no packet for `quiet_s`, since a slow ruleset reads it in bursts.
function trials.drain(context, device, quiet_s, patience_s)
  local name = device .. ".rx_packets"
  local first = context.snapshots:take()
  local last = first
  repeat
    context.system:sleep(quiet_s)
    local before = last
    last = context.snapshots:take()
  until last.counts[name] == before.counts[name] or context.snapshots:between(first, last) > patience_s * 1e9
end

-- What every counter has counted between two snapshots.
local function counted(first, last)
  local counts = {}
  for counter, value in pairs(last.counts) do counts[counter] = value - first.counts[counter] end
  return counts
end

-- One trial of at least `window_s` and `packets`: duration_ns, idle_ns, other_ns, programs_ns, counts, and by_name.
-- The duration is the CPU time of everything but this agent. So it needs no clock, and what the agent takes to read
-- the counters is no part of it.
local function window(context, device, window_s, packets)
  local name = device .. ".rx_packets"
  local wake = context.system:alarm(window_s)
  local first = context.snapshots:take()
  local last
  while true do
    wake()
    last = context.snapshots:take()
    local took = context.snapshots:between(first, last)
    if took >= window_s * 1e9 and last.counts[name] - first.counts[name] >= packets
      or took > LONGEST * window_s * 1e9 then
      break
    end
    wake = context.system:alarm(window_s / 4)
  end
  check_host(last, context.agent)
  local used = cpu_time.between(first, last, context.agent, context.serving)
  return {
    duration_ns = used.served + used.idle + used.other,
    clock_ns = context.snapshots:between(first, last),
    idle_ns = used.idle,
    other_ns = used.other,
    programs_ns = used.programs,
    counts = counted(first, last),
    by_name = used.by_name,
  }
end

-- What passes while `work` runs: duration_ns and counts.
function trials.watch(context, work)
  local first = context.snapshots:take()
  work()
  local last = context.snapshots:take()
  check_host(last, context.agent)
  return { duration_ns = context.snapshots:between(first, last), counts = counted(first, last) }
end

-- The trials in which something else ran equally long; none if they are not the majority.
-- This is no disturbance but work that the packets cause elsewhere, such as pf's thread that expires states. It takes a
-- small share, and no program runs. It sets in within the first trials, which are therefore not like the rest.
function trials.own_work(perturbed, other_share)
  local able, shares = {}, {}
  for _, trial in ipairs(perturbed) do
    if trial.other_ns <= MOST_OWN * trial.duration_ns and trial.programs_ns <= other_share * trial.duration_ns then
      able[#able + 1] = trial
      shares[#shares + 1] = trial.other_ns / trial.duration_ns
    end
  end
  table.sort(shares)
  local usual, alike = shares[#shares // 2 + 1], {}
  for _, trial in ipairs(able) do
    if math.abs(trial.other_ns / trial.duration_ns - usual) <= other_share then alike[#alike + 1] = trial end
  end
  return #alike > #perturbed // 2 and alike or {}
end

local function shown(list)
  local found = json.array({})
  for _, trial in ipairs(list) do
    found[#found + 1] = {
      duration_ns = trial.duration_ns,
      clock_ns = trial.clock_ns,
      idle_ns = trial.idle_ns,
      other_ns = trial.other_ns,
      counts = trial.counts,
    }
  end
  return found
end

-- `windows` valid trials, and those that are not. Gives up after more than `most_idle` unsaturated ones, and early if
-- programs keep running: somebody is logged in, and more trials would not help.
-- cpu_ns says how long each program and each [kernel process] ran in the perturbed ones.
function trials.measure(context, device, wanted)
  local valid, unsaturated, perturbed, cpu_ns = {}, {}, {}, {}
  local busy = 0
  while #valid < wanted.windows and #unsaturated <= wanted.most_idle and #perturbed <= 5 * wanted.windows do
    local trial = window(context, device, wanted.window_s, wanted.packets)
    if trial.idle_ns > wanted.idle_share * trial.duration_ns then
      unsaturated[#unsaturated + 1] = trial
    elseif trial.other_ns <= wanted.other_share * trial.duration_ns then
      valid[#valid + 1] = trial
    else
      perturbed[#perturbed + 1] = trial
      for name, ran in pairs(trial.by_name) do cpu_ns[name] = (cpu_ns[name] or 0) + ran end
      if trial.programs_ns > wanted.other_share * trial.duration_ns then busy = busy + 1 end
      if busy > math.max(MOST_BUSY, 2 * #valid) then break end
    end
    if #valid == 0 and #perturbed >= 2 * wanted.windows then
      valid = { table.unpack(trials.own_work(perturbed, wanted.other_share), 1, wanted.windows) }
    end
  end
  return { valid = shown(valid), unsaturated = shown(unsaturated), perturbed = shown(perturbed), cpu_ns = cpu_ns }
end

return trials
