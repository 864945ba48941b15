-- What opens the shipments of encrypted connections whose secrets stand in a key log: the key schedule of RFC 9001 and the ciphers.
-- Called by segstream.lua. Bytes are Lua strings.
--
-- Source: FIPS 180-4 (SHA-256), RFC 2104 (HMAC), RFC 8446 7.1 (HKDF-Expand-Label), FIPS 197 (AES), RFC 8439 (ChaCha20),
-- RFC 9001 5 and 6 (keys, header protection, key update), docs/spec chapter 15.
--
-- Limit: tags are not verified, so a shipment that was damaged is shown as it decodes. TLS_AES_256_GCM_SHA384 is not here; two
-- endpoints of this project do not agree on it.

local band, bxor, bor, bnot = bit.band, bit.bxor, bit.bor, bit.bnot
local lshift, rshift, ror, rol = bit.lshift, bit.rshift, bit.ror, bit.rol
local byte, char = string.byte, string.char

local function word(value) return value % 2 ^ 32 end

local function from_words(words)
    local bytes = {}
    for i, value in ipairs(words) do
        value = word(value)
        bytes[i] = char(rshift(value, 24), band(rshift(value, 16), 255), band(rshift(value, 8), 255), band(value, 255))
    end
    return table.concat(bytes)
end

local function to_word(bytes, at)
    local a, b, c, d = byte(bytes, at, at + 3)
    return bor(lshift(a, 24), lshift(b, 16), lshift(c, 8), d)
end

-- The exclusive-or of a text with the beginning of a key stream.
local function xor_text(text, stream)
    local bytes = {}
    for at = 1, #text do bytes[at] = char(bxor(byte(text, at), byte(stream, at))) end
    return table.concat(bytes)
end

-- The first 32 bits of the fractional parts of the roots of the first primes.
local function root_bits(root, count)
    local words, candidate = {}, 2
    while #words < count do
        local prime = true
        for divisor = 2, math.floor(candidate ^ 0.5) do
            if candidate % divisor == 0 then prime = false end
        end
        if prime then
            local fraction = candidate ^ root % 1
            words[#words + 1] = math.floor(fraction * 2 ^ 32)
        end
        candidate = candidate + 1
    end
    return words
end

local SHA_INITIAL, SHA_ROUND = root_bits(1 / 2, 8), root_bits(1 / 3, 64)

local function sha256(message)
    local length = #message
    local padding = (55 - length) % 64
    message = message .. "\128" .. ("\0"):rep(padding) .. from_words({math.floor(length / 2 ^ 29), length * 8 % 2 ^ 32})
    local hash = {}
    for i = 1, 8 do hash[i] = SHA_INITIAL[i] end
    for block = 1, #message, 64 do
        local w = {}
        for i = 1, 16 do w[i] = to_word(message, block + 4 * (i - 1)) end
        for i = 17, 64 do
            local x, y = w[i - 15], w[i - 2]
            local s0 = bxor(ror(x, 7), ror(x, 18), rshift(x, 3))
            local s1 = bxor(ror(y, 17), ror(y, 19), rshift(y, 10))
            w[i] = word(word(w[i - 16]) + word(s0) + word(w[i - 7]) + word(s1))
        end
        local a, b, c, d, e, g, h, k = hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7], hash[8]
        for i = 1, 64 do
            local s1 = bxor(ror(e, 6), ror(e, 11), ror(e, 25))
            local choice = bxor(band(e, g), band(bnot(e), h))
            local one = word(k + word(s1) + word(choice) + SHA_ROUND[i] + word(w[i]))
            local s0 = bxor(ror(a, 2), ror(a, 13), ror(a, 22))
            local majority = bxor(band(a, b), band(a, c), band(b, c))
            local two = word(word(s0) + word(majority))
            k, h, g, e, d, c, b, a = h, g, e, word(d + one), c, b, a, word(one + two)
        end
        for i, value in ipairs({a, b, c, d, e, g, h, k}) do hash[i] = word(hash[i] + value) end
    end
    return from_words(hash)
end

