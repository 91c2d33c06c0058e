-- SPDX-License-Identifier: GPL-2.0-or-later
-- The entry point: answers the host on standard input and output, or, with the word "undo", undoes what is loaded.

local Agent = require("agent")
local System = require("system")

local path, word = arg[0], arg[1]
local system = System.new()
local agent = Agent.new(system, path, Agent.management(system, os.getenv("SSH_CONNECTION")))
if word == "undo" then
  agent.pf:undo()
else
  agent:serve(io.stdin, io.stdout)
end
