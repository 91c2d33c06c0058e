-- SPDX-License-Identifier: GPL-2.0-or-later
-- Measures trials under overload, and decides which are valid: to ask the host would take too long. The terms, with
-- every constant, come with the request (fwlab/dut/agent_protocol.py).

local cpu_time = require("cpu_time")
local json = require("json")

local trials = {}

-- Raises an error if the host has ended the conversation: what would be measured is no longer wanted, and would
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
function trials.wait(context, device, request)
  local patience_s = request.patience_s
  local name = device .. ".rx_packets"
  local first = context.snapshots:take()
  while true do
    local now = context.snapshots:take()
    if now.counts[name] >= first.counts[name] + request.begun then return end
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

-- One trial of at least `window_s` and `packets`, unless few packets arrive: duration_ns, idle_ns, other_ns,
-- programs_ns, counts, and by_name.
-- The duration is the CPU time of everything but this agent. So it needs no clock, and what the agent takes to read
-- the counters is no part of it.
local function window(context, device, terms)
  local window_s = terms.window_s
  local name = device .. ".rx_packets"
  local wake = context.system:alarm(window_s)
  local first = context.snapshots:take()
  local last, used
  while true do
    wake()
    last = context.snapshots:take()
    used = cpu_time.between(first, last, context.agent, context.serving)
    local took = context.snapshots:between(first, last)
    local enough = last.counts[name] - first.counts[name] >= terms.packets or used.idle > terms.max_idle * took
    if took >= window_s * 1e9 and enough or took > terms.max_length * window_s * 1e9 then break end
    wake = context.system:alarm(window_s / 4)
  end
  check_host(last, context.agent)
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

-- The perturbed trials in which something else ran equally long; none if they are not the majority.
-- This is no disturbance but work that the packets cause elsewhere, such as pf's thread that expires states. It takes a
-- small share, and no program runs. It sets in within the first trials, which are therefore not like the rest.
function trials.own_work(perturbed, terms)
  local able, shares = {}, {}
  for _, trial in ipairs(perturbed) do
    if trial.other_ns <= terms.max_own_share * trial.duration_ns
      and trial.programs_ns <= terms.other_share * trial.duration_ns then
      able[#able + 1] = trial
      shares[#shares + 1] = trial.other_ns / trial.duration_ns
    end
  end
  table.sort(shares)
  local usual, alike = shares[#shares // 2 + 1], {}
  for _, trial in ipairs(able) do
    if math.abs(trial.other_ns / trial.duration_ns - usual) <= terms.other_share then alike[#alike + 1] = trial end
  end
  return #alike > #perturbed // 2 and alike or {}
end

-- Take trials until there are enough valid ones, or it is time to give up: the policy that Terms describes, line by line
-- as in fwlab/dut/linux/agent/trials.py.
function trials.sort(take, terms)
  local valid, unsaturated, perturbed = {}, {}, {}
  local wanted, busy = terms.windows, 0
  while #valid < wanted
    and #unsaturated <= terms.max_unsaturated
    and #perturbed <= terms.max_perturbed * wanted do
    local trial = take()
    if trial.idle_ns > terms.idle_share * trial.duration_ns then
      unsaturated[#unsaturated + 1] = trial
    elseif trial.other_ns <= terms.other_share * trial.duration_ns then
      valid[#valid + 1] = trial
    else
      perturbed[#perturbed + 1] = trial
      if trial.programs_ns > terms.other_share * trial.duration_ns then busy = busy + 1 end
      if busy > math.max(terms.max_busy, terms.max_busy_for_each * #valid) then break end
    end
    if #valid == 0 and #perturbed >= terms.own_work_after * wanted then
      valid = { table.unpack(trials.own_work(perturbed, terms), 1, wanted) }
    end
  end
  return { valid = json.array(valid), unsaturated = json.array(unsaturated), perturbed = json.array(perturbed) }
end

-- The trials that the terms ask for. cpu_ns says how long each program and each [kernel process] ran in the perturbed
-- ones.
function trials.measure(context, device, terms)
  local cpu_ns = {}
  local found = trials.sort(function() return window(context, device, terms) end, terms)
  for _, trial in ipairs(found.perturbed) do
    for name, ran in pairs(trial.by_name) do cpu_ns[name] = (cpu_ns[name] or 0) + ran end
  end
  for _, kind in pairs(found) do
    for _, trial in ipairs(kind) do trial.by_name = nil end
  end
  found.cpu_ns = cpu_ns
  return found
end

return trials
