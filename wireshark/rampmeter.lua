-- Rampmeter's packets in Wireshark and tshark: the envelope and every header inside.
--
--   tshark -X lua_script:wireshark/rampmeter.lua -r run.pcapng
--
-- Everything that differs between packets is in the tables of part 2: a transport is a table of
-- types, a type its name, the sentence of the info column, and its fields in the order of the wire.
-- To add a packet or a transport, add a table; part 3 makes filters, trees and checks of it.
-- Filters are called `<transport>.<field>`, as in `dcpim.seq == 17`, `fastpass.slot.dst == 5`.
-- All integers are big-endian. Nothing here assumes that a packet is well-formed: what no node
-- sends gets an expert info (`_ws.expert`, or `rampmeter.truncated` and so on as filters).

-- Part 1: the words in which formats are written

-- A field: its name in filters, its bytes on the wire, its label; `rule` tells what is wrong with a
-- value, given those before it.
local function field(bytes)
  return function(name, label, rule)
    return { name = name, bytes = bytes, label = label, rule = rule }
  end
end

local u8, u16, u32, u64 = field(1), field(2), field(4), field(8)

local function flag(name, label)
  local function rule(value)
    return value > 1 and "0 or 1" or nil
  end
  return { name = name, bytes = 1, label = label, rule = rule, words = { [0] = "no", "yes" } }
end

-- A byte that counts items, at most `most`, and the items. Filters of items are
-- `<transport>.<name>.<field>`, that of the number is `<transport>.<name>.count`.
local function list(name, label, most, fields)
  return { name = name, label = label, most = most, items = fields }
end

local function at_least_one(value)
  return tostring(value) == "0" and "at least 1" or nil
end

-- Part 2: the formats

local FLOW = u32("flow", "Flow, numbered among those of the pair")
local TX_SLOT = u32("tx_slot", "Slot at the sender")
local RX_SLOT = u32("rx_slot", "Slot at the receiver")
local SEQ = u32("seq", "Packet")
local SIZE = u64("size", "Bytes of the flow", at_least_one)
local NUMBER = u32("number", "Number")
local INCARNATION = u32("incarnation", "Incarnation of the demands")
local REMAINING = u32("remaining", "Packets remaining")
local CUMULATIVE = u32("cumulative", "All packets below have arrived")
local REPEATED = flag("repeated", "Sent again, to be answered")

-- cosy's slots of a receiver are numbered from 0 to K - 1, so two bytes do.
local COSY_SLOT = u16("rx_slot", "Slot at the receiver")
local RESERVATION = u32("seq", "Reservation")
local LINK = u16("link", "Virtual link that the packet is on")
local ROUTE = list("route", "Port on the way to the receiver", 5, { u16("port", "Port") })

local function why_rule(value)
  return value > 3 and "0 to 3" or nil
end

local function prompt_rule(value, before)
  return value > before.channels and "at most channels" or nil
end

-- The four steps of a round of matching differ in their type only.
local function matching(name)
  return {
    name,
    "{channels} channels in round {round} of phase {phase}, {remaining} remaining",
    u8("channels", "Channels", at_least_one),
    u8("prompt", "Channels that may start early", prompt_rule),
    u8("round", "Round"),
    u32("phase", "Matching phase"),
    REMAINING,
    u64("announced", "Flow announced (ps, receiver's clock)"),
  }
end

local function listed(items, sentence)
  local parts = {}
  for i, item in ipairs(items) do
    parts[i] = sentence(item)
  end
  return #parts > 0 and table.concat(parts, ", ") or "none"
end

