-- SPDX-License-Identifier: GPL-2.0-or-later
-- JSON (RFC 8259), as the conversation with the host needs it. Objects are written with sorted keys.

local json = {}

local ARRAY = {}

-- Marks a list, so that an empty one is written as [] and not as {}.
function json.array(list)
  return setmetatable(list, ARRAY)
end

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r",
  ["\t"] = "\\t" }

local function quoted(text)
  -- A tool's message may hold bytes that are no UTF-8. The host could not read those.
  if not utf8.len(text) then text = text:gsub("[\128-\255]", "?") end
  return '"' .. text:gsub('[%c"\\\127]', function(c)
    return ESCAPES[c] or string.format("\\u%04x", c:byte())
  end) .. '"'
end

local function encode(value)
  local kind = type(value)
  if kind == "table" then
    local parts = {}
    if getmetatable(value) == ARRAY then
      for place, item in ipairs(value) do parts[place] = encode(item) end
      return "[" .. table.concat(parts, ",") .. "]"
    end
    local keys = {}
    for key in pairs(value) do keys[#keys + 1] = key end
    table.sort(keys)
    for place, key in ipairs(keys) do parts[place] = quoted(key) .. ":" .. encode(value[key]) end
    return "{" .. table.concat(parts, ",") .. "}"
  elseif kind == "string" then
    return quoted(value)
  elseif math.type(value) == "integer" then
    return string.format("%d", value)
  elseif kind == "number" then
    assert(value == value and math.abs(value) < math.huge, "not a number that JSON has")
    return string.format("%.17g", value)
  end
  return tostring(value) -- true, false
end

json.encode = encode

local LITERALS = { ["true"] = true, ["false"] = false }
local MEANT = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

-- A character outside the basic plane is written as two escapes (a surrogate pair).
local function unescaped(text)
  text = text:gsub("\\u([dD][89abAB]%x%x)\\u([dD][c-fC-F]%x%x)", function(high, low)
    return utf8.char(0x10000 + ((tonumber(high, 16) & 0x3ff) << 10) + (tonumber(low, 16) & 0x3ff))
  end)
  -- What the line above has made holds no backslash, and a backslash escapes the next character whatever it is.
  return (text:gsub("\\(.)(%x?%x?%x?%x?)", function(c, digits)
    if c == "u" then return utf8.char(tonumber(digits, 16)) end
    return (MEANT[c] or c) .. digits
  end))
end

local value_at

local function string_at(text, place)
  local from = place + 1
  while true do
    local quote = assert(text:find('"', place + 1, true), "a string does not end")
    local backslashes = 0
    while text:byte(quote - 1 - backslashes) == 92 do backslashes = backslashes + 1 end
    place = quote
    if backslashes % 2 == 0 then
      local raw = text:sub(from, quote - 1)
      return raw:find("\\", 1, true) and unescaped(raw) or raw, quote + 1
    end
  end
end

local function list_at(text, place)
  local list = json.array({})
  place = text:match("^%s*()", place + 1)
  if text:sub(place, place) == "]" then return list, place + 1 end
  while true do
    list[#list + 1], place = value_at(text, place)
    local mark
    mark, place = text:match("^%s*([,%]])()", place)
    if mark == "]" then return list, place end
    assert(mark, "a list does not end")
  end
end

local function object_at(text, place)
  local object = {}
  place = text:match("^%s*()", place + 1)
  if text:sub(place, place) == "}" then return object, place + 1 end
  while true do
    place = assert(text:match('^%s*()"', place), "an object without a name")
    local name, mark
    name, place = string_at(text, place)
    place = assert(text:match("^%s*:()", place), "a name without a value")
    object[name], place = value_at(text, place)
    mark, place = text:match("^%s*([,}])()", place)
    if mark == "}" then return object, place end
    assert(mark, "an object does not end")
  end
end

function value_at(text, place)
  place = text:match("^%s*()", place)
  local first = text:sub(place, place)
  if first == '"' then return string_at(text, place) end
  if first == "{" then return object_at(text, place) end
  if first == "[" then return list_at(text, place) end
  local word, after = text:match("^([%w+%-.]+)()", place)
  if word == "null" then return nil, after end
  local found = LITERALS[word]
  if found == nil then found = tonumber(word) end
  assert(found ~= nil, "not JSON: " .. tostring(word))
  return found, after
end

-- The value of one JSON text; null is nil.
function json.decode(text)
  local value, place = value_at(text, 1)
  assert(text:match("^%s*$", place), "more than one value")
  return value
end

return json
