-- Segstream's shipments, for Wireshark and tshark: every field of docs/spec, version 4 of the protocol.
--
-- Copy this file to the folder that Help > About > Folders calls Personal Lua Plugins, or name it:
--
--     tshark -X lua_script:segstream.lua -r trace.pcap -Y segstream
--
-- A UDP flow is taken for Segstream's when a datagram begins as a shipment does and its CRC32C holds: a CR, CK, CC or RJ of any
-- connection, or any shipment in plain mode. From then on the flow belongs to this dissector. A flow of which no such datagram was
-- captured is named by Decode As, or `-d udp.port==4433,segstream`.
--
-- Of an encrypted connection this shows set-up, connection identifiers and lengths; and all of it if the preference "Key log" names the
-- file that `--key-log` of one of its ends has written, and segstream_tls.lua lies beside this file:
--
--     tshark -X lua_script:segstream.lua -o segstream.key_log:keys.txt -r trace.pcap -Y segstream
--
-- Limit: the full number of a shipment is taken for its low 32 bits, so a plain connection's shipments after the first 2^32 count as
-- damaged. Several datagrams in one packet of the capture (GSO at the sending machine) cannot be told apart.

local segstream = Proto("segstream", "Segstream")
segstream.prefs.key_log = Pref.string("Key log", "", "The secrets of encrypted connections, as --key-log writes them")

-- The folder of this file.
local folder = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
local tls_loaded, tls = pcall(dofile, folder .. "segstream_tls.lua")

-- 2.1: kinds by their number.
local KIND = {[0] = "CR", "CC", "RJ", "DR", "DC", "DT", "TXS", "RXS", "CK", "HS", "PC", "PR", "RP"}
local LEVEL = {[0] = "initial", "handshake", "data", "data"}
local PROTECTION = {[0] = "plain", "TLS 1.3"}
local REJECT = {[0] = "Version", "Busy", "NotAccepting", "Unacceptable", "Refused", "Protection", "Handshake"}
local REFUSE = {[0] = "TooManyStreams", "NotWanted"}
local VERDICT = {[0] = "complete", "within_tolerance", "expired"}
local FRAME = {
    [0x01] = "OPEN", [0x02] = "FINISHED", [0x03] = "SKIP", [0x04] = "END", [0x05] = "WAITING", [0x06] = "RECLASS", [0x07] = "REACHED",
    [0x11] = "GRANT", [0x12] = "COMPLETE", [0x13] = "JUDGED", [0x14] = "REQUEST", [0x15] = "RECLASS_ECHO", [0x16] = "REFUSED",
    [0x17] = "ARRIVAL", [0x18] = "MAX_STREAMS", [0x19] = "LOSSES", [0x1a] = "EXTENSIONS", [0x1b] = "ANY_REPAIRS", [0x1c] = "DURABLE",
}
local INTERLEAVE = {[0] = "auto", "off", "in blocks", "invalid"}