local TRANSPORTS = {
  [1] = {
    name = "dcpim",
    title = "dcPIM",
    [1] = {
      "notification", "flow {flow} of {size} bytes, flow slot {tx_slot}",
      FLOW, TX_SLOT, SIZE, REPEATED,
    },
    [2] = { "ack", "flow slot {tx_slot} is known", TX_SLOT },
    [3] = { "data", "flow slot {rx_slot}, packet {seq}, token {number}", RX_SLOT, SEQ, NUMBER },
    [4] = {
      "token", "flow slot {tx_slot}, packet {seq}, {remaining} remaining",
      TX_SLOT, RX_SLOT, SEQ, NUMBER, CUMULATIVE, u32("phase", "Matching phase"), REMAINING,
      u8("rank", "Rank"),
    },
    [5] = {
      "finish", "flow {flow}, flow slot {tx_slot}, all {packets} packets sent",
      FLOW, TX_SLOT, u32("packets", "Packets of the flow"),
    },
    [6] = { "finished", "flow slot {tx_slot} is complete", TX_SLOT },
    [7] = matching("request"),
    [8] = matching("grant"),
    [9] = matching("accept"),
    [10] = matching("release"),
    [11] = {
      "unscheduled data", "flow {flow} of {size} bytes, packet {seq}", FLOW, TX_SLOT, SEQ, SIZE,
    },
  },
  [2] = {
    name = "phost",
    title = "pHost",
    [1] = {
      "RTS",
      function(values)
        local size, left = tostring(values.size), tostring(values.time_left)
        left = left == "18446744073709551615" and "no deadline" or left .. " ps left"
        return ("flow %d of %s bytes, flow slot %d, %s"):format(
          values.flow, size, values.tx_slot, left)
      end,
      FLOW, TX_SLOT, SIZE, u64("time_left", "Time to the deadline (ps)"), u16("tenant", "Tenant"),
      REPEATED,
    },
    [2] = {
      "token", "flow slot {tx_slot}, packet {seq}, {remaining} remaining",
      TX_SLOT, RX_SLOT, SEQ, NUMBER, REMAINING,
    },
    [3] = { "free data", "flow {flow} of {size} bytes, packet {seq}", FLOW, TX_SLOT, SEQ, SIZE },
    [4] = { "data", "flow slot {rx_slot}, packet {seq}, token {number}", RX_SLOT, SEQ, NUMBER },
    [5] = { "ack", "flow slot {tx_slot} is complete", TX_SLOT },
    [6] = { "heard", "flow slot {tx_slot} is known", TX_SLOT },
  },
  [3] = {
    name = "pfabric",
    title = "pFabric",
    [1] = {
      "data", "flow {flow} of {size} bytes, packet {seq}, {remaining} remaining",
      FLOW, TX_SLOT, SEQ, REMAINING, SIZE,
    },
    [2] = {
      "probe", "flow {flow} of {size} bytes, {remaining} remaining",
      FLOW, TX_SLOT, REMAINING, SIZE,
    },
    [3] = {
      "ack", "flow slot {tx_slot}, all below packet {cumulative} have arrived",
      TX_SLOT, CUMULATIVE, {
        name = "sack", bytes = 8, label = "Arrived from the cumulative packet on", base = base.HEX,
      },
    },
  },
  [4] = {
    name = "fastpass",
    title = "Fastpass",
    [1] = { "data", "flow {flow} of {size} bytes, packet {seq}", FLOW, TX_SLOT, SEQ, SIZE },
    [2] = {
      "ack", "flow slot {tx_slot}, packet {seq}, all below {cumulative} have arrived",
      TX_SLOT, CUMULATIVE, SEQ,
    },
    [3] = {
      "request",
      function(values)
        local function demand(item)
          return ("%d to %d"):format(item.total, item.dst)
        end
        return "slots in all: " .. listed(values.demand, demand)
      end,
      INCARNATION, NUMBER,
      list("demand", "Demand", 10, { u16("dst", "Destination"), u32("total", "Slots in all") }),
    },
    [4] = {
      "allocation",
      function(values)
        local function slot(item)
          return ("+%d to %d"):format(item.offset, item.dst)
        end
        return ("from slot %s: %s"):format(tostring(values.first), listed(values.slot, slot))
      end,
      INCARNATION, u32("heard", "Latest request heard"),
      u32("given", "Slots given in all"),
      u64("first", "First slot of the batch"),
      list("slot", "Slot", 16, {
        u16("dst", "Destination"), u8("offset", "Slots after the first"), u8("path", "Path"),
      }),
    },
    [5] = { "forgotten", "demands of incarnation {incarnation}, ask anew", INCARNATION },
    [6] = { "passive", "ask the other arbiter" },
    [7] = { "watchdog", "the arbiter lives" },
    [8] = {
      "announce", "flow slot {tx_slot} to {dst}, {remaining} remaining",
      TX_SLOT, u16("dst", "Destination"), REMAINING, NUMBER,
    },
    [9] = {
      "schedule",
      function(values)
        local function entry(item)
          return item.flow == 4294967295 and "none" or ("%d"):format(item.flow)
        end
        return "flow slots " .. listed(values.schedule, entry)
      end,
      list("schedule", "Slot of the epoch", 16, { u32("flow", "Slot at the source") }),
    },
  },
  [5] = {
    name = "cosy",
    title = "cosy",
    [1] = {
      "request", "flow {flow} of {size} bytes, flow slot {tx_slot}", FLOW, TX_SLOT, SIZE,
    },
    [2] = {
      "rsvp", "flow slot {tx_slot} may send to slot {rx_slot}, virtual link {link}",
      TX_SLOT, RESERVATION, u32("lease_us", "Lease (us)"), COSY_SLOT, LINK,
      flag("last", "Last of its kind"), ROUTE,
    },
    [3] = {
      "release", "slot {rx_slot}, virtual link {link}",
      RESERVATION, COSY_SLOT, LINK, {
        name = "why", bytes = 1, label = "Why", rule = why_rule,
        words = { [0] = "blocked", "busy", "done", "failed" },
      }, ROUTE,
    },
    [4] = { "reject", "flow slot {tx_slot} is not admitted", TX_SLOT },
    [5] = {
      "data", "slot {rx_slot}, packet {number} of the reservation",
      RESERVATION, NUMBER, COSY_SLOT, LINK, flag("last", "Last of its kind"), ROUTE,
    },
    [6] = { "complete", "flow slot {tx_slot} is complete", TX_SLOT },
    [7] = { "failure", "flow slot {tx_slot} has failed", TX_SLOT },
  },
}

