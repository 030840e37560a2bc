-- AES-256-GCM (FIPS 197, NIST SP 800-38D) as far as reading needs it: decryption, and the tag.
--
-- Wireshark 4.0 to 4.4 has Lua without ciphers. This file stands beside rampmeter.lua, which loads it; by
-- itself it does nothing. Texts are strings of bytes, words are numbers below 2^32. A full packet takes
-- some milliseconds.

-- Lua 5.2 has bit32, later versions have operators, which earlier ones cannot read.
local bxor, byte_of
if bit32 then
  local extract = bit32.extract
  bxor = bit32.bxor
  byte_of = function(word, shift)
    return extract(word, shift, 8)
  end
else
  bxor = load("return function(a, b, c, d, e) return a ~ b ~ (c or 0) ~ (d or 0) ~ (e or 0) end")()
  byte_of = load("return function(word, shift) return word >> shift & 255 end")()
end

-- Four bytes as a word.
local function word(a, b, c, d)
  return ((a * 256 + b) * 256 + c) * 256 + d
end

-- The word at a place of a text; what is beyond its end is zero.
local function word_at(text, at)
  local a, b, c, d = text:byte(at, at + 3)
  return word(a or 0, b or 0, c or 0, d or 0)
end

local function bytes_of(value)
  return string.char(byte_of(value, 24), byte_of(value, 16), byte_of(value, 8), byte_of(value, 0))
end

-- Twice a byte, modulo the polynomial of AES (FIPS 197 section 4.2.1).
local function twice(byte)
  return byte < 128 and 2 * byte or bxor(2 * byte - 256, 0x1b)
end

-- The S-box (section 5.1.1), and with it a round but for its key: four tables of words.
local SBOX, ROUND = {}, { {}, {}, {}, {} }
do
  -- 3 generates all bytes but zero.
  local power, log, value = {}, {}, 1
  for i = 0, 254 do
    power[i], log[value] = value, i
    value = bxor(value, twice(value))
  end
  for byte = 0, 255 do
    local inverse = byte == 0 and 0 or power[(255 - log[byte]) % 255]
    local sum, turned = 0x63, inverse
    for _ = 1, 5 do
      sum = bxor(sum, turned)
      turned = turned < 128 and 2 * turned or 2 * turned - 255
    end
    local double = twice(sum)
    local triple = bxor(double, sum)
    SBOX[byte] = sum
    ROUND[1][byte] = word(double, sum, sum, triple)
    ROUND[2][byte] = word(triple, double, sum, sum)
    ROUND[3][byte] = word(sum, triple, double, sum)
    ROUND[4][byte] = word(sum, sum, triple, double)
  end
end

local function substituted(value)
  return word(SBOX[byte_of(value, 24)], SBOX[byte_of(value, 16)], SBOX[byte_of(value, 8)],
    SBOX[byte_of(value, 0)])
end

-- The 60 words of the keys of all rounds (section 5.2), from 0.
local function expanded(key)
  local words, constant = {}, 1
  for i = 0, 7 do
    words[i] = word_at(key, 4 * i + 1)
  end
  for i = 8, 59 do
    local before = words[i - 1]
    if i % 8 == 0 then
      before = bxor(substituted(before % 0x1000000 * 256 + byte_of(before, 24)), constant * 0x1000000)
      constant = twice(constant)
    elseif i % 8 == 4 then
      before = substituted(before)
    end
    words[i] = bxor(words[i - 8], before)
  end
  return words
end

-- Encrypts a block of four words.
local function encrypted(words, a, b, c, d)
  local r1, r2, r3, r4 = ROUND[1], ROUND[2], ROUND[3], ROUND[4]
  a, b, c, d = bxor(a, words[0]), bxor(b, words[1]), bxor(c, words[2]), bxor(d, words[3])
  local function mixed(p, q, r, s, key)
    return bxor(r1[byte_of(p, 24)], r2[byte_of(q, 16)], r3[byte_of(r, 8)], r4[byte_of(s, 0)], key)
  end
  for i = 4, 52, 4 do
    a, b, c, d = mixed(a, b, c, d, words[i]), mixed(b, c, d, a, words[i + 1]),
      mixed(c, d, a, b, words[i + 2]), mixed(d, a, b, c, words[i + 3])
  end
  local function last(p, q, r, s, key)
    return bxor(word(SBOX[byte_of(p, 24)], SBOX[byte_of(q, 16)], SBOX[byte_of(r, 8)],
      SBOX[byte_of(s, 0)]), key)
  end
  return last(a, b, c, d, words[56]), last(b, c, d, a, words[57]), last(c, d, a, b, words[58]),
    last(d, a, b, c, words[59])