local f, all = {}, {}
local function field(name, make, ...)
    f[name] = make("segstream." .. name, ...)
    all[#all + 1] = f[name]
end
local function number(name, text, make, ...) field(name, make or ProtoField.uint64, text, ...) end

field("form", ProtoField.uint8, "Form", base.DEC, nil, 0xc0)
field("level", ProtoField.uint8, "Level", base.DEC, LEVEL, 0x30)
field("kind", ProtoField.uint8, "Kind", base.DEC, KIND, 0x0f)
field("protected", ProtoField.uint8, "Protected bits", base.HEX, nil, 0x1f)
field("connection", ProtoField.uint32, "Destination connection identifier", base.HEX)
number("number", "Shipment number", ProtoField.uint32)
field("protected_number", ProtoField.uint32, "Protected shipment number", base.HEX)
field("sealed", ProtoField.bytes, "Sealed body")
field("seal", ProtoField.uint32, "Seal (CRC32C)", base.HEX)
field("tag", ProtoField.bytes, "Seal (AEAD tag)")
-- 6: set-up and end.
number("version", "Version", ProtoField.uint16)
field("request_identifier", ProtoField.uint64, "Request identifier", base.HEX)
field("own_connection", ProtoField.uint32, "Connection identifier of the sender", base.HEX)
field("protection", ProtoField.uint8, "Protection", base.DEC, PROTECTION)
number("token_length", "Token length", ProtoField.uint8)
field("token", ProtoField.bytes, "Token")
number("fragment_offset", "Handshake bytes: offset")
number("fragment_length", "Handshake bytes: length")
field("fragment", ProtoField.bytes, "Handshake bytes")
field("padding", ProtoField.bytes, "Padding")
number("parameters_length", "Length of proposal or agreement", ProtoField.uint16)
number("class", "Class", ProtoField.uint8)
number("rate", "Rate (bit/s)")
number("max_streams", "Limit of live streams")
number("max_datagram", "Limit of datagram bytes")
number("idle_timeout_ms", "Idle timeout (ms)")
number("streams", "Streams", ProtoField.uint8)
field("extensions", ProtoField.uint64, "Extensions", base.HEX)
field("reset", ProtoField.uint8, "Stateless reset token follows", base.DEC)
field("reset_token", ProtoField.bytes, "Stateless reset token")
field("reject_reason", ProtoField.uint8, "Reason", base.DEC, REJECT)
field("abort", ProtoField.uint8, "Abort", base.DEC)
number("code", "Code")
number("text_length", "Text length")
field("text", ProtoField.string, "Text")
field("challenge", ProtoField.uint64, "Challenge", base.HEX)
-- 4.1: the contract.
number("unit_bytes", "Unit bytes")
number("window", "Tolerance: W")
number("errors", "Tolerance: E")
number("burst", "Tolerance: B")
number("importance", "Importance")
field("contract_flags", ProtoField.uint8, "Contract flags", base.HEX)
field("as_accepted", ProtoField.bool, "Delivered as accepted", 8, nil, 0x01)
field("interleave", ProtoField.uint8, "Interleaving", base.DEC, INTERLEAVE, 0x06)
number("depth", "Interleaving depth")
number("lifetime_us", "Lifetime (us)")
number("window_units", "Window (units)")
number("window_segments", "Window (segments)")
number("weight", "Weight", ProtoField.uint8)
-- 3: parts.
field("part_flags", ProtoField.uint8, "Part flags", base.HEX)
field("again", ProtoField.bool, "Again (retransmission)", 8, nil, 0x01)
field("has_length", ProtoField.bool, "Length follows", 8, nil, 0x02)
field("has_tolerance", ProtoField.bool, "Tolerance follows", 8, nil, 0x04)
field("opened", ProtoField.bool, "Opened before its length was known", 8, nil, 0x08)
number("stream", "Stream")
number("segment", "Segment")
number("first", "First position")
number("count", "Positions")
number("source_time_us", "Source time (us)")
number("length", "Segment length (bytes)")
number("payload_length", "Payload bytes")
field("payload", ProtoField.bytes, "Payload")
-- 4: the sender's state.
field("state_flags", ProtoField.uint8, "State flags", base.HEX)
field("answer", ProtoField.bool, "Immediate report requested", 8, nil, 0x01)
field("exchange", ProtoField.bool, "Exchange", 8, nil, 0x02)
number("sync", "SYNC")
number("time_ns", "TIME (ns)")
number("confirmed", "Confirmed report + 1")
field("confirmed_bitmap", ProtoField.uint64, "Confirmed before it", base.HEX)
field("frame", ProtoField.uint8, "Frame", base.HEX, FRAME)
field("finished_flags", ProtoField.uint8, "Flags", base.HEX)
number("last_shipment", "Last shipment + 1")
number("last_shipment_reached", "Last shipment")
number("position", "Position")
number("segments", "Segments")
number("change", "Change")
-- 5: the receiver's state.
number("report", "Report number")
number("echo", "Echo + 1")
number("reorder", "Reordering threshold R")
number("time_echo", "Echoed TIME + 1")
number("held_ns", "Held (ns)")
number("units", "Units")
field("end_known", ProtoField.uint8, "End known", base.DEC)
field("verdict", ProtoField.uint8, "Verdict", base.DEC, VERDICT)
number("from_unit", "From unit")
number("to_unit", "To unit")
field("request_flags", ProtoField.uint8, "Request flags", base.HEX)
field("tail", ProtoField.bool, "Tail follows", 8, nil, 0x01)
field("length_wanted", ProtoField.bool, "Length requested", 8, nil, 0x02)
number("tail_from", "Everything from position")
number("runs", "Runs")
number("gap", "Gap")
number("run_length", "Length")
field("refuse_reason", ProtoField.uint8, "Reason", base.DEC, REFUSE)
number("arrival_ns", "Arrival (ns)")
number("arrived_bytes", "Bytes arrived")
number("arrived_shipments", "Shipments arrived")
number("lost", "Shipments declared lost")
number("marked", "Shipments marked CE")
number("judged_shipments", "Shipments judged")
number("lost_runs", "Runs of lost shipments")
number("protected_lost", "Protected units lost")
number("repairs_held", "Repair units held")
number("every", "Every so many-th unit is protected")
number("repair_first", "First repair unit")
number("repair_count", "Repair units")
number("streams_total", "Streams in all", ProtoField.uint64)
number("durable", "Durable segments")
field("last_confirmation", ProtoField.uint8, "Last confirmation", base.DEC)
field("summary", ProtoField.string, "Summary")
segstream.fields = all

local damaged = ProtoExpert.new("segstream.damaged", "The seal does not hold", expert.group.CHECKSUM, expert.severity.ERROR)
local malformed = ProtoExpert.new("segstream.malformed", "The body is none of its kind", expert.group.MALFORMED, expert.severity.ERROR)
segstream.experts = {damaged, malformed}

-- What is wrong with a body; raised by the reader, caught by the dissector.
local function refuse(why) error({segstream = why}, 0) end

-- Reads fields one after the other, and adds each to a tree.
local Reader = {}
Reader.__index = Reader

function Reader.new(tvb, at, stop, tree) return setmetatable({tvb = tvb, at = at, stop = stop, tree = tree}, Reader) end

function Reader:left() return self.stop - self.at end

function Reader:take(bytes)
    if bytes > self:left() then refuse("it ends in the middle of a field") end
    local range = self.tvb(self.at, bytes)
    self.at = self.at + bytes
    return range
end

function Reader:u8(name)
    local range = self:take(1)
    self.tree:add(f[name], range)
    return range:uint()
end

-- A byte whose bits are fields of their own.
function Reader:flags(name, known, ...)
    local range = self:take(1)
    local sub = self.tree:add(f[name], range)
    for _, bit_name in ipairs({...}) do sub:add(f[bit_name], range) end
    if bit.band(range:uint(), bit.bnot(known)) ~= 0 then refuse("unknown flags") end
    return range:uint()
end

function Reader:fixed(name, bytes)
    local range = self:take(bytes)
    self.tree:add(f[name], range)
    return bytes == 8 and range:uint64() or range:uint()
end

-- 1.4, RFC 9000 16. A number below 2^30 is a Lua number, a longer one a UInt64.
function Reader:varint(name)
    local first = self.tvb(self.at, self:left() > 0 and 1 or refuse("it ends in the middle of a field")):uint()
    local range = self:take(2 ^ bit.rshift(first, 6))
    local value
    if range:len() == 8 then
        value = range:uint64():band(UInt64.new(0xffffffff, 0x3fffffff))
        self.tree:add(f[name], range, value)
        return value
    end
    value = range:uint() % (range:len() == 4 and 2 ^ 30 or range:len() == 2 and 2 ^ 14 or 2 ^ 6)
    self.tree:add(f[name], range, UInt64.new(value, 0))
    return value
end

-- A varint that counts bytes or elements, as a Lua number.
function Reader:length(name)
    local value = self:varint(name)
    return type(value) == "number" and value or value:tonumber()
end

function Reader:bytes(name, count)
    local range = count > 0 and self:take(count) or nil
    if range then self.tree:add(f[name], range) end
    return range
end

-- A length and as many bytes of UTF-8 (1.4).
function Reader:text()
    local range = self:bytes("text", self:length("text_length"))
    return range and range:string(ENC_UTF_8) or ""
end

-- Reads what `read` reads into a tree of its own, named by the summary that it returns.
function Reader:group(read, summaries)
    local outer, start = self.tree, self.at
    self.tree = outer:add(segstream, self.tvb(start, math.min(1, self:left())), "")
    local summary = read(self)
    self.tree:set_len(self.at - start)
    self.tree:set_text(summary)
    if summaries then
        self.tree:add(f.summary, self.tvb(start, self.at - start), summary):set_generated()
        summaries[#summaries + 1] = summary
    end
    self.tree = outer
end

local function hex(value, digits)
    return type(value) == "number" and string.format("%0" .. digits .. "x", value) or value:tohex(digits)
end

local function quoted(text)
    local escapes = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r", ["\0"] = "\\0"}
    return '"' .. text:gsub('["\\\n\t\r%z]', escapes) .. '"'
end

-- One less than a varint that counts from 1; nil for 0. Both may be beyond what a Lua number holds exactly.
local function less_one(value)
    if type(value) == "number" then return value > 0 and value - 1 or nil end
    return value - UInt64.new(1, 0)
end

local function sum(one, other)
    if type(one) == "number" and type(other) == "number" then return one + other end
    local function wide(value) return type(value) == "number" and UInt64.new(value, 0) or value end
    return wide(one) + wide(other)
end

-- Bits per second with the unit that keeps the number at least one.
local function rate(value)
    value = type(value) == "number" and value or value:tonumber()
    for _, unit in ipairs({{1e9, "Gbit/s"}, {1e6, "Mbit/s"}, {1e3, "kbit/s"}}) do
        if value >= unit[1] then return string.format("%.15g %s", math.floor(value / unit[1] * 1000 + 0.5) / 1000, unit[2]) end
    end
    return string.format("%d bit/s", value)
end

local function tolerance(r) return r:varint("window"), r:varint("errors"), r:varint("burst") end

-- 4.1
local function contract(r)
    local unit = r:varint("unit_bytes")
    local w, e, b = tolerance(r)
    r:varint("importance")
    local flags = r:flags("contract_flags", 0x07, "as_accepted", "interleave")
    if bit.band(flags, 0x06) == 0x04 then r:varint("depth") end
    r:varint("lifetime_us")
    r:varint("window_units")
    r:varint("window_segments")
    r:u8("weight")
    return string.format("%s units of %s bytes tolerance %s,%s,%s", quoted(r:text()), unit, w, e, b)
end

-- 6.5
local function limits(r)
    r:varint("max_streams")
    r:varint("max_datagram")
    r:varint("idle_timeout_ms")
end

-- 5.2: runs of numbers, as text.
local function runs(r)
    local count, at, texts = r:length("runs"), 0, {}
    if 2 * count > r:left() then refuse("more runs than bytes") end
    for _ = 1, count do
        local first = sum(at, r:varint("gap"))
        local length = r:varint("run_length")
        at = sum(first, length)
        texts[#texts + 1] = length == 1 and tostring(first) or string.format("%s..%s", first, at)
    end
    return count > 0 and table.concat(texts, ",") or "none"
end

-- 4.4, 4.5
local function finished(verb)
    return function(r)
        local flags = r:flags("finished_flags", 0x03)
        local stream, segment, length = r:varint("stream"), r:varint("segment"), r:varint("length")
        r:varint("source_time_us")
        r:varint("last_shipment")
        if bit.band(flags, 1) ~= 0 then tolerance(r) end
        return string.format("%s stream %s segment %s of %s bytes", verb, stream, segment, length)
    end
end

local frames = {
    [0x01] = function(r)
        local stream = r:varint("stream")
        return string.format("open stream %s %s", stream, contract(r))
    end,
    [0x02] = finished("finished"),
    [0x03] = finished("skip"),
    [0x04] = function(r)
        local stream = r:varint("stream")
        return string.format("end stream %s after %s segments", stream, r:varint("segments"))
    end,
    [0x05] = function(r) return string.format("waiting stream %s", r:varint("stream")) end,
    [0x06] = function(r)
        local change, class = r:varint("change"), r:u8("class")
        return string.format("change %s class %s rate %s", change, class, rate(r:varint("rate")))
    end,
    [0x07] = function(r)
        local flags = r:flags("finished_flags", 0x01)
        local stream, segment, position = r:varint("stream"), r:varint("segment"), r:varint("position")
        r:varint("source_time_us")
        r:varint("last_shipment_reached")
        if bit.band(flags, 1) ~= 0 then tolerance(r) end
        return string.format("reached stream %s segment %s up to position %s", stream, segment, position)
    end,
    [0x11] = function(r)
        local stream, segments, units = r:varint("stream"), r:varint("segments"), r:varint("units")
        local known = r:u8("end_known") == 1 and " end known" or ""
        return string.format("grant stream %s segments %s units %s%s", stream, segments, units, known)
    end,
    [0x12] = function(r)
        local stream, first = r:varint("stream"), r:varint("segment")
        return string.format("complete stream %s segments %s..%s", stream, first, sum(first, r:varint("segments")))
    end,
    [0x13] = function(r)
        local stream, segment, verdict = r:varint("stream"), r:varint("segment"), r:u8("verdict")
        local units = r:varint("units")
        r:varint("from_unit")
        r:varint("to_unit")
        local name = VERDICT[verdict] or refuse("an unknown verdict")
        return string.format("judged stream %s segment %s %s of %s units holes %s", stream, segment, name, units, runs(r))
    end,
    [0x14] = function(r)
        local flags = r:flags("request_flags", 0x03, "tail", "length_wanted")
        local stream, segment, missing = r:varint("stream"), r:varint("segment"), runs(r)
        local tail = bit.band(flags, 1) ~= 0 and string.format(" %s..", r:varint("tail_from")) or ""
        local length = bit.band(flags, 2) ~= 0 and " length" or ""
        return string.format("request stream %s segment %s positions %s%s%s", stream, segment, missing, tail, length)
    end,
    [0x15] = function(r)
        local change = r:varint("change")
        return string.format("change %s accepted class %s", change, r:u8("class"))
    end,
    [0x16] = function(r)
        local stream = r:varint("stream")
        return string.format("refused stream %s %s", stream, REFUSE[r:u8("refuse_reason")] or "NotWanted")
    end,
    [0x17] = function(r)
        local sync, at, bytes = r:varint("sync"), r:varint("arrival_ns"), r:varint("arrived_bytes")
        local shipments, lost, marked = r:varint("arrived_shipments"), r:varint("lost"), r:varint("marked")
        return string.format("arrival of sync %s at %s ns after %s bytes in %s shipments, %s lost, %s marked",
            sync, at, bytes, shipments, lost, marked)
    end,
    [0x18] = function(r) return string.format("streams up to %s in all", r:varint("streams_total")) end,
    [0x19] = function(r)
        local judged, lost = r:varint("judged_shipments"), r:varint("lost")
        return string.format("losses %s of %s shipments in %s runs", lost, judged, r:varint("lost_runs"))
    end,
    [0x1b] = function(r)
        local stream, segment, lost = r:varint("stream"), r:varint("segment"), r:varint("protected_lost")
        return string.format("any repairs stream %s segment %s for %s units, %s held", stream, segment, lost, r:varint("repairs_held"))
    end,
    [0x1c] = function(r)
        local stream, segments = r:varint("stream"), r:varint("durable")
        local last = r:u8("last_confirmation") == 1 and ", no more will be" or ""
        return string.format("durable stream %s below %s%s", stream, segments, last)
    end,
}

-- Frames to the end, whose types are `first` and above of the same sixteen.
local function all_frames(r, first, parts)
    while r:left() > 0 do
        r:group(function()
            local type = r:u8("frame")
            if type < first or type > first + 0x0f or not frames[type] then refuse("an unknown frame") end
            return frames[type](r)
        end, parts)
    end
end

-- 12.1: what an end supports.
local function extensions(r, parts)
    r:group(function() return string.format("extensions %s", r:varint("extensions")) end, parts)
end

-- 6.9, 6.10: what a handshake in the clear proposes or agrees on.
local function proposal(r, parts)
    r:fixed("version", 2)
    r:fixed("request_identifier", 8)
    r:fixed("own_connection", 4)
    r:group(function()
        local class = r:u8("class")
        return string.format("class %s rate %s", class, rate(r:varint("rate")))
    end, parts)
    limits(r)
    for id = 0, r:u8("streams") - 1 do
        r:group(function() return string.format("stream %d %s", id, contract(r)) end, parts)
    end
    if r:left() > 0 then extensions(r, parts) end
end

local function agreement(r, parts)
    r:fixed("request_identifier", 8)
    r:fixed("own_connection", 4)
    r:group(function() return string.format("class %s", r:u8("class")) end, parts)
    limits(r)
    if r:u8("reset") == 1 then r:bytes("reset_token", 16) end
    r:bytes("token", r:u8("token_length"))
    if r:left() > 0 and r.tvb(r.at, 1):uint() == 0x1a then
        r:u8("frame")
        extensions(r, parts)
    end
    all_frames(r, 0x11, parts)
end

-- 6.8: a fragment; with `parameters`, its bytes are read if all of them are there.
local function fragment(r, parts, parameters)
    local from, bytes
    r:group(function()
        local offset, length = r:varint("fragment_offset"), r:length("fragment_length")
        from = r.at
        if parameters and offset == 0 and length >= 2 and length <= r:left() and r.tvb(from, 2):uint() == length - 2 then
            r:take(length)
            bytes = length
        else
            r:bytes("fragment", length)
        end
        return string.format("handshake bytes %s..%s", offset, sum(offset, length))
    end, parts)
    if bytes then
        local inner = Reader.new(r.tvb, from, from + bytes, r.tree)
        inner:fixed("parameters_length", 2)
        parameters(inner, parts)
    end
end

-- 3
local function part(r)
    local flags = r:flags("part_flags", 0x0f, "again", "has_length", "has_tolerance", "opened")
    local stream, segment = r:varint("stream"), r:varint("segment")
    local first, count = r:varint("first"), r:varint("count")
    r:varint("source_time_us")
    local length = bit.band(flags, 2) ~= 0 and string.format(" of %s bytes", r:varint("length")) or ""
    if bit.band(flags, 4) ~= 0 then tolerance(r) end
    r:bytes("payload", r:length("payload_length"))
    local again = bit.band(flags, 1) ~= 0 and " again" or ""
    return string.format("stream %s segment %s%s positions %s..%s%s", stream, segment, length, first, sum(first, count), again)
end

local function text_summary(r, format)
    return string.format(format, quoted(r:text()))
end

-- Bodies by kind: read all fields, collect a summary of each part. `flow.protection` is what the CR of the flow asked for.
local bodies = {
    CR = function(r, parts, flow)
        local mode
        r:group(function()
            local version = r:fixed("version", 2)
            r:fixed("request_identifier", 8)
            local own = r:fixed("own_connection", 4)
            mode = r:u8("protection")
            flow.protection = mode
            local how = mode == 0 and "in the clear" or mode == 1 and "encrypted with TLS 1.3" or "protection " .. mode
            local token = r:u8("token_length")
            r:bytes("token", token)
            local with = token > 0 and string.format(" token of %d bytes", token) or ""
            return string.format("version %s %s answer to %s%s", version, how, hex(own, 8), with)
        end, parts)
        fragment(r, parts, mode == 0 and proposal)
    end,
    CK = function(r, parts)
        r:group(function()
            r:fixed("request_identifier", 8)
            local token = r:u8("token_length")
            r:bytes("token", token)
            return string.format("asks for the request again with a cookie of %d bytes", token)
        end, parts)
    end,
    CC = function(r, parts, flow)
        r:group(function()
            r:fixed("request_identifier", 8)
            return string.format("answer to %s", hex(r:fixed("own_connection", 4), 8))
        end, parts)
        fragment(r, parts, flow.protection == 0 and agreement)
    end,
    RJ = function(r, parts)
        r:group(function()
            r:fixed("request_identifier", 8)
            local reason = r:u8("reject_reason")
            r:fixed("version", 2)
            return text_summary(r, (REJECT[reason] or string.format("Other(%d)", reason)) .. " %s")
        end, parts)
    end,
    DR = function(r, parts)
        r:group(function()
            local abort = r:u8("abort")
            local code = tostring(r:varint("code"))
            return text_summary(r, string.format("%s code %s", abort == 1 and "abort" or "close", code) .. " %s")
        end, parts)
    end,
    DC = function() end,
    DT = function(r, parts)
        while r:left() > 0 do r:group(part, parts) end
    end,
    TXS = function(r, parts)
        r:group(function()
            local flags = r:flags("state_flags", 0x03, "answer", "exchange")
            local sync = r:varint("sync")
            r:varint("time_ns")
            local confirmed = less_one(r:varint("confirmed"))
            if confirmed then r:fixed("confirmed_bitmap", 8) end
            return string.format("sync %s%s%s%s", sync, confirmed and string.format(" confirms report %s", confirmed) or "",
                bit.band(flags, 1) ~= 0 and " wants an answer" or "", bit.band(flags, 2) ~= 0 and " wants its arrival told" or "")
        end, parts)
        all_frames(r, 0x01, parts)
    end,
    RXS = function(r, parts)
        r:group(function()
            local report, echo, reorder = r:varint("report"), less_one(r:varint("echo")), r:varint("reorder")
            if r:varint("time_echo") ~= 0 then r:varint("held_ns") end
            return string.format("report %s echo %s reorder %s", report, echo and "#" .. tostring(echo) or "nothing", reorder)
        end, parts)
        all_frames(r, 0x11, parts)
    end,
    HS = function(r, parts) fragment(r, parts) end,
    PC = function(r, parts)
        r:group(function() return "asks for " .. hex(r:fixed("challenge", 8), 16) end, parts)
    end,
    PR = function(r, parts)
        r:group(function() return "answers " .. hex(r:fixed("challenge", 8), 16) end, parts)
    end,
    RP = function(r, parts)
        r:group(function()
            local stream, segment, every = r:varint("stream"), r:varint("segment"), r:varint("every")
            local first, count = r:varint("repair_first"), r:varint("repair_count")
            local length = r:length("payload_length")
            r:bytes("payload", length)
            return string.format("repair stream %s segment %s units %s..%s every %s %d bytes", stream, segment, first, sum(first, count),
                every, length)
        end, parts)
    end,
}
-- 2.4: bytes behind the last field of these are ignored.
local PADDED = {CR = true, CK = true, CC = true, HS = true, RJ = true, DR = true, DC = true, PC = true, PR = true}

-- 2.3, RFC 3720 B.4: reflected, polynomial 0x82F63B78.
local CRC = {}
for byte = 0, 255 do
    local value = byte
    for _ = 1, 8 do
        value = bit.bxor(bit.rshift(value, 1), bit.band(value, 1) == 1 and 0x82F63B78 or 0)
    end
    CRC[byte] = value
end

local function crc32c(tvb, length)
    local bytes, value = tvb:range(0, length):bytes(), 0xffffffff
    for at = 0, length - 1 do
        value = bit.bxor(bit.rshift(value, 8), CRC[bit.band(bit.bxor(value, bytes:get_index(at)), 0xff)])
    end
    return bit.bnot(value) % 2 ^ 32
end

local HEADER, SEAL, TAG = 9, 4, 16

local function is_shipment(tvb) return tvb:len() >= HEADER + SEAL and bit.rshift(tvb(0, 1):uint(), 6) == 1 end

local function seal_holds(tvb)
    local length = tvb:len() - SEAL
    return crc32c(tvb, length) == tvb(length, SEAL):uint()
end

-- What is known of each flow, by its two ends, and what each packet was taken for, so that a second pass says the same.
local flows, taken = {}, {}

local function flow_of(pinfo)
    local one, other = tostring(pinfo.src) .. "|" .. pinfo.src_port, tostring(pinfo.dst) .. "|" .. pinfo.dst_port
    local key = one < other and one .. "," .. other or other .. "," .. one
    flows[key] = flows[key] or {}
    return flows[key]
end

-- The encrypted connections by the responder's address and the request identifier, and the same by the identifier that each end has
-- chosen: what of a handshake is readable selects the secrets in the key log.
local connections, secrets = {}, nil

local function secret_of(label, connection)
    if not connection.random or not connection.suite or not tls_loaded then return nil end
    if not secrets then secrets = tls.read_key_log(segstream.prefs.key_log) end
    local secret = secrets[label .. " " .. connection.random]
    return secret and tls.direction(connection.suite, secret)
end

local LABELS = {
    [true] = {[1] = "CLIENT_HANDSHAKE_TRAFFIC_SECRET", [2] = "CLIENT_TRAFFIC_SECRET_0"},
    [false] = {[1] = "SERVER_HANDSHAKE_TRAFFIC_SECRET", [2] = "SERVER_TRAFFIC_SECRET_0"},
}

-- The bytes of a varint at an offset and its length; only as much as a fragment's header needs.
local function small_varint(tvb, at)
    local length = 2 ^ bit.rshift(tvb(at, 1):uint(), 6)
    return tvb(at, length):uint() % 2 ^ (8 * length - 2), at + length
end

-- What a CR or CC of an encrypted connection says: client random and identifier, or cipher suite and identifier.
local function learn(tvb, pinfo, kind)
    local is_request = kind == 0
    local responder = is_request and tostring(pinfo.dst) .. "|" .. pinfo.dst_port or tostring(pinfo.src) .. "|" .. pinfo.src_port
    local at = is_request and 11 or 9
    local key = responder .. "|" .. tvb(at, 8):uint64():tohex()
    local connection = connections[key] or {}
    connections[key] = connection
    local own = tvb(at + 8, 4):uint()
    connections[responder .. (is_request and "|to initiator|" or "|to responder|") .. own] = connection
    at = at + 12
    if is_request then at = at + 2 + tvb(at + 1, 1):uint() end
    local offset, length
    offset, at = small_varint(tvb, at)
    length, at = small_varint(tvb, at)
    -- RFC 8446 4.1.2, 4.1.3: type, length and version, then 32 random bytes; in a ServerHello a session identifier and the suite.
    if offset ~= 0 or length < 44 then return end
    if is_request then
        connection.random = tvb(at + 6, 32):bytes():tohex(true)
    else
        local session = tvb(at + 38, 1):uint()
        connection.suite = tvb(at + 39 + session, 2):uint()
    end
end

-- The direction's keys for a sealed packet, and whether the initiator has sent it.
local function keys_for(tvb, pinfo, level)
    local id = tvb(1, 4):uint()
    local to_responder = connections[tostring(pinfo.dst) .. "|" .. pinfo.dst_port .. "|to responder|" .. id]
    local connection = to_responder or connections[tostring(pinfo.src) .. "|" .. pinfo.src_port .. "|to initiator|" .. id]
    if not connection then return nil end
    local from_initiator = to_responder ~= nil
    local of_level = math.min(level, 2)
    local name = (from_initiator and "initiator " or "responder ") .. of_level
    if connection[name] == nil then
        connection[name] = secret_of(LABELS[from_initiator][of_level], connection) or false
    end
    return connection[name] or nil
end

-- What is under the seal: header and body as bytes of their own. Nil without the keys.
local function opened(tvb, pinfo, level)
    if tvb:len() < HEADER + TAG then return nil end
    local keys = keys_for(tvb, pinfo, level)
    if not keys then return nil end
    local header, sealed = tvb:raw(0, HEADER), tvb:raw(HEADER, tvb:len() - HEADER - TAG)
    if level >= 2 then header = keys:unprotect(header, tvb:raw(HEADER, TAG)) end
    local low = 0
    for at = 6, 9 do low = low * 256 + header:byte(at) end
    local parity = level >= 2 and bit.band(bit.rshift(header:byte(1), 4), 1) or nil
    local body, number = keys:open(low, parity, sealed)
    return body and {bytes = header .. body, number = number}
end

-- What a packet is: in the clear, sealed, opened by a key log, or damaged. A plain connection is known by its CR, or by a shipment of a
-- data level whose CRC holds.
local function taken_for(tvb, pinfo)
    local known = taken[pinfo.number]
    if known then return known end
    local first = tvb(0, 1):uint()
    local flow, level = flow_of(pinfo), bit.band(bit.rshift(first, 4), 3)
    known = {holds = level ~= 1 and seal_holds(tvb), protection = flow.protection}
    if known.holds and level >= 2 then flow.protection, known.protection = 0, 0 end
    if known.holds and level == 0 then
        local kind = bit.band(first, 15)
        if kind == 0 and tvb:len() > 23 then flow.protection, known.protection = tvb(23, 1):uint(), tvb(23, 1):uint() end
        -- A body that is shorter than it says is found when it is shown.
        if kind <= 1 and flow.protection == 1 then pcall(learn, tvb, pinfo, kind) end
    end
    known.sealed = not known.holds and level ~= 0 and flow.protection ~= 0
    known.opened = known.sealed and opened(tvb, pinfo, level) or nil
    taken[pinfo.number] = known
    return known
end

local function sealed(tvb, tree, pinfo)
    local level = bit.band(bit.rshift(tvb(0, 1):uint(), 4), 3)
    local name
    if level == 1 then
        name = string.format("%s #%s sealed", KIND[bit.band(tvb(0, 1):uint(), 15)] or "?", tvb(5, 4):uint())
        tree:add(f.form, tvb(0, 1))
        tree:add(f.level, tvb(0, 1))
        tree:add(f.kind, tvb(0, 1))
        tree:add(f.connection, tvb(1, 4))
        tree:add(f.number, tvb(5, 4))
    else
        name = "data sealed"
        tree:add(f.form, tvb(0, 1))
        tree:add(f.protected, tvb(0, 1))
        tree:add(f.connection, tvb(1, 4))
        tree:add(f.protected_number, tvb(5, 4))
    end
    local body = math.max(0, tvb:len() - HEADER - TAG)
    if body > 0 then tree:add(f.sealed, tvb(HEADER, body)) end
    if tvb:len() > HEADER + body then tree:add(f.tag, tvb(HEADER + body)) end
    pinfo.cols.info = string.format("%s connection %08x %d bytes", name, tvb(1, 4):uint(), tvb:len())
end

-- Header and body in the clear, up to `stop`. `datagram_bytes` is the length of the datagram that they came in.
local function open(tvb, stop, tree, pinfo, known, datagram_bytes)
    local first = tvb(0, 1):uint()
    local kind = KIND[bit.band(first, 15)]
    tree:add(f.form, tvb(0, 1))
    tree:add(f.level, tvb(0, 1))
    tree:add(f.kind, tvb(0, 1))
    tree:add(f.connection, tvb(1, 4))
    tree:add(f.number, tvb(5, 4))
    local parts = {}
    local r = Reader.new(tvb, HEADER, stop, tree)
    local read, why = pcall(function()
        if not kind then refuse("an unknown kind") end
        bodies[kind](r, parts, known)
        if r:left() > 0 and not PADDED[kind] then refuse("bytes behind the last field") end
        r:bytes("padding", r:left())
    end)
    if not read then
        if type(why) ~= "table" then error(why, 0) end
        tree:add_proto_expert_info(malformed, "The body is none of its kind: " .. why.segstream)
    end
    local info = string.format("%s #%s connection %08x %d bytes", kind or "?", tvb(5, 4):uint(), tvb(1, 4):uint(), datagram_bytes)
    pinfo.cols.info = #parts > 0 and info .. "; " .. table.concat(parts, "; ") or info
end

local function open_by_key_log(tvb, tree, pinfo, known)
    local clear = ByteArray.new(known.opened.bytes, true):tvb("Opened shipment")
    open(clear, clear:len(), tree, pinfo, known, tvb:len())
    tree:add(f.tag, tvb(tvb:len() - TAG, TAG))
end

function segstream.dissector(tvb, pinfo, root)
    if not is_shipment(tvb) then return 0 end
    pinfo.cols.protocol = "Segstream"
    local tree = root:add(segstream, tvb())
    local known = taken_for(tvb, pinfo)
    if tvb:len() < tvb:reported_len() then
        tree:append_text(" (cut off by the capture)")
    elseif known.holds then
        local stop = tvb:len() - SEAL
        open(tvb, stop, tree, pinfo, known, tvb:len())
        tree:add(f.seal, tvb(stop, SEAL))
    elseif known.opened then
        open_by_key_log(tvb, tree, pinfo, known)
    elseif known.sealed then
        sealed(tvb, tree, pinfo)
    else
        tree:add_proto_expert_info(damaged)
        pinfo.cols.info = string.format("damaged, %d bytes", tvb:len())
    end
    return tvb:len()
end

function segstream.init() flows, taken, connections, secrets = {}, {}, {}, nil end

local function heuristic(tvb, pinfo, root)
    if not is_shipment(tvb) or tvb:len() < tvb:reported_len() or not taken_for(tvb, pinfo).holds then return false end
    pinfo.conversation = segstream
    segstream.dissector(tvb, pinfo, root)
    return true
end

segstream:register_heuristic("udp", heuristic)
DissectorTable.get("udp.port"):add_for_decode_as(segstream)