local TITLES = {}
for id, transport in pairs(TRANSPORTS) do
  TITLES[id] = transport.title
end

local KINDS = { [0] = "hello", "here", "control", "data", "refused" }
local HELLO, HERE, CONTROL, DATA = 0, 1, 2, 3

local MAGIC, VERSION = 0x524d, 1

-- A field without whose only value the rest means nothing.
local function must(name, bytes, label, expected)
  local function rule(value)
    return value ~= expected and ("0x%x"):format(expected) or nil
  end
  return { name = name, bytes = bytes, label = label, base = base.HEX, rule = rule, must = true }
end

local ENVELOPE = {
  must("magic", 2, "Magic", MAGIC),
  must("version", 1, "Version", VERSION),
  { name = "kind", bytes = 1, label = "Kind", words = KINDS },
  { name = "transport", bytes = 1, label = "Transport", words = TITLES },
  u8("reserved", "Reserved", function(value)
    return value ~= 0 and "0" or nil
  end),
  u16("service", "Service", function(value, before)
    return before.kind ~= DATA and value ~= 0 and "0 but in data" or nil
  end),
  u32("src", "Source node"),
  u32("dst", "Destination node"),
  u32("src_life", "Incarnation of the source", at_least_one),
  u32("dst_life", "Incarnation of the destination, 0 if unknown"),
}

-- What follows, by kind; without a word here it is the message alone.
local NONCE = { { name = "nonce", bytes = 4, label = "Nonce", base = base.HEX } }
local MESSAGE = { u32("msg", "Message") }
local OFFSET, TOTAL = u32("offset", "Offset of the payload"), u32("size", "Bytes of the message")
local FRAGMENT = { MESSAGE[1], OFFSET, TOTAL }
local REST = { [HELLO] = NONCE, [HERE] = NONCE, [DATA] = FRAGMENT }

-- Part 3: protocols of the formats

-- Makes the filters of `fields`, and remembers them in `by_name`.
local function declare(prefix, fields, by_name)
  for _, format in ipairs(fields) do
    if format.items then
      local inner = prefix .. format.name .. "."
      local count = { name = format.name .. ".count", bytes = 1, label = "Number of items" }
      declare(prefix, { count }, by_name)
      by_name[inner] = by_name[inner] or ProtoField.none(prefix .. format.name, format.label)
      declare(inner, format.items, by_name)
    else
      local abbr = prefix .. format.name
      local make = ProtoField["uint" .. 8 * format.bytes]
      by_name[abbr] = by_name[abbr]
        or make(abbr, format.label, format.base or base.DEC, format.words)
    end
  end
end