end

-- A block four bits to the right: times x^4 but for what falls out, which is the second answer.
local function shifted(a, b, c, d)
  local out = d % 16
  return (a - a % 16) / 16, (b - b % 16) / 16 + a % 16 * 0x10000000,
    (c - c % 16) / 16 + b % 16 * 0x10000000, (d - out) / 16 + c % 16 * 0x10000000, out
end

-- What comes back for four bits that fall out, as the first word of a block.
local BACK = {}
for bits = 0, 15 do
  local sum = 0
  for i, back in ipairs { 0x1c200000, 0x38400000, 0x70800000, 0xe1000000 } do
    if math.floor(bits / 2 ^ (i - 1)) % 2 == 1 then
      sum = bxor(sum, back)
    end
  end
  BACK[bits] = sum
end

-- The products of a block with all polynomials of four bits.
local function multiples(a, b, c, d)
  local of = { [0] = { 0, 0, 0, 0 }, [8] = { a, b, c, d } }
  for _, bits in ipairs { 4, 2, 1 } do
    local odd = d % 2
    a, b, c, d = (a - a % 2) / 2, (b - b % 2) / 2 + a % 2 * 0x80000000,
      (c - c % 2) / 2 + b % 2 * 0x80000000, (d - odd) / 2 + c % 2 * 0x80000000
    of[bits] = { odd == 1 and bxor(a, 0xe1000000) or a, b, c, d }
    a = of[bits][1]
  end
  for bits = 1, 15 do
    local least = of[bits] and bits or bits % 2 == 1 and 1 or bits % 4 == 2 and 2 or 4
    local p, q = of[least], of[bits - least]
    of[bits] = { bxor(p[1], q[1]), bxor(p[2], q[2]), bxor(p[3], q[3]), bxor(p[4], q[4]) }
  end
  return of
end

-- GHASH (SP 800-38D section 6.4) of texts, each filled up to whole blocks.
local function ghash(of, texts)
  local a, b, c, d = 0, 0, 0, 0
  local function multiply()
    local words, out, product = { a, b, c, d }, 0, nil
    a, b, c, d = 0, 0, 0, 0
    for i = 4, 1, -1 do
      local rest = words[i]
      for _ = 1, 8 do
        a, b, c, d, out = shifted(a, b, c, d)
        product = of[rest % 16]
        a, b = bxor(a, product[1], BACK[out]), bxor(b, product[2])
        c, d = bxor(c, product[3]), bxor(d, product[4])
        rest = (rest - rest % 16) / 16
      end
    end
  end
  for _, text in ipairs(texts) do
    for at = 1, #text, 16 do
      a, b = bxor(a, word_at(text, at)), bxor(b, word_at(text, at + 4))
      c, d = bxor(c, word_at(text, at + 8)), bxor(d, word_at(text, at + 12))
      multiply()
    end
  end
  return a, b, c, d
end

-- What a key is expanded to, for `tag` and `crypted`.
local function prepared(key)
  local words = expanded(key)
  return { words = words, multiples = multiples(encrypted(words, 0, 0, 0, 0)) }
end

-- The tag of an encrypted text with a nonce of 12 bytes and data that are authenticated beside it.
local function tag(key, nonce, beside, text)
  local lengths = bytes_of(0) .. bytes_of(8 * #beside) .. bytes_of(0) .. bytes_of(8 * #text)
  local sums = { ghash(key.multiples, { beside, text, lengths }) }
  local pad = { encrypted(key.words, word_at(nonce, 1), word_at(nonce, 5), word_at(nonce, 9), 1) }
  local parts = {}
  for i = 1, 4 do
    parts[i] = bytes_of(bxor(sums[i], pad[i]))
  end
  return table.concat(parts)
end

-- Encrypts or decrypts a text: counters go from 2 on.
local function crypted(key, nonce, text)
  local a, b, c = word_at(nonce, 1), word_at(nonce, 5), word_at(nonce, 9)
  local parts = {}
  for at = 1, #text, 16 do
    local pads = { encrypted(key.words, a, b, c, 2 + (at - 1) / 16) }
    for i = 1, 4 do
      parts[#parts + 1] = bytes_of(bxor(pads[i], word_at(text, at + 4 * i - 4)))
    end
  end
  return table.concat(parts):sub(1, #text)
end

return { prepared = prepared, tag = tag, crypted = crypted, expanded = expanded, encrypted = encrypted }
