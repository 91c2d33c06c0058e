-- SPDX-License-Identifier: GPL-2.0-or-later
-- Puts this agent ahead of the threads that handle packets.
--
-- They run at the priority of interrupts, which no program can reach. On one CPU that always has packets to handle, no
-- program would run until the flood ends. So they get the lowest real-time priority,
-- and the agent a better one. That takes one system call, rtprio_thread(2), that no tool of the base system makes for a
-- thread of the kernel: rtprio(1) names processes. The base system may lack a compiler, so the program that makes the
-- call is written as it stands in memory.

local priority = {}

local PROGRAM = "/var/run/fwlab-rtprio-thread"
local REALTIME, LOWEST = 2, 31 -- sys/rtprio.h
local SESSION = "10" -- as the agent's own: see fwlab/dut/freebsd/client.py
local BASE, HEADERS = 0x400000, 64 + 56

-- A program for amd64 that sets the priority of this thread and exits with the error's number, or 0.
function priority.program(thread)
  local code = table.concat({
    "\xb8\xd2\x01\x00\x00", -- mov eax, 466 (SYS_rtprio_thread)
    "\xbf\x01\x00\x00\x00", -- mov edi, 1 (RTP_SET)
    "\xbe" .. string.pack("<I4", thread), -- mov esi, thread
    "\x48\x8d\x15\x0b\x00\x00\x00", -- lea rdx, [rip + 11]
    "\x0f\x05", -- syscall
    "\x89\xc7", -- mov edi, eax
    "\xb8\x01\x00\x00\x00", -- mov eax, 1 (SYS_exit)
    "\x0f\x05", -- syscall
    string.pack("<I2I2", REALTIME, LOWEST), -- struct rtprio
  })
  local size = HEADERS + #code
  local elf = "\x7fELF\x02\x01\x01\x09" .. ("\0"):rep(8) -- 64 bits, little-endian, FreeBSD
    .. string.pack("<I2I2I4I8I8I8I4I2I2I2I2I2I2", 2, 62, 1, BASE + HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0)
  local segment = string.pack("<I4I4I8I8I8I8I8I8", 1, 5, 0, BASE, BASE, size, size, 0x1000)
  return elf .. segment .. code
end

-- {name: number} of the threads that handle these links' packets: those of their interrupts, which begin to, and those
-- of their queues, which go on while there are many.
function priority.threads(system, processes, devices)
  local found = {}
  for _, device in ipairs(devices) do
    local driver, unit = device:match("^(%a+)(%d+)$")
    local parent = system:output("/sbin/sysctl", "-n", string.format("dev.%s.%s.%%parent", driver, unit)):match("%S+")
    for _, process in pairs(processes) do
      for name, number in pairs(process.kernel and process.numbers or {}) do
        local queue = name:match("^(%a+%d+) [rt]xq ") == device
        local interrupt = parent and name:match("^irq%d+: (%S+)") == parent
        if queue or interrupt then found[name] = number end
      end
    end
  end
  return found
end

-- Make these threads give way to the agent.
function priority.lower(system, threads)
  for name, number in pairs(threads) do
    system:write(PROGRAM, priority.program(number))
    system:run("/bin/chmod", "700", PROGRAM)
    local output, status = system:run(PROGRAM)
    if status ~= 0 then
      error(string.format("the priority of the thread %s cannot be lowered (error %s %s)", name, status, output), 0)
    end
  end
  system:remove(PROGRAM)
end

-- Put the SSH server of this session ahead of packets, too: it passes the agent's answers on. It is raised until the
-- session ends. The server that waits for others stays as it is.
function priority.raise_session(system, processes, agent)
  local pid = agent
  while processes[pid] and (processes[pid].parent or 0) > 1 do
    if processes[pid].name:match("^sshd") then system:run("/usr/sbin/rtprio", SESSION, "-" .. pid) end
    pid = processes[pid].parent
  end
end

return priority