local rampmeter = Proto("rampmeter", "Rampmeter")
local FIELDS = { payload = ProtoField.bytes("rampmeter.payload", "Payload") }
FIELDS.payload_len = ProtoField.uint32("rampmeter.payload_len", "Bytes of payload")
declare("rampmeter.", ENVELOPE, FIELDS)
declare("rampmeter.", NONCE, FIELDS)
declare("rampmeter.", FRAGMENT, FIELDS)
rampmeter.fields = FIELDS

for _, transport in pairs(TRANSPORTS) do
  local names = {}
  transport.proto = Proto(transport.name, transport.title)
  transport.fields = {}
  for code, packet in pairs(transport) do
    if type(code) == "number" then
      names[code] = packet[1]
      packet.fields = { select(3, table.unpack(packet)) }
      declare(transport.name .. ".", packet.fields, transport.fields)
    end
  end
  transport.type = { name = "type", bytes = 1, label = "Type", words = names }
  declare(transport.name .. ".", { transport.type }, transport.fields)
  transport.proto.fields = transport.fields
end

local function malformed(name, text)
  return ProtoExpert.new("rampmeter." .. name, text, expert.group.MALFORMED, expert.severity.ERROR)
end

local EXPERTS = {
  truncated = malformed("truncated", "The packet ends inside a field"),
  bad_field = malformed("bad_field", "A field holds what no node sends"),
  unknown_kind = malformed("unknown_kind", "No such kind of packet"),
  unknown_transport = malformed("unknown_transport", "No such transport"),
  unknown_type = malformed("unknown_type", "No such type of packet"),
  bad_length = malformed("bad_length", "The payload does not fit the message"),
  trailing = malformed("trailing", "Bytes after the end of the packet"),
  not_captured = ProtoExpert.new("rampmeter.not_captured", "The capture left off inside a header",
    expert.group.UNDECODED, expert.severity.NOTE),
}
rampmeter.experts = EXPERTS

-- Marks an item. `at`, the place of the reading, keeps what was wrong first, for the info column.
local function complain(at, item, name, text)
  item:add_proto_expert_info(EXPERTS[name], text)
  at.wrong = at.wrong or text
end

-- The next bytes, or nil with an expert info where there are none.
local function take(at, bytes, tree, label)
  local needed = at.at + bytes
  if needed > at.tvb:reported_len() then
    local text = ("%s needs %d bytes, got %d"):format(label, needed, at.tvb:reported_len())
    complain(at, tree, "truncated", text)
    return nil
  end
  if needed > at.tvb:len() then
    complain(at, tree, "not_captured", label .. " was not captured")
    return nil
  end
  local range = at.tvb(at.at, bytes)
  at.at = needed
  return range
end

-- A number without a decimal point in any version of Lua.
local function plain(value)
  return type(value) == "number" and ("%d"):format(value) or tostring(value)
end

local read_fields

-- Reads the items of a list, which `range` counts, into `items`; false where it had to stop.
local function read_items(at, tree, format, prefix, known, items, range)
  local count, inner = range:uint(), prefix .. format.name .. "."
  local item = tree:add(known[inner .. "count"], range)
  if count > format.most then
    local text = ("%s: at most %d, got %d"):format(format.label, format.most, count)
    complain(at, item, "bad_field", text)
    return false
  end
  for i = 1, count do
    local branch, from = tree:add(known[inner], at.tvb(at.at, 0)), at.at
    branch:set_text(("%s %d"):format(format.label, i))
    items[i] = {}
    if not read_fields(at, branch, format.items, inner, known, items[i]) then
      return false
    end
    branch:set_len(at.at - from)
  end
  return true
end

-- Reads one field into `values`; false where the reading had to stop.
local function read_field(at, tree, format, prefix, known, values)
  local range = take(at, format.bytes or 1, tree, format.label)
  if not range then
    return false
  end
  if format.items then
    values[format.name] = {}
    return read_items(at, tree, format, prefix, known, values[format.name], range)
  end
  local value = format.bytes == 8 and range:uint64() or range:uint()
  values[format.name] = value
  local item = tree:add(known[prefix .. format.name], range)
  local expected = format.rule and format.rule(value, values)
  if expected then
    local got = format.base == base.HEX and ("0x%x"):format(value) or plain(value)
    local text = ("%s must be %s, got %s"):format(format.label, expected, got)
    complain(at, item, "bad_field", text)
  end
  return not (expected and format.must)
end

read_fields = function(at, tree, fields, prefix, known, values)
  for _, format in ipairs(fields) do
    if not read_field(at, tree, format, prefix, known, values) then
      return false
    end
  end
  return true
