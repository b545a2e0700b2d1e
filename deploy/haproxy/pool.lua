-- Requests that wait until a slot has an engine in service, because the only one is loading. Where
-- none is coming, because admins took all out or all have failed for good, nobody waits.
--
-- A template like haproxy.cfg. Gives HAProxy two things:
--   http-request lua.wait_for_place   holds the request until a place of txn.slot serves, at most
--                                     QUEUE_SECONDS; sets txn.again if HAProxy is being reloaded
--   `show waiting` (runtime API)      lines of "waiting SLOT NUMBER"
-- Who leaves while waiting is noticed, and counted, only when the wait ends; no engine hears of it.

local QUEUE_SECONDS = @{QUEUE_SECONDS}
local LOOK_EVERY = 200 -- ms
local FORGOTTEN = 2 -- s without a look: an admin ended the session, and the wait with it

-- Set at run time: slots to which no engine is coming.
local IDLE = Map.new("@{RUN_DIR}/idle.map", Map._str)

local waiting = {} -- slot -> { [entry] = true }, each entry { seen = seconds }

local function seconds()
  local now = core.now()
  return now.sec + now.usec / 1000000
end

--- HAProxy gives a boolean as a number, and in Lua 0 is true.
local function ended(sample)
  return sample == 1 or sample == true
end

core.register_action("wait_for_place", { "http-req" }, function(txn)
  local slot = txn:get_var("txn.slot")
  local backend = core.backends[slot]
  if not backend or slot == "noslot" or backend:get_srv_act() > 0 then return end
  if IDLE:lookup(slot) then return end
  local entry, deadline = {}, seconds() + QUEUE_SECONDS
  waiting[slot] = waiting[slot] or {}
  waiting[slot][entry] = true
  repeat
    entry.seen = seconds()
    if ended(txn.f:stopping()) then
      txn:set_var("txn.again", true)
      break
    end
    core.msleep(LOOK_EVERY)
  until backend:get_srv_act() > 0 or IDLE:lookup(slot) or seconds() >= deadline
  waiting[slot][entry] = nil
end)

local USAGE = "show waiting : requests that wait for an engine"
core.register_cli({ "show", "waiting" }, USAGE, function(applet)
  local now = seconds()
  for slot, entries in pairs(waiting) do
    local number = 0
    for entry in pairs(entries) do
      if now - (entry.seen or now) > FORGOTTEN then
        entries[entry] = nil
      else
        number = number + 1
      end
    end
    applet:send("waiting " .. slot .. " " .. number .. "\n")
  end
end)
