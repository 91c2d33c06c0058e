-- SPDX-License-Identifier: GPL-2.0-or-later
-- A FreeBSD DUT for tests, in place of the agent's module "system". Its commands answer what a JSON file says; what was
-- run or written is printed on standard error.

local json = require("json")

local file = assert(io.open(arg[1]))
local spec = json.decode(file:read("a"))
file:close()

local function note(...)
  io.stderr:write(table.concat({ ... }, " "), "\n")
end

local Fake = { files = spec.files or {}, clock = 0 }
Fake.__index = Fake

function Fake.new()
  return setmetatable({}, Fake)
end

-- Answers of a command are used one after the other; the last one stays.
local function answer(...)
  local command = table.concat({ ... }, " ")
  note("run", command)
  local answers = spec.commands[command]
  if not answers then error("the test did not expect: " .. command, 0) end
  local given = #answers > 1 and table.remove(answers, 1) or answers[1]
  local output = given.output or ""
  if given.hex then output = given.hex:gsub("%x%x", function(byte) return string.char(tonumber(byte, 16)) end) end
  return output, math.tointeger(given.status or 0)
end

function Fake:run(...) return answer(...) end

function Fake:output(...) return (answer(...)) end

function Fake:alarm(seconds)
  note(string.format("sleep %g", seconds))
  return function() end
end

function Fake:sleep(seconds) self:alarm(seconds) end

-- `written_by_background` are the files that such a process writes.
-- With `cut_off` the first of these processes comes to its end: the host was silent.
function Fake:background(command)
  note("background", command)
  for path, text in pairs(spec.written_by_background or {}) do self.files[path] = text end
  if spec.cut_off then
    self.files[command:match("> (%S+);")] = ""
    spec.cut_off = nil
  end
  return 4711
end

function Fake:pid() return spec.pid end

function Fake:read(path) return self.files[path] end

function Fake:write(path, text)
  note("write", path, (text:gsub("[^\32-\126]", "|")))
  self.files[path] = text
end

function Fake:remove(path) self.files[path] = nil end

function Fake:seconds()
  Fake.clock = Fake.clock + (spec.seconds_a_look or 0)
  return Fake.clock // 1
end

return Fake