end

local function sentence_of(packet, values)
  local sentence = packet[2]
  if type(sentence) == "function" then
    return sentence(values)
  end
  return (sentence:gsub("{([%w_]+)}", function(name)
    return plain(values[name])
  end))
end

-- Reads the transport's header; its sentence, or nil if it could not be read.
local function read_header(at, root, transport)
  local from, prefix = at.at, transport.name .. "."
  local tree = root:add(transport.proto, at.tvb(from))
  local values = {}
  if not read_field(at, tree, transport.type, prefix, transport.fields, values) then
    return nil
  end
  local packet = transport[values.type]
  if not packet then
    local text = ("%s has no packets of type %d"):format(transport.title, values.type)
    complain(at, tree, "unknown_type", text)
    return nil
  end
  tree:append_text(", " .. packet[1])
  if not read_fields(at, tree, packet.fields, prefix, transport.fields, values) then
    return nil
  end
  tree:set_len(at.at - from)
  return ("%s: %s"):format(packet[1], sentence_of(packet, values))
end

-- What comes after the headers; of data, a sentence about it.
local function read_payload(at, tree, envelope)
  local len, captured = at.tvb:reported_len() - at.at, at.tvb:len() - at.at
  if envelope.kind ~= DATA then
    if len > 0 then
      complain(at, tree, "trailing", ("%d bytes after the end of the packet"):format(len))
    end
    return ""
  end
  tree:add(FIELDS.payload_len, at.tvb(at.at, 0), len):set_generated()
  if captured > 0 then
    tree:add(FIELDS.payload, at.tvb(at.at, captured))
  end
  local last = envelope.offset + len
  if len == 0 or last > envelope.size then
    local text = "%d bytes at %d of a message of %d"
    complain(at, tree, "bad_length", text:format(len, envelope.offset, envelope.size))
  end
  return (", bytes %d to %d of %d"):format(envelope.offset, last - 1, envelope.size)
end

-- What the packets of the node itself say.
local SENTENCES = {
  [HELLO] = "{src} asks {dst} for its incarnation",
  [HERE] = "{src} tells {dst} that it is incarnation {src_life}",
}

local function read_packet(at, tree, root, values)
  if not read_fields(at, tree, ENVELOPE, "rampmeter.", FIELDS, values) then
    return nil
  end
  if not KINDS[values.kind] then
    complain(at, tree, "unknown_kind", ("there are no packets of kind %d"):format(values.kind))
    return nil
  end
  local rest = REST[values.kind] or MESSAGE
  if not read_fields(at, tree, rest, "rampmeter.", FIELDS, values) then
    return nil
  end
  tree:set_len(at.at)
  local transport = TRANSPORTS[values.transport]
  if not transport then
    complain(at, tree, "unknown_transport", ("there is no transport %d"):format(values.transport))
  end
  if values.kind ~= CONTROL and values.kind ~= DATA then
    read_payload(at, tree, values)
    local packet = { nil, SENTENCES[values.kind] or "message {msg}, nobody takes it" }
    return ("%s: %s"):format(KINDS[values.kind], sentence_of(packet, values))
  end
  local header = transport and read_header(at, root, transport)
  return header and header .. read_payload(at, tree, values)
end

function rampmeter.dissector(tvb, pinfo, root)
  local tree = root:add(rampmeter, tvb())
  local at, values = { tvb = tvb, at = 0 }, {}
  local sentence = read_packet(at, tree, root, values)
  local title = TITLES[values.transport] or "Rampmeter"
  pinfo.cols.protocol = title
  local wrong = at.wrong and ("[%s]"):format(at.wrong)
  local said = sentence and wrong and sentence .. " " .. wrong or sentence or wrong
  pinfo.cols.info = title .. " " .. said
  return tvb:reported_len()
end

local function heuristic(tvb, pinfo, root)
  if tvb:len() < 4 or tvb(0, 2):uint() ~= MAGIC or tvb(2, 1):uint() ~= VERSION then
    return false
  end
  if not KINDS[tvb(3, 1):uint()] then
    return false
  end
  rampmeter.dissector(tvb, pinfo, root)
  return true
end

rampmeter:register_heuristic("udp", heuristic)
DissectorTable.get("udp.port"):add("7300-7301,7321-7322", rampmeter)
