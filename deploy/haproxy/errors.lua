-- The API's error answers, in one place: HAProxy's own and the gateway's, rewritten.
--
-- A template like haproxy.cfg. Gives HAProxy four things:
--   %[lua.error_body(name)]       the JSON body of one of OWN, in the dialect of the request
--   %[lua.retry_after()]          seconds until a slot that doesn't answer is worth another try
--   http-response lua.own_error   replaces a gateway answer >= 300 by one of ours
--   use-service lua.too_large     the 413 for a body above the limit
-- The dialect is `anthropic` when txn.dialect says so (paths /v1/messages*), else OpenAI's.
-- Runs on Lua 5.3 and 5.4. A body longer than HAProxy's buffer (16 kB) arrives cut off and
-- is answered with the general text of its status.

local SITE = "@{SITE_URL}"

-- Set at run time: slots whose model is being replaced, slots to which no engine is coming ("out":
-- admins took it out), and what to call in an old model's place.
local ROTATIONS = Map.new("@{RUN_DIR}/rotations.map", Map._str)
local IDLE = Map.new("@{RUN_DIR}/idle.map", Map._str)
local RETIRED = Map.new("@{RUN_DIR}/retired.map", Map._str)

local MAX_SCANNED = 2000 -- bytes of upstream text looked at; the redaction below is quadratic
local MAX_SHOWN = 1000 -- bytes of it shown
local REMOVED = "[removed]"

-- Anthropic's error types by status; OpenAI's stand with each error.
local ANTHROPIC = {
  [400] = "invalid_request_error", [401] = "authentication_error", [403] = "permission_error",
  [404] = "not_found_error", [413] = "request_too_large", [429] = "rate_limit_error",
  [503] = "overloaded_error", [504] = "timeout_error",
}

local function openai_type(status)
  if status == 401 then return "authentication_error" end
  if status == 403 then return "permission_error" end
  if status == 429 then return "rate_limit_error" end
  if status >= 500 then return "server_error" end
  return "invalid_request_error"
end

local OWN = {
  unknown_url = { 404, "Unknown URL. The API answers under /v1/, for example POST "
    .. "/v1/chat/completions; how to call it stands at " .. SITE .. "/key/." },
  method_not_allowed = { 405, "Method not allowed. /v1/models takes GET, all other paths POST." },
  bad_request = { 400, "This request is not valid HTTP for this path." },
  upgrade_refused = { 400, "WebSocket and other upgrades are not offered. Send a plain POST; "
    .. "\"stream\": true streams the answer." },
  length_required = { 411, "Send the body with one Content-Length header (no chunked encoding)." },
  request_too_large = { 413, "The request body is larger than 32 MiB. Send less context or "
    .. "smaller files." },
  internal_error = { 500, "The edge failed on this request. Try again." },
  bad_gateway = { 502, "The gateway failed before it answered. Your request may have run; "
    .. "try again." },
  service_unavailable = { 503, "The API is not available at the moment. Nothing was run; try "
    .. "again in a few seconds." },
  timeout = { 504, "The gateway did not answer in time. Try again, or with a shorter request." },
  model_unavailable = { 503, "The model is not available at the moment; this is not your limit. "
    .. "Try again in a few seconds." },
  key_check_unavailable = { 503, "Your key can't be checked at the moment; this says nothing "
    .. "about the key. Keep it and try again in a few seconds." },
  missing_api_key = { 401, "No API key was sent. Send it as \"Authorization: Bearer sk-...\" or "
    .. "\"x-api-key: sk-...\". Your key: " .. SITE .. "/key/." },
  invalid_api_key = { 401, "Invalid API key. Check that it was copied whole; if it was rotated or "
    .. "revoked, create another at " .. SITE .. "/key/." },
  blocked_api_key = { 401, "This API key is paused, revoked, or stopped by an admin. Its state "
    .. "stands at " .. SITE .. "/key/." },
  field_not_allowed = { 400, "The request has a field that is not allowed. Send only fields of the "
    .. "API's documentation." },
  wrong_api = { 404, "This model does not answer at this address. Embedding models answer at "
    .. "/v1/embeddings, all others at /v1/chat/completions, /v1/messages and /v1/responses." },
  permission_denied = { 403, "This API key may not do that. What keys may do: "
    .. SITE .. "/key/." },
}

local RETRY_AFTER = { [502] = 2, [503] = 5, [504] = 5 }

-- JSON -----------------------------------------------------------------------------------

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function escape_ascii(char)
  return ESCAPES[char] or string.format("\\u%04x", char:byte())
end

