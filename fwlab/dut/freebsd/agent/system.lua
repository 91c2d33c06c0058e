-- SPDX-License-Identifier: GPL-2.0-or-later
-- The DUT's tools and files, as the agent sees them. Tests put another object in place of this one.

local System = {}
System.__index = System

-- Text as one word of the shell.
local function quoted(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

function System.new()
  return setmetatable({}, System)
end

-- Run a tool with the base system's own path. Returns its output (both streams) and its exit status; the number of a
-- signal that ended it is negative.
-- Its standard input is empty, as the agent's own is the conversation with the host.
function System:run(...)
  local words = {}
  for place, word in ipairs({ ... }) do words[place] = quoted(word) end
  local pipe = assert(io.popen("exec " .. table.concat(words, " ") .. " </dev/null 2>&1"))
  local output = pipe:read("a")
  local _, how, status = pipe:close()
  return output, how == "signal" and -status or status
end

-- The same without what the tool says on standard error: for output that is binary or parsed.
function System:output(...)
  local words = {}
  for place, word in ipairs({ ... }) do words[place] = quoted(word) end
  local pipe = assert(io.popen("exec " .. table.concat(words, " ") .. " </dev/null 2>/dev/null"))
  local output = pipe:read("a")
  pipe:close()
  return output
end

-- Begin to sleep. The function that it returns waits until the time is over.
-- The process that sleeps is made first, so that making it costs nothing of what is measured.
function System:alarm(seconds)
  local pipe = assert(io.popen(string.format("exec /bin/sleep %.6f </dev/null", seconds)))
  return function() pipe:close() end
end

function System:sleep(seconds)
  self:alarm(seconds)()
end

-- Start a shell command that goes on by itself. Returns its process id.
function System:background(command)
  local pipe = assert(io.popen("{ " .. command .. "; } </dev/null >/dev/null 2>&1 & echo $!"))
  local pid = pipe:read("n")
  pipe:close()
  return pid
end

-- The process id of this program.
function System:pid()
  local pipe = assert(io.popen("echo $PPID"))
  local pid = pipe:read("n")
  pipe:close()
  return pid
end

-- The text of a file; nil if there is none.
function System:read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read("a")
  file:close()
  return text
end

function System:write(path, text)
  local file = assert(io.open(path, "wb"))
  assert(file:write(text))
  assert(file:close())
end

function System:remove(path)
  os.remove(path)
end

-- Seconds since 1970, whole ones.
function System:seconds()
  return os.time()
end

return System