-- Keys are secrets of 32 bytes here, so none is longer than a block.
local function hmac(key, message)
    key = key .. ("\0"):rep(64 - #key)
    return sha256(xor_text(key, ("\92"):rep(64)) .. sha256(xor_text(key, ("\54"):rep(64)) .. message))
end

local function expand_label(secret, label, length)
    label = "tls13 " .. label
    return hmac(secret, char(0, length, #label) .. label .. "\0\1"):sub(1, length)
end

-- FIPS 197: the substitution, and the table that joins it with the mixing of columns.
local SBOX, MIX = {}, {}
do
    local power, log, value = {}, {}, 1
    for i = 0, 254 do
        power[i], log[value] = value, i
        value = bxor(value, lshift(value, 1), value >= 128 and 0x11b or 0)
    end
    for i = 0, 255 do
        local inverse = i > 0 and power[(255 - log[i]) % 255] or 0
        local doubled = bor(inverse, lshift(inverse, 8))
        local s = band(bxor(inverse, rshift(doubled, 7), rshift(doubled, 6), rshift(doubled, 5), rshift(doubled, 4)), 255)
        s = bxor(s, 0x63)
        SBOX[i] = s
        local two = bxor(lshift(s, 1), s >= 128 and 0x11b or 0)
        MIX[i] = bor(lshift(two, 24), lshift(s, 16), lshift(s, 8), bxor(two, s))
    end
end

local function aes_schedule(key)
    local w, constant = {}, 1
    for i = 0, 3 do w[i] = to_word(key, 4 * i + 1) end
    for i = 4, 43 do
        local t = w[i - 1]
        if i % 4 == 0 then
            t = rol(t, 8)
            t = bor(lshift(SBOX[band(rshift(t, 24), 255)], 24), lshift(SBOX[band(rshift(t, 16), 255)], 16),
                lshift(SBOX[band(rshift(t, 8), 255)], 8), SBOX[band(t, 255)])
            t = bxor(t, lshift(constant, 24))
            constant = bxor(lshift(constant, 1), constant >= 128 and 0x11b or 0)
        end
        w[i] = bxor(w[i - 4], t)
    end
    return w
end

local function aes_block(w, block)
    local s = {}
    for i = 0, 3 do s[i] = bxor(to_word(block, 4 * i + 1), w[i]) end
    for round = 1, 9 do
        local t = {}
        for i = 0, 3 do
            t[i] = bxor(MIX[band(rshift(s[i], 24), 255)], ror(MIX[band(rshift(s[(i + 1) % 4], 16), 255)], 8),
                ror(MIX[band(rshift(s[(i + 2) % 4], 8), 255)], 16), ror(MIX[band(s[(i + 3) % 4], 255)], 24), w[4 * round + i])
        end
        s = t
    end
    local words = {}
    for i = 0, 3 do
        words[i + 1] = bxor(w[40 + i], lshift(SBOX[band(rshift(s[i], 24), 255)], 24), lshift(SBOX[band(rshift(s[(i + 1) % 4], 16), 255)], 16),
            lshift(SBOX[band(rshift(s[(i + 2) % 4], 8), 255)], 8), SBOX[band(s[(i + 3) % 4], 255)])
    end
    return from_words(words)
end

-- Words of ChaCha20 are little-endian.
local function swapped(value) return bit.bswap(value) end

local function chacha_block(key, counter, nonce)
    local start = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}
    for i = 0, 7 do start[5 + i] = swapped(to_word(key, 4 * i + 1)) end
    start[13] = counter
    for i = 0, 2 do start[14 + i] = swapped(to_word(nonce, 4 * i + 1)) end
    local s = {}
    for i = 1, 16 do s[i] = word(start[i]) end
    local function quarter(a, b, c, d)
        s[a] = word(s[a] + s[b]); s[d] = word(rol(bxor(s[d], s[a]), 16))
        s[c] = word(s[c] + s[d]); s[b] = word(rol(bxor(s[b], s[c]), 12))
        s[a] = word(s[a] + s[b]); s[d] = word(rol(bxor(s[d], s[a]), 8))
        s[c] = word(s[c] + s[d]); s[b] = word(rol(bxor(s[b], s[c]), 7))
    end
    for _ = 1, 10 do
        quarter(1, 5, 9, 13); quarter(2, 6, 10, 14); quarter(3, 7, 11, 15); quarter(4, 8, 12, 16)
        quarter(1, 6, 11, 16); quarter(2, 7, 12, 13); quarter(3, 8, 9, 14); quarter(4, 5, 10, 15)
    end
    for i = 1, 16 do s[i] = swapped(word(s[i] + word(start[i]))) end
    return from_words(s)
end

-- The ciphers by their TLS number: key bytes, the mask of header protection, and the key stream from a nonce on.
local CIPHERS = {
    [0x1301] = {
        key_bytes = 16,
        prepare = aes_schedule,
        mask = aes_block,
        block_bytes = 16,
        -- NIST SP 800-38D: counter 1 is the tag's.
        stream = function(key, nonce, index) return aes_block(key, nonce .. from_words({index + 2})) end,
    },
    [0x1303] = {
        key_bytes = 32,
        prepare = function(key) return key end,
        mask = function(key, sample) return chacha_block(key, swapped(to_word(sample, 1)), sample:sub(5)) end,
        block_bytes = 64,
        stream = function(key, nonce, index) return chacha_block(key, index + 1, nonce) end,
    },
}

local Direction = {}
Direction.__index = Direction

-- The keys of one direction at one level, from its secret; nil if the cipher is not known.
local function direction(suite, secret)
    local cipher = CIPHERS[suite]
    if not cipher or #secret ~= 32 then return nil end
    local self = setmetatable({cipher = cipher, secrets = {[0] = secret}, keys = {}, phase = 0, expected = 0}, Direction)
    self.header_key = cipher.prepare(expand_label(secret, "quic hp", cipher.key_bytes))
    return self
end

function Direction:phase_keys(phase)
    if not self.keys[phase] then
        for next = 1, phase do
            self.secrets[next] = self.secrets[next] or expand_label(self.secrets[next - 1], "quic ku", 32)
        end
        local secret = self.secrets[phase]
        self.keys[phase] = {
            key = self.cipher.prepare(expand_label(secret, "quic key", self.cipher.key_bytes)),
            iv = expand_label(secret, "quic iv", 12),
        }
    end
    return self.keys[phase]
end

-- 2.2: the number nearest to the expected one.
function Direction:expand(low)
    local candidate = self.expected - self.expected % 2 ^ 32 + low
    if candidate + 2 ^ 31 <= self.expected then return candidate + 2 ^ 32 end
    if candidate > self.expected + 2 ^ 31 and candidate >= 2 ^ 32 then return candidate - 2 ^ 32 end
    return candidate
end

-- 15.4: the header without its protection.
function Direction:unprotect(header, sample)
    local mask = self.cipher.mask(self.header_key, sample)
    local first = bxor(byte(header, 1), band(byte(mask, 1), 0x1f))
    return char(first) .. header:sub(2, 5) .. xor_text(header:sub(6, 9), mask:sub(2, 5))
end

-- 15.3, 15.5: the body of a shipment, without its tag. `parity` is the low bit of the level; nil where there are no key phases.
function Direction:open(low, parity, sealed)
    local number = self:expand(low)
    if parity and self.phase % 2 ~= parity then
        -- A newer number is of the next key phase, an older one of the one before.
        if number >= self.expected then
            self.phase = self.phase + 1
        elseif self.phase == 0 then
            return nil, number
        end
    end
    local phase = (not parity and 0) or (self.phase % 2 == parity and self.phase) or self.phase - 1
    self.expected = math.max(self.expected, number + 1)
    local keys = self:phase_keys(phase)
    local nonce = keys.iv:sub(1, 4) .. xor_text(keys.iv:sub(5), from_words({math.floor(number / 2 ^ 32), number % 2 ^ 32}))
    local blocks = {}
    for index = 0, math.ceil(#sealed / self.cipher.block_bytes) - 1 do
        blocks[#blocks + 1] = self.cipher.stream(keys.key, nonce, index)
    end
    return xor_text(sealed, table.concat(blocks)), number
end

local function unhex(text) return (text:gsub("%x%x", function(pair) return char(tonumber(pair, 16)) end)) end

-- The secrets in a key log, by label and client random in lower-case hexadecimal digits (draft-ietf-tls-keylogfile).
local function read_key_log(path)
    local secrets, file = {}, io.open(path, "r")
    if not file then return secrets end
    for line in file:lines() do
        local label, random, secret = line:match("^(%u[%u%d_]*) (%x+) (%x+)%s*$")
        if label then secrets[label .. " " .. random:lower()] = unhex(secret) end
    end
    file:close()
    return secrets
end

return {direction = direction, read_key_log = read_key_log, sha256 = sha256, hmac = hmac, aes_block = aes_block, aes_schedule = aes_schedule,
    chacha_block = chacha_block}