--- The longest valid UTF-8 reading of `text`: each wrong byte becomes U+FFFD.
local function valid_utf8(text)
  local out, at = {}, 1
  while at <= #text do
    local _, wrong = utf8.len(text, at)
    if not wrong then
      out[#out + 1] = text:sub(at)
      break
    end
    out[#out + 1] = text:sub(at, wrong - 1)
    out[#out + 1] = "\u{FFFD}"
    at = wrong + 1
  end
  -- Lua 5.3 lets surrogates pass.
  return (table.concat(out):gsub("\xED[\xA0-\xBF][\x80-\xBF]", "\u{FFFD}"))
end

local function json_string(text)
  return '"' .. valid_utf8(text):gsub('[%c"\\]', escape_ascii) .. '"'
end

local UNESCAPES = { b = " ", f = " ", n = "\n", r = "\r", t = "\t" }

local function code_point(text, at)
  local first = tonumber(text:match("^u(%x%x%x%x)", at) or "", 16)
  if not first then return nil end
  if first < 0xD800 or first > 0xDFFF then return utf8.char(first), at + 5 end
  local second = tonumber(text:match("^u%x%x%x%x\\u(%x%x%x%x)", at) or "", 16)
  if first > 0xDBFF or not second or second < 0xDC00 or second > 0xDFFF then
    return "\u{FFFD}", at + 5
  end
  return utf8.char(0x10000 + (first - 0xD800) * 0x400 + second - 0xDC00), at + 11
end

--- Decodes the JSON string whose first character is at `at`; nil if it does not end.
local function decode_string(text, at)
  local out = {}
  while true do
    local stop = text:find('["\\]', at)
    if not stop then return nil end
    out[#out + 1] = text:sub(at, stop - 1)
    if text:sub(stop, stop) == '"' then return table.concat(out) end
    local escaped = text:sub(stop + 1, stop + 1)
    at = stop + 2
    if escaped == "u" then
      local char, after = code_point(text, stop + 1)
      if not char then return nil end
      out[#out + 1], at = char, after
    else
      out[#out + 1] = UNESCAPES[escaped] or escaped
    end
  end
end

-- The gateway's texts --------------------------------------------------------------------

local FIELDS = { '"message"%s*:%s*"', '"error"%s*:%s*"', '"detail"%s*:%s*"', '"msg"%s*:%s*"' }

--- The innermost message in `text`: the gateway wraps an engine's error body into its own.
local function find_message(text, depth)
  for _, field in ipairs(FIELDS) do
    local _, stop = text:find(field)
    local message = stop and decode_string(text, stop + 1)
    if message then
      return depth < 4 and find_message(message, depth + 1) or message
    end
  end
  local start = text:sub(1, MAX_SCANNED) -- a Python dict, as the gateway prints some errors
  return start:match("'message':%s*'(.-)'[,}]") or start:match("'error':%s*'(.-)'[,}]")
end

local PREFIXES = { "^litellm%.[%w_.]+:%s*", "^%u%w*Error:%s*", "^%u[%w_]*Exception%s*%-%s*",
  "^/[%w/_]+:%s*", "^anthropic_messages:%s*", "^%s+" }
local TAILS = { "Received Model Group=", "Available Model Group Fallbacks", "LiteLLM Retried",
  "LiteLLM: model group", "Call `/v1/models`" }

local function strip_wrapping(text)
  local before
  repeat
    before = text
    for _, prefix in ipairs(PREFIXES) do text = text:gsub(prefix, "", 1) end
  until text == before
  for _, tail in ipairs(TAILS) do
    local at = text:find(tail, 1, true)
    if at then text = text:sub(1, at - 1) end
  end
  return text
end

local SECRETS = {
  "%a[%w+.-]*://[^%s\"'<>]+", -- URLs
  "sk%-[%w_.*-]+", -- keys, also masked ones
  ("%x"):rep(64) .. "%x*", -- SHA-256 of a key
  "%[[%x:.]*:[%x:.]*%][:%d]*", -- [::1]:8000
  "%x*:%x*:[%x:]*%x", -- IPv6
  "%f[%d]%d+%.%d+%.%d+%.%d+[:%d]*", -- IPv4, with a port
  "%f[%w][%w_.-]+:%d%d+", -- host:port
}

--- `text` without addresses, hashes and keys. A token cut in two at the end is dropped, since
--- half a hash is not recognised as one.
local function redact(text)
  if #text > MAX_SCANNED then
    text = text:sub(1, MAX_SCANNED):match("^(.*)%s") or ""
  end
  for _, secret in ipairs(SECRETS) do text = text:gsub(secret, REMOVED) end
  return (text:gsub("%[removed%]['\"]?,%s*%d+", REMOVED):gsub("(%f[%a][Pp]ort[ =:]+)%d+", "%1" .. REMOVED))
end

--- Cuts at `limit` bytes, never inside a UTF-8 character.
local function shorten(text, limit)
  if #text <= limit then return text end
  while limit > 0 and text:byte(limit + 1) & 0xC0 == 0x80 do limit = limit - 1 end
  return text:sub(1, limit) .. "..."
end

local function readable(text)
  local clean = redact(strip_wrapping(text)):gsub("%s+$", "")
  return clean:find("%w") and shorten(clean, MAX_SHOWN) or nil
end

-- From a gateway answer to ours ----------------------------------------------------------

local function own(name, code)
  return { status = OWN[name][1], code = code or name, message = OWN[name][2] }
end

-- The only texts of the gateway that mean "this key is wrong". Any other 401 (it also says 401
-- when the check itself failed) must not make a member throw a good key away.
local BAD_KEY = {
  { "No api key passed in", "missing_api_key" },
  { "Key is blocked", "blocked_api_key" },
  { "Expired Key", "invalid_api_key" },
  { "Virtual Key expected", "invalid_api_key" },
  { "Invalid API key", "invalid_api_key" },
  { "Invalid proxy server token", "invalid_api_key" },
  { "Malformed API Key", "invalid_api_key" },
  { "token_not_found_in_db", "invalid_api_key" },
}

local DATABASE_DOWN = { "no_db_connection", "No connected db", "No DB Connected" }

-- The engine refused the gateway: our fault, whatever the member's key.
local ENGINE_REFUSED = { "litellm.AuthenticationError", "litellm.PermissionDeniedError" }

local ROTATION_RETRY = 30 -- seconds; an engine loads for minutes
local ROTATION = "A model rotation is under way "

--- Both when the pool answers and when the gateway hands on what the pool said.
local function rotating(since)
  return { status = 503, code = "model_rotating", retry_after = ROTATION_RETRY, message = ROTATION
    .. since .. ": the new model is still loading. This is not your limit and nothing was run. "
    .. "Try again in " .. ROTATION_RETRY .. " seconds." }
end

local OUT = "The admins have taken this model out of service"
local OUT_RETRY = 300 -- seconds; longer than clients wait by themselves

local function taken_out()
  return { status = 503, code = "model_taken_out", retry_after = OUT_RETRY, message = OUT
    .. ": no engine runs. This is not your limit and nothing was run. What runs now stands at "
    .. SITE .. "/status/." }
end

local function contains_any(text, words)
  for _, word in ipairs(words) do
    if text:find(word, 1, true) then return true end
  end
  return false
end

-- Fields of a body that the gateway itself would obey: a 401 there, though no key is wrong.
local FIELD_REFUSED = "is not allowed in request body"

local function unauthorized(body)
  if body:find(FIELD_REFUSED, 1, true) then return own("field_not_allowed", "invalid_request") end
  for _, case in ipairs(BAD_KEY) do
    if body:find(case[1], 1, true) then return own(case[2]) end
  end
  return own("key_check_unavailable")
end

--- The number in x-ratelimit-SCOPE-limit-KIND, where the text names none.
local function limit_in_headers(headers, kind)
  for name, values in pairs(headers) do
    if name:find("^x%-ratelimit%-.*limit%-" .. kind .. "$") then
      return tostring(values[0]):match("^%d+$")
    end
  end
end

--- A member's own limit stays a 429; every other 429 is the gateway's word for an outage.
local function limited(headers, body)
  local kind = headers["rate_limit_type"] and headers["rate_limit_type"][0]
    or body:match("Limit type: ([%w_]+)")
  local number = kind and (body:match("Current limit: (%d+)") or limit_in_headers(headers, kind))
  if kind == "max_parallel_requests" then
    return { status = 429, code = kind, retry_after = 1, message = "Limit reached: "
      .. (number or "your number of") .. " requests in parallel. Wait until one of your running "
      .. "requests ends, then try again. Refused requests count towards your requests per minute." }
  elseif kind == "requests" then
    local told = headers["retry-after"] and tonumber(headers["retry-after"][0]) or 60
    local wait = math.max(1, math.min(60, math.ceil(told)))
    return { status = 429, code = "requests_per_minute", retry_after = wait, message =
      "Limit reached: " .. (number or "your number of") .. " requests per minute. Try again in "
      .. wait .. " seconds at most. Refused requests count too." }
  end
  return own("model_unavailable")
end

local GENERAL = {
  [404] = "Not found: the model or path does not exist. GET /v1/models lists the models.",
  [422] = "The request could not be processed: a field has a wrong value.",
}

-- The model's engine, all of it: it has no route for what its model can't do.
local NO_ROUTE = "Not Found"

-- The gateway stumbled over the body: Python's words, which help nobody.
local PYTHON = { "object has no attribute", "' object is not", "' object does not", "NoneType",
  "Traceback", "positional argument", "unexpected keyword", "unhashable type", "indices must be",
  "not supported between instances" }

local function refused(status, body)
  local text = find_message(body, 1)
  if text and contains_any(text, PYTHON) then text = nil end
  local model = text and text:match("Invalid model name passed in model=(.-)%. ")
  local successor = model and RETIRED:lookup(model)
  if successor then
    return { status = 404, code = "model_retired", message = "The model '" .. model
      .. "' was retired and no longer runs here. Use '" .. successor .. "' in its place." }
  elseif model then
    return { status = 404, code = "model_not_found", message = "Unknown model '"
      .. shorten(redact(model), 100) .. "'. GET /v1/models lists the models you can use." }
  end
  local shown = text and readable(text) or GENERAL[status]
    or "The request was refused: check its fields against the API's documentation."
  if status == 404 and shown == NO_ROUTE then return own("wrong_api") end
  return { status = status, code = "invalid_request", message = shown }
end

local SERVER_ERRORS = { [408] = "timeout", [504] = "timeout", [503] = "model_unavailable",
  [529] = "model_unavailable" }

local function classify(status, headers, body)
  local since = status >= 429 and body:match(ROTATION .. "(since %d%d:%d%d[ A-Z]*): ")
  if since then return rotating(since) end
  if status >= 429 and body:find(OUT, 1, true) then return taken_out() end
  if status ~= 401 and contains_any(body, DATABASE_DOWN) then return own("key_check_unavailable") end
  if contains_any(body, ENGINE_REFUSED) then return own("bad_gateway") end
  if status == 401 then return unauthorized(body) end
  if status == 403 then return own("permission_denied") end
  if status == 413 then return own("request_too_large") end
  if status == 429 then return limited(headers, body) end
  if SERVER_ERRORS[status] then return own(SERVER_ERRORS[status]) end
  if status < 400 or status >= 500 then return own("bad_gateway") end
  return refused(status, body)
end

-- Into HAProxy ---------------------------------------------------------------------------

local function render(txn, answer)
  local message = json_string(answer.message)
  if txn:get_var("txn.dialect") == "anthropic" then
    local kind = ANTHROPIC[answer.status]
      or (answer.status < 500 and "invalid_request_error" or "api_error")
    return '{"type":"error","error":{"type":"' .. kind .. '","message":' .. message .. "}}"
  end
  return '{"error":{"message":' .. message .. ',"type":"' .. openai_type(answer.status)
    .. '","param":null,"code":"' .. answer.code .. '"}}'
end

local function pool_error(txn, name)
  if name ~= "model_unavailable" then return own(name) end
  local since = ROTATIONS:lookup(txn.f:be_name())
  if since then return rotating(since) end
  return IDLE:lookup(txn.f:be_name()) == "out" and taken_out() or own(name)
end

core.register_fetches("error_body", function(txn, name)
  return render(txn, pool_error(txn, name))
end)

core.register_fetches("retry_after", function(txn)
  return tostring(pool_error(txn, "model_unavailable").retry_after or RETRY_AFTER[503])
end)

local MAX_DRAINED = 64 * 1024 * 1024 -- bytes of a refused body read before the answer

--- 413 after reading the body: many clients send all of it first, and would otherwise see a
--- broken connection in place of the answer. Above MAX_DRAINED the answer comes at once.
core.register_service("too_large", "http", function(applet)
  local header = applet.headers["content-length"]
  local left = header and tonumber(header[0]) or math.huge
  while left > 0 and left <= MAX_DRAINED do
    local part = applet:receive(65536)
    if not part or part == "" then break end
    left = left - #part
  end
  local body = render(applet, own("request_too_large"))
  applet:set_status(413)
  applet:add_header("content-type", "application/json")
  applet:add_header("content-length", tostring(#body))
  applet:add_header("connection", "close")
  applet:start_response()
  applet:send(body)
end)

core.register_action("own_error", { "http-res" }, function(txn)
  local headers = txn.http:res_get_headers()
  local answer = classify(txn.f:status(), headers, txn.sf:res_body())
  local reply = txn:reply({ status = answer.status })
  reply:add_header("content-type", "application/json")
  reply:add_header("cache-control", "no-store")
  local retry_after = answer.retry_after or RETRY_AFTER[answer.status]
  if retry_after then reply:add_header("retry-after", tostring(retry_after)) end
  -- Claude Code would repeat a 401 for three minutes.
  if answer.status == 401 or answer.status == 403 then
    reply:add_header("x-should-retry", "false")
  end
  reply:set_body(render(txn, answer))
  txn:done(reply)
end)
