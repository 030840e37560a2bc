-- Rampmeter's packets in Wireshark and tshark: the envelope and every header inside.
--
--   tshark -X lua_script:wireshark/rampmeter.lua -r run.pcapng
--
-- Everything that differs between packets is in the tables of part 2: a transport is a table of
-- types, a type its name, the sentence of the info column, and its fields in the order of the wire.
-- The transports' tables are made from the headers in crates/proto; crates/proto/tests/generated.rs
-- says how. Part 3 makes filters, trees and checks of them.
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

-- A number of which the bits matter.
local function hex(bytes, name, label)
  return { name = name, bytes = bytes, label = label, base = base.HEX }
end

-- A byte that stands for one of the words, of which the first is that of 0.
local function word(name, label, expected, words)
  local function rule(value)
    return not words[value] and expected or nil
  end
  return { name = name, bytes = 1, label = label, rule = rule, words = words }
end

-- A byte that counts items, at most `most`, and the items. Filters of items are
-- `<transport>.<name>.<field>`, that of the number is `<transport>.<name>.count`.
local function list(name, label, most, fields)
  return { name = name, label = label, most = most, items = fields }
end

-- Whether one number is above another. Those of eight bytes are objects.
local function is_above(value, other)
  if type(value) ~= type(other) then
    value = type(value) == "number" and UInt64(value) or value
    other = type(other) == "number" and UInt64(other) or other
  end
  return value > other
end

-- Rules of numbers. The limit is a number or the name of an earlier field.
local function at_least(limit)
  return function(value, before)
    return is_above(before[limit] or limit, value) and "at least " .. limit or nil
  end
end

local function at_most(limit)
  return function(value, before)
    return is_above(value, before[limit] or limit) and "at most " .. limit or nil
  end
end

-- Part 2: the formats

-- Between these two lines nothing is written by hand.
-- <transports>
local TRANSPORTS = {
  [1] = {
    name = "dcpim",
    title = "dcPIM",
    [1] = {
      "notification", "flow {flow} of {size} bytes, flow slot {tx_slot}",
      u32("flow", "Flow, numbered among those of the pair"), u32("tx_slot", "Slot at the sender"),
      u64("size", "Bytes of the flow", at_least(1)),
      word("is_retransmission", "Retransmitted, to be answered", "0 or 1", { [0] = "no", "yes" }),
    },
    [2] = {
      "ack", "flow slot {tx_slot} is registered", u32("tx_slot", "Slot at the sender"),
      word("is_paused", "Paused by the receiver", "0 or 1", { [0] = "no", "yes" }),
    },
    [3] = {
      "data", "flow slot {rx_slot}, packet {seq}, token {number}",
      u32("rx_slot", "Slot at the receiver"), u32("seq", "Packet"), u32("number", "Number"),
    },
    [4] = {
      "token", "flow slot {tx_slot}, packet {seq}, {remaining} remaining",
      u32("tx_slot", "Slot at the sender"), u32("rx_slot", "Slot at the receiver"),
      u32("seq", "Packet"), u32("number", "Number"),
      u32("cumulative", "All packets below have arrived"), u32("phase", "Matching phase"),
      u32("remaining", "Packets remaining"), u8("rank", "Rank"),
    },
    [5] = {
      "finish", "flow {flow}, flow slot {tx_slot}, all {packets} packets sent",
      u32("flow", "Flow, numbered among those of the pair"), u32("tx_slot", "Slot at the sender"),
      u32("packets", "Packets of the flow"),
    },
    [6] = {
      "finish ack", "flow slot {tx_slot} is complete", u32("tx_slot", "Slot at the sender"),
    },
    [7] = {
      "request", "{channels} channels in round {round} of phase {phase}, {remaining} remaining",
      u8("channels", "Channels", at_least(1)),
      u8("prompt", "Channels that may start early", at_most("channels")), u8("round", "Round"),
      u32("phase", "Matching phase"), u32("remaining", "Packets remaining"),
      u64("announced", "Flow announced (ps, receiver's clock)"),
    },
    [8] = {
      "grant", "{channels} channels in round {round} of phase {phase}, {remaining} remaining",
      u8("channels", "Channels", at_least(1)),
      u8("prompt", "Channels that may start early", at_most("channels")), u8("round", "Round"),
      u32("phase", "Matching phase"), u32("remaining", "Packets remaining"),
      u64("announced", "Flow announced (ps, receiver's clock)"),
    },
    [9] = {
      "accept", "{channels} channels in round {round} of phase {phase}, {remaining} remaining",
      u8("channels", "Channels", at_least(1)),
      u8("prompt", "Channels that may start early", at_most("channels")), u8("round", "Round"),
      u32("phase", "Matching phase"), u32("remaining", "Packets remaining"),
      u64("announced", "Flow announced (ps, receiver's clock)"),
    },
    [10] = {
      "release", "{channels} channels in round {round} of phase {phase}, {remaining} remaining",
      u8("channels", "Channels", at_least(1)),
      u8("prompt", "Channels that may start early", at_most("channels")), u8("round", "Round"),
      u32("phase", "Matching phase"), u32("remaining", "Packets remaining"),
      u64("announced", "Flow announced (ps, receiver's clock)"),
    },
    [11] = {
      "unscheduled data", "flow {flow} of {size} bytes, packet {seq}",
      u32("flow", "Flow, numbered among those of the pair"), u32("tx_slot", "Slot at the sender"),
      u32("seq", "Packet"), u64("size", "Bytes of the flow", at_least(1)),
    },
  },
  [2] = {
    name = "phost",
    title = "pHost",
    [1] = {
      "RTS",
      "flow {flow} of {size} bytes, slot {tx_slot}, {time_to_deadline| ps left|no deadline}",
      u32("flow", "Flow, numbered among those of the pair"), u32("tx_slot", "Slot at the sender"),
      u64("size", "Bytes of the flow", at_least(1)),
      u64("time_to_deadline", "Time to the deadline (ps)"), u16("tenant", "Tenant"),
      word("is_retransmission", "Retransmitted, to be answered", "0 or 1", { [0] = "no", "yes" }),
    },
    [2] = {
      "token", "flow slot {tx_slot}, packet {seq}, {remaining} remaining",
      u32("tx_slot", "Slot at the sender"), u32("rx_slot", "Slot at the receiver"),
      u32("seq", "Packet"), u32("number", "Number"), u32("remaining", "Packets remaining"),
    },
    [3] = {
      "free data", "flow {flow} of {size} bytes, packet {seq}",
      u32("flow", "Flow, numbered among those of the pair"), u32("tx_slot", "Slot at the sender"),
      u32("seq", "Packet"), u64("size", "Bytes of the flow", at_least(1)),
    },
    [4] = {
      "data", "flow slot {rx_slot}, packet {seq}, token {number}",
      u32("rx_slot", "Slot at the receiver"), u32("seq", "Packet"), u32("number", "Number"),
    },
    [5] = {
      "ack", "flow slot {tx_slot} is complete", u32("tx_slot", "Slot at the sender"),
    },
    [6] = {
      "RTS ack", "flow slot {tx_slot} is registered", u32("tx_slot", "Slot at the sender"),
      word("is_paused", "Paused by the receiver", "0 or 1", { [0] = "no", "yes" }),
    },
  },
  [3] = {
    name = "pfabric",
    title = "pFabric",
    [1] = {
      "data", "flow {flow} of {size} bytes, packet {seq}, {remaining} remaining",
      u32("flow", "Flow, numbered among those of the pair"), u32("tx_slot", "Slot at the sender"),
      u32("seq", "Packet"), u32("remaining", "Packets remaining"),
      u64("size", "Bytes of the flow", at_least(1)),
    },
    [2] = {
      "probe", "flow {flow} of {size} bytes, {remaining} remaining",
      u32("flow", "Flow, numbered among those of the pair"), u32("tx_slot", "Slot at the sender"),
      u32("remaining", "Packets remaining"), u64("size", "Bytes of the flow", at_least(1)),
    },
    [3] = {
      "ack", "flow slot {tx_slot}, all below packet {cumulative} have arrived",
      u32("tx_slot", "Slot at the sender"), u32("cumulative", "All packets below have arrived"),
      hex(8, "sack", "Arrived from the cumulative packet on"),
    },
    [4] = {
      "pause", "paused {is_paused}",
      word("is_paused", "Paused by the receiver", "0 or 1", { [0] = "no", "yes" }),
    },
  },
  [4] = {
    name = "fastpass",
    title = "Fastpass",
    [1] = {
      "data", "flow {flow} of {size} bytes, packet {seq}",
      u32("flow", "Flow, numbered among those of the pair"), u32("tx_slot", "Slot at the sender"),
      u32("seq", "Packet"), u64("size", "Bytes of the flow", at_least(1)),
    },
    [2] = {
      "ack", "flow slot {tx_slot}, packet {seq}, all below {cumulative} have arrived",
      u32("tx_slot", "Slot at the sender"), u32("cumulative", "All packets below have arrived"),
      u32("seq", "Packet"),
    },
    [3] = {
      "request", "slots in all: {demand:{total} to {dst}}",
      u32("incarnation", "Incarnation of the demands"), u32("number", "Number"),
      list("demand", "Demand", 10, { u16("dst", "Destination"), u32("total", "Slots in all") }),
    },
    [4] = {
      "allocation", "from slot {first}: {slot:+{offset} to {dst}}",
      u32("incarnation", "Incarnation of the demands"),
      u32("last_request", "Latest request received"), u32("granted", "Slots granted in all"),
      u64("first", "First slot of the batch"),
      list("slot", "Slot", 16, { u16("dst", "Destination"), u8("offset", "Slots after the first"), u8("path", "Path") }),
    },
    [5] = {
      "arbiter reset", "repeat the demands of incarnation {incarnation}",
      u32("incarnation", "Incarnation of the demands"),
    },
    [6] = {
      "not active", "use the other arbiter",
    },
    [7] = {
      "watchdog", "the arbiter is alive",
    },
    [8] = {
      "announce", "flow slot {tx_slot} to {dst}, {remaining} remaining",
      u32("tx_slot", "Slot at the sender"), u16("dst", "Destination"),
      u32("remaining", "Packets remaining"), u32("number", "Number"),
    },
    [9] = {
      "schedule", "flow slots {schedule:{flow||none}}",
      list("schedule", "Slot of the epoch", 16, { u32("flow", "Slot at the source") }),
    },
    [10] = {
      "pause", "paused {is_paused}",
      word("is_paused", "Paused by the receiver", "0 or 1", { [0] = "no", "yes" }),
    },
  },
  [5] = {
    name = "cosy",
    title = "cosy",
    [1] = {
      "request", "flow {flow} of {size} bytes, flow slot {tx_slot}",
      u32("flow", "Flow, numbered among those of the pair"), u32("tx_slot", "Slot at the sender"),
      u64("size", "Bytes of the flow", at_least(1)),
    },
    [2] = {
      "rsvp", "flow slot {tx_slot} may send to slot {rx_slot}, virtual link {link}",
      u32("tx_slot", "Slot at the sender"), u32("seq", "Reservation"),
      u32("lease_us", "Lease (us)"), u16("rx_slot", "Slot at the receiver"),
      u16("link", "Virtual link that the packet is on"),
      word("last", "Last of its kind", "0 or 1", { [0] = "no", "yes" }),
      list("route", "Port on the direction to the receiver", 5, { u16("port", "Port") }),
    },
    [3] = {
      "release", "slot {rx_slot}, virtual link {link}", u32("seq", "Reservation"),
      u16("rx_slot", "Slot at the receiver"), u16("link", "Virtual link that the packet is on"),
      word("reason", "Reason", "0 to 3", { [0] = "blocked", "busy", "done", "failed" }),
      list("route", "Port on the direction to the receiver", 5, { u16("port", "Port") }),
    },
    [4] = {
      "reject", "flow slot {tx_slot} is not admitted", u32("tx_slot", "Slot at the sender"),
    },
    [5] = {
      "data", "slot {rx_slot}, packet {number} of the reservation", u32("seq", "Reservation"),
      u32("number", "Number"), u16("rx_slot", "Slot at the receiver"),
      u16("link", "Virtual link that the packet is on"),
      word("last", "Last of its kind", "0 or 1", { [0] = "no", "yes" }),
      list("route", "Port on the direction to the receiver", 5, { u16("port", "Port") }),
    },
    [6] = {
      "complete", "flow slot {tx_slot} is complete", u32("tx_slot", "Slot at the sender"),
    },
    [7] = {
      "failure", "flow slot {tx_slot} has failed", u32("tx_slot", "Slot at the sender"),
    },
  },
  [6] = {
    name = "rampmeter_tcp",
    title = "TCP",
    [1] = {
      "syn", "connection {conn}, sequence number {seq}",
      u32("conn", "Connection, numbered among those of the pair"), u32("seq", "Sequence number"),
      word("ecn", "ECN offered or accepted", "0 or 1", { [0] = "no", "yes" }),
    },
    [2] = {
      "syn-ack", "connection {conn} is open, window {window}",
      u32("conn", "Connection, numbered among those of the pair"),
      u32("ack", "Next sequence number expected"), u32("window", "Window in bytes"),
      word("ecn", "ECN offered or accepted", "0 or 1", { [0] = "no", "yes" }),
    },
    [3] = {
      "data", "connection {conn}, sequence number {seq}",
      u32("conn", "Connection, numbered among those of the pair"), u32("seq", "Sequence number"),
      u64("size", "Bytes of the message", at_least(1)),
      word("cwr", "Congestion window reduced", "0 or 1", { [0] = "no", "yes" }),
    },
    [4] = {
      "fin", "connection {conn} ends at sequence number {seq}",
      u32("conn", "Connection, numbered among those of the pair"), u32("seq", "Sequence number"),
    },
    [5] = {
      "ack", "connection {conn}, all below {ack} has arrived, window {window}",
      u32("conn", "Connection, numbered among those of the pair"),
      u32("ack", "Next sequence number expected"), u32("window", "Window in bytes"),
      word("ece", "Congestion echo", "0 or 1", { [0] = "no", "yes" }),
      list("sack", "Arrived above", 3, { u32("start", "First byte"), u32("end", "After the last byte") }),
    },
    [6] = {
      "reset", "connection {conn} is aborted",
      u32("conn", "Connection, numbered among those of the pair"),
    },
    [7] = {
      "refused", "connection {conn} does not exist",
      u32("conn", "Connection, numbered among those of the pair"),
    },
    [8] = {
      "ended", "connection {conn} has ended",
      u32("conn", "Connection, numbered among those of the pair"),
    },
  },
  [7] = {
    name = "dctcp",
    title = "DCTCP",
    [1] = {
      "syn", "connection {conn}, sequence number {seq}",
      u32("conn", "Connection, numbered among those of the pair"), u32("seq", "Sequence number"),
      word("ecn", "ECN offered or accepted", "0 or 1", { [0] = "no", "yes" }),
    },
    [2] = {
      "syn-ack", "connection {conn} is open, window {window}",
      u32("conn", "Connection, numbered among those of the pair"),
      u32("ack", "Next sequence number expected"), u32("window", "Window in bytes"),
      word("ecn", "ECN offered or accepted", "0 or 1", { [0] = "no", "yes" }),
    },
    [3] = {
      "data", "connection {conn}, sequence number {seq}",
      u32("conn", "Connection, numbered among those of the pair"), u32("seq", "Sequence number"),
      u64("size", "Bytes of the message", at_least(1)),
      word("cwr", "Congestion window reduced", "0 or 1", { [0] = "no", "yes" }),
    },
    [4] = {
      "fin", "connection {conn} ends at sequence number {seq}",
      u32("conn", "Connection, numbered among those of the pair"), u32("seq", "Sequence number"),
    },
    [5] = {
      "ack", "connection {conn}, all below {ack} has arrived, window {window}",
      u32("conn", "Connection, numbered among those of the pair"),
      u32("ack", "Next sequence number expected"), u32("window", "Window in bytes"),
      word("ece", "Congestion echo", "0 or 1", { [0] = "no", "yes" }),
      list("sack", "Arrived above", 3, { u32("start", "First byte"), u32("end", "After the last byte") }),
    },
    [6] = {
      "reset", "connection {conn} is aborted",
      u32("conn", "Connection, numbered among those of the pair"),
    },
    [7] = {
      "refused", "connection {conn} does not exist",
      u32("conn", "Connection, numbered among those of the pair"),
    },
    [8] = {
      "ended", "connection {conn} has ended",
      u32("conn", "Connection, numbered among those of the pair"),
    },
  },
  [8] = {
    name = "pias",
    title = "PIAS",
    [1] = {
      "syn", "connection {conn}, sequence number {seq}",
      u32("conn", "Connection, numbered among those of the pair"), u32("seq", "Sequence number"),
      word("ecn", "ECN offered or accepted", "0 or 1", { [0] = "no", "yes" }),
    },
    [2] = {
      "syn-ack", "connection {conn} is open, window {window}",
      u32("conn", "Connection, numbered among those of the pair"),
      u32("ack", "Next sequence number expected"), u32("window", "Window in bytes"),
      word("ecn", "ECN offered or accepted", "0 or 1", { [0] = "no", "yes" }),
    },
    [3] = {
      "data", "connection {conn}, sequence number {seq}",
      u32("conn", "Connection, numbered among those of the pair"), u32("seq", "Sequence number"),
      u64("size", "Bytes of the message", at_least(1)),
      word("cwr", "Congestion window reduced", "0 or 1", { [0] = "no", "yes" }),
    },
    [4] = {
      "fin", "connection {conn} ends at sequence number {seq}",
      u32("conn", "Connection, numbered among those of the pair"), u32("seq", "Sequence number"),
    },
    [5] = {
      "ack", "connection {conn}, all below {ack} has arrived, window {window}",
      u32("conn", "Connection, numbered among those of the pair"),
      u32("ack", "Next sequence number expected"), u32("window", "Window in bytes"),
      word("ece", "Congestion echo", "0 or 1", { [0] = "no", "yes" }),
      list("sack", "Arrived above", 3, { u32("start", "First byte"), u32("end", "After the last byte") }),
    },
    [6] = {
      "reset", "connection {conn} is aborted",
      u32("conn", "Connection, numbered among those of the pair"),
    },
    [7] = {
      "refused", "connection {conn} does not exist",
      u32("conn", "Connection, numbered among those of the pair"),
    },
    [8] = {
      "ended", "connection {conn} has ended",
      u32("conn", "Connection, numbered among those of the pair"),
    },
  },
  [9] = {
    name = "capton",
    title = "CAPTON",
    [1] = {
      "syn", "connection {conn}, sequence number {seq}",
      u32("conn", "Connection, numbered among those of the pair"), u32("seq", "Sequence number"),
      word("ecn", "ECN offered or accepted", "0 or 1", { [0] = "no", "yes" }),
    },
    [2] = {
      "syn-ack", "connection {conn} is open, window {window}",
      u32("conn", "Connection, numbered among those of the pair"),
      u32("ack", "Next sequence number expected"), u32("window", "Window in bytes"),
      word("ecn", "ECN offered or accepted", "0 or 1", { [0] = "no", "yes" }),
    },
    [3] = {
      "data", "connection {conn}, sequence number {seq}",
      u32("conn", "Connection, numbered among those of the pair"), u32("seq", "Sequence number"),
      u64("size", "Bytes of the message", at_least(1)),
      word("cwr", "Congestion window reduced", "0 or 1", { [0] = "no", "yes" }),
    },
    [4] = {
      "fin", "connection {conn} ends at sequence number {seq}",
      u32("conn", "Connection, numbered among those of the pair"), u32("seq", "Sequence number"),
    },
    [5] = {
      "ack", "connection {conn}, all below {ack} has arrived, window {window}",
      u32("conn", "Connection, numbered among those of the pair"),
      u32("ack", "Next sequence number expected"), u32("window", "Window in bytes"),
      word("ece", "Congestion echo", "0 or 1", { [0] = "no", "yes" }),
      list("sack", "Arrived above", 3, { u32("start", "First byte"), u32("end", "After the last byte") }),
    },
    [6] = {
      "reset", "connection {conn} is aborted",
      u32("conn", "Connection, numbered among those of the pair"),
    },
    [7] = {
      "refused", "connection {conn} does not exist",
      u32("conn", "Connection, numbered among those of the pair"),
    },
    [8] = {
      "ended", "connection {conn} has ended",
      u32("conn", "Connection, numbered among those of the pair"),
    },
    [16] = {
      "request", "flow {flow} to {dst}, {remaining} bytes remaining",
      u32("flow", "Flow, numbered by its source"), u32("dst", "Destination"),
      u64("remaining", "Remaining bytes"), u32("acked_order", "Latest order received"),
    },
    [17] = {
      "grant", "flow {flow} may send at {rate} bit/s", u32("flow", "Flow, numbered by its source"),
      u32("order", "Order"), u64("rate", "Rate (bit/s)", at_least(1)),
    },
    [18] = {
      "stop", "flow {flow} must wait", u32("flow", "Flow, numbered by its source"),
      u32("order", "Order"),
    },
    [19] = {
      "done", "flow {flow} has ended", u32("flow", "Flow, numbered by its source"),
    },
  },
  [10] = {
    name = "hyline",
    title = "Hyline",
    [1] = {
      "syn", "connection {conn}, sequence number {seq}",
      u32("conn", "Connection, numbered among those of the pair"), u32("seq", "Sequence number"),
      word("ecn", "ECN offered or accepted", "0 or 1", { [0] = "no", "yes" }),
    },
    [2] = {
      "syn-ack", "connection {conn} is open, window {window}",
      u32("conn", "Connection, numbered among those of the pair"),
      u32("ack", "Next sequence number expected"), u32("window", "Window in bytes"),
      word("ecn", "ECN offered or accepted", "0 or 1", { [0] = "no", "yes" }),
    },
    [3] = {
      "data", "connection {conn}, sequence number {seq}",
      u32("conn", "Connection, numbered among those of the pair"), u32("seq", "Sequence number"),
      u64("size", "Bytes of the message", at_least(1)),
      word("cwr", "Congestion window reduced", "0 or 1", { [0] = "no", "yes" }),
    },
    [4] = {
      "fin", "connection {conn} ends at sequence number {seq}",
      u32("conn", "Connection, numbered among those of the pair"), u32("seq", "Sequence number"),
    },
    [5] = {
      "ack", "connection {conn}, all below {ack} has arrived, window {window}",
      u32("conn", "Connection, numbered among those of the pair"),
      u32("ack", "Next sequence number expected"), u32("window", "Window in bytes"),
      word("ece", "Congestion echo", "0 or 1", { [0] = "no", "yes" }),
      list("sack", "Arrived above", 3, { u32("start", "First byte"), u32("end", "After the last byte") }),
    },
    [6] = {
      "reset", "connection {conn} is aborted",
      u32("conn", "Connection, numbered among those of the pair"),
    },
    [7] = {
      "refused", "connection {conn} does not exist",
      u32("conn", "Connection, numbered among those of the pair"),
    },
    [8] = {
      "ended", "connection {conn} has ended",
      u32("conn", "Connection, numbered among those of the pair"),
    },
    [16] = {
      "request", "flow {flow} to {dst}, {remaining} bytes remaining",
      u32("flow", "Flow, numbered by its source"), u32("dst", "Destination"),
      u64("remaining", "Remaining bytes"), u32("acked_order", "Latest order received"),
    },
    [17] = {
      "go", "flow {flow} may send at {rate} bit/s by path {path}",
      u32("flow", "Flow, numbered by its source"), u32("order", "Order"),
      u64("rate", "Rate (bit/s)", at_least(1)), u16("path", "Path"),
    },
    [18] = {
      "stop", "flow {flow} must wait", u32("flow", "Flow, numbered by its source"),
      u32("order", "Order"),
    },
    [19] = {
      "done", "flow {flow} has ended", u32("flow", "Flow, numbered by its source"),
    },
  },
  [11] = {
    name = "fastpod",
    title = "Fastpod",
    [1] = {
      "cell", "flow {flow} of {size} bytes, cell {seq}",
      u32("flow", "Flow, numbered among those of the pair"), u32("tx_slot", "Slot at the sender"),
      u32("seq", "Cell"), u64("size", "Bytes of the flow", at_least(1)),
    },
    [2] = {
      "rts", "slots in all: {demand:{total} to {dst}}", u32("epoch", "Epoch"),
      u32("incarnation", "Incarnation of the demands"), u32("number", "Number"),
      hex(1, "seen", "Observations of the host in a slot"),
      list("demand", "Demand", 3, { u16("dst", "Destination"), u32("total", "Slots in all") }),
      list("ack", "Message that has arrived", 3, { u16("host", "Other end"), u16("flow", "Flow, numbered among those of the pair") }),
    },
    [3] = {
      "schd", "slot {slot} to {dst}", u32("epoch", "Epoch"),
      u64("stamp", "Time of the arbiter in picoseconds"), u32("slot", "Slot"),
      u16("dst", "Destination"), u8("agg", "Aggregation or core switch"),
      u32("incarnation", "Incarnation of the demands"), u32("last_rts", "Latest RTS received"),
      u32("granted", "Slots granted in all"), u8("probe", "The slot is for a probe"),
      list("ack", "Message that has arrived", 3, { u16("host", "Other end"), u16("flow", "Flow, numbered among those of the pair") }),
    },
    [4] = {
      "watchdog", "the arbiter of epoch {epoch} is alive", u32("epoch", "Epoch"),
    },
    [5] = {
      "core-rts", "slots in all: {demand:{total} to {dst}}", u32("epoch", "Epoch"),
      u32("incarnation", "Incarnation of the demands"), u32("number", "Number"),
      hex(4, "open", "Pods with free memory"),
      list("demand", "Demand", 2, { u16("dst", "Destination"), u32("total", "Slots in all") }),
      list("relay", "Message that has arrived elsewhere", 2, { u16("to", "Source"), u16("from", "Receiver"), u16("flow", "Flow, numbered among those of the pair") }),
    },
    [6] = {
      "core-schd", "slot {slot} to {dst}", u32("epoch", "Epoch"),
      u64("stamp", "Time of the arbiter in picoseconds"), u32("slot", "Slot"),
      u16("dst", "Destination"), u32("incarnation", "Incarnation of the demands"),
      u32("last_rts", "Latest RTS received"), u32("granted", "Slots granted in all"),
      list("relay", "Message that has arrived elsewhere", 2, { u16("to", "Source"), u16("from", "Receiver"), u16("flow", "Flow, numbered among those of the pair") }),
    },
    [7] = {
      "report", "slots up to {slot}: sent {sent}, received {received}", u32("epoch", "Epoch"),
      u32("slot", "Slot"), u64("sent", "Slots in which the host sent, latest in bit 0"),
      u64("received", "Slots in which something arrived, latest in bit 0"),
      list("ack", "Message that has arrived", 3, { u16("host", "Other end"), u16("flow", "Flow, numbered among those of the pair") }),
    },
    [8] = {
      "probe", "the direction by {agg} works", u32("epoch", "Epoch"),
      u8("agg", "Aggregation or core switch"),
    },
    [9] = {
      "pause", "paused {is_paused}",
      word("is_paused", "Paused by the receiver", "0 or 1", { [0] = "no", "yes" }),
    },
    [10] = {
      "request", "flow {flow} of {size} bytes",
      u32("flow", "Flow, numbered among those of the pair"), u32("tx_slot", "Slot at the sender"),
      u64("size", "Bytes of the flow", at_least(1)),
    },
  },
  [12] = {
    name = "rampmeter_ndp",
    title = "NDP",
    [1] = {
      "data", "flow {flow} of {size} bytes, packet {seq}",
      u32("flow", "Flow, numbered among those of the pair"), u32("tx_slot", "Slot at the sender"),
      u32("seq", "Packet"), u64("size", "Bytes of the flow", at_least(1)),
    },
    [2] = {
      "ack", "flow slot {tx_slot}, packet {seq}, all below {cumulative}, pull {pull}",
      u32("tx_slot", "Slot at the sender"), u32("seq", "Packet"),
      u32("cumulative", "All below have arrived"), u32("pull", "Packets pulled"),
      u16("path", "Path"),
    },
    [3] = {
      "nack", "flow slot {tx_slot}, packet {seq}, pull {pull}",
      u32("tx_slot", "Slot at the sender"), u32("seq", "Packet"), u32("pull", "Packets pulled"),
      u16("path", "Path"),
    },
    [4] = {
      "pull", "flow slot {tx_slot}, pull {pull}", u32("tx_slot", "Slot at the sender"),
      u32("pull", "Packets pulled"),
    },
  },
  [13] = {
    name = "homa",
    title = "Homa",
    [1] = {
      "unscheduled data", "message {flow} of {size} bytes, packet {seq}",
      u32("flow", "Message, numbered among those of the pair"),
      u32("tx_slot", "Slot at the sender"), u32("seq", "Packet"),
      u64("size", "Bytes of the message", at_least(1)),
      u32("unscheduled", "Packets without a grant"),
      u32("answers", "Request that it answers, plus one"),
      word("incast", "Incast control", "0 or 1", { [0] = "no", "yes" }),
    },
    [2] = {
      "data", "message slot {rx_slot}, packet {seq}", u32("rx_slot", "Slot at the receiver"),
      u32("seq", "Packet"),
    },
    [3] = {
      "GRANT", "message slot {tx_slot}, {credit} packets, priority {priority}",
      u32("tx_slot", "Slot at the sender"), u32("rx_slot", "Slot at the receiver"),
      u32("credit", "Packets granted"), u8("priority", "Priority"),
      word("incast", "Incast control", "0 or 1", { [0] = "no", "yes" }),
    },
    [4] = {
      "RESEND", "message slot {tx_slot}, {count} packets from {seq}",
      u32("tx_slot", "Slot at the sender"), u32("rx_slot", "Slot at the receiver"),
      u32("seq", "Packet"), u32("count", "Packets missing"),
    },
    [5] = {
      "BUSY", "message slot {rx_slot}", u32("rx_slot", "Slot at the receiver"),
    },
    [6] = {
      "ACK", "message slot {tx_slot} is complete", u32("tx_slot", "Slot at the sender"),
      word("incast", "Incast control", "0 or 1", { [0] = "no", "yes" }),
    },
    [7] = {
      "PROBE", "message {flow} of {size} bytes",
      u32("flow", "Message, numbered among those of the pair"),
      u32("tx_slot", "Slot at the sender"), u64("size", "Bytes of the message", at_least(1)),
      u32("unscheduled", "Packets without a grant"),
      u32("answers", "Request that it answers, plus one"),
      word("is_burst_over", "All unscheduled packets are sent", "0 or 1", { [0] = "no", "yes" }),
    },
    [8] = {
      "KNOWN", "message slot {tx_slot} is registered", u32("tx_slot", "Slot at the sender"),
      u32("rx_slot", "Slot at the receiver"),
      word("is_burst_over", "All unscheduled packets are sent", "0 or 1", { [0] = "no", "yes" }),
    },
    [9] = {
      "SACK", "message slot {tx_slot}, packet {seq} has arrived",
      u32("tx_slot", "Slot at the sender"), u32("seq", "Packet"),
    },
  },
  [14] = {
    name = "homa-aeolus",
    title = "Homa Aeolus",
    [1] = {
      "unscheduled data", "message {flow} of {size} bytes, packet {seq}",
      u32("flow", "Message, numbered among those of the pair"),
      u32("tx_slot", "Slot at the sender"), u32("seq", "Packet"),
      u64("size", "Bytes of the message", at_least(1)),
      u32("unscheduled", "Packets without a grant"),
      u32("answers", "Request that it answers, plus one"),
      word("incast", "Incast control", "0 or 1", { [0] = "no", "yes" }),
    },
    [2] = {
      "data", "message slot {rx_slot}, packet {seq}", u32("rx_slot", "Slot at the receiver"),
      u32("seq", "Packet"),
    },
    [3] = {
      "GRANT", "message slot {tx_slot}, {credit} packets, priority {priority}",
      u32("tx_slot", "Slot at the sender"), u32("rx_slot", "Slot at the receiver"),
      u32("credit", "Packets granted"), u8("priority", "Priority"),
      word("incast", "Incast control", "0 or 1", { [0] = "no", "yes" }),
    },
    [4] = {
      "RESEND", "message slot {tx_slot}, {count} packets from {seq}",
      u32("tx_slot", "Slot at the sender"), u32("rx_slot", "Slot at the receiver"),
      u32("seq", "Packet"), u32("count", "Packets missing"),
    },
    [5] = {
      "BUSY", "message slot {rx_slot}", u32("rx_slot", "Slot at the receiver"),
    },
    [6] = {
      "ACK", "message slot {tx_slot} is complete", u32("tx_slot", "Slot at the sender"),
      word("incast", "Incast control", "0 or 1", { [0] = "no", "yes" }),
    },
    [7] = {
      "PROBE", "message {flow} of {size} bytes",
      u32("flow", "Message, numbered among those of the pair"),
      u32("tx_slot", "Slot at the sender"), u64("size", "Bytes of the message", at_least(1)),
      u32("unscheduled", "Packets without a grant"),
      u32("answers", "Request that it answers, plus one"),
      word("is_burst_over", "All unscheduled packets are sent", "0 or 1", { [0] = "no", "yes" }),
    },
    [8] = {
      "KNOWN", "message slot {tx_slot} is registered", u32("tx_slot", "Slot at the sender"),
      u32("rx_slot", "Slot at the receiver"),
      word("is_burst_over", "All unscheduled packets are sent", "0 or 1", { [0] = "no", "yes" }),
    },
    [9] = {
      "SACK", "message slot {tx_slot}, packet {seq} has arrived",
      u32("tx_slot", "Slot at the sender"), u32("seq", "Packet"),
    },
  },
  [15] = {
    name = "sird",
    title = "SIRD",
    [1] = {
      "unscheduled data", "message {flow} of {size} bytes, packet {seq}",
      u32("flow", "Message, numbered among those of the pair"),
      u32("tx_slot", "Slot at the sender"), u32("seq", "Packet"),
      u64("size", "Bytes of the message", at_least(1)),
      word("csn", "Congested sender", "0 or 1", { [0] = "no", "yes" }),
    },
    [2] = {
      "data", "message slot {rx_slot}, packet {seq}", u32("rx_slot", "Slot at the receiver"),
      u32("seq", "Packet"), word("csn", "Congested sender", "0 or 1", { [0] = "no", "yes" }),
    },
    [3] = {
      "REQUEST", "message {flow} of {size} bytes",
      u32("flow", "Message, numbered among those of the pair"),
      u32("tx_slot", "Slot at the sender"), u64("size", "Bytes of the message", at_least(1)),
    },
    [4] = {
      "CREDIT", "message slot {tx_slot}, packet {seq}", u32("tx_slot", "Slot at the sender"),
      u32("rx_slot", "Slot at the receiver"), u32("seq", "Packet"),
    },
    [5] = {
      "BUSY", "message slot {rx_slot}", u32("rx_slot", "Slot at the receiver"),
    },
    [6] = {
      "ACK", "message slot {tx_slot} is complete", u32("tx_slot", "Slot at the sender"),
    },
    [7] = {
      "KNOWN", "message slot {tx_slot} is registered", u32("tx_slot", "Slot at the sender"),
      u32("rx_slot", "Slot at the receiver"),
    },
  },
  [16] = {
    name = "hpcc",
    title = "HPCC",
    [1] = {
      "data", "flow {flow} of {size} bytes, packet {seq}",
      u32("flow", "Flow, numbered among those of the pair"), u32("tx_slot", "Slot at the sender"),
      u32("seq", "Packet"), u64("size", "Bytes of the flow", at_least(1)), u16("path", "Path"),
      list("record", "Record", 5, { u32("time", "Time (128 ps)"), u32("sent", "Bytes sent before"), u32("queued", "Bytes waiting"), u16("rate", "Rate: 12 bits of Mbit/s, times 2 to the first 4") }),
    },
    [2] = {
      "ack", "flow slot {tx_slot}, all below packet {cumulative} have arrived",
      u32("tx_slot", "Slot at the sender"), u32("cumulative", "All packets below have arrived"),
      hex(8, "sack", "Arrived from the cumulative packet on"),
      word("is_go_back_n", "Retransmit from there on", "0 or 1", { [0] = "no", "yes" }),
      u16("path", "Path"),
      list("record", "Record", 5, { u32("time", "Time (128 ps)"), u32("sent", "Bytes sent before"), u32("queued", "Bytes waiting"), u16("rate", "Rate: 12 bits of Mbit/s, times 2 to the first 4") }),
    },
  },
}
-- </transports>

local TITLES = {}
for id, transport in pairs(TRANSPORTS) do
  TITLES[id] = transport.title
end

-- Two transports on one network: 64, 8 times the number of that in higher classes, and the other's.
-- A byte before headers says whose they are.
local PAIRS = {}
for upper, above in pairs(TRANSPORTS) do
  for lower, below in pairs(TRANSPORTS) do
    if upper < 8 and lower < 8 and upper ~= lower then
      local id = 64 + 8 * upper + lower
      PAIRS[id] = { [0] = upper, lower }
      TITLES[id] = ("%s above %s"):format(above.title, below.title)
    end
  end
end

local KINDS = {
  [0] = "hello", "here", "control", "data", "refused",
  "initiation", "response", "cookie", "confirmation", "bundle", "data with digest", "corrupt",
}
local HELLO, HERE, CONTROL, DATA, CORRUPT = 0, 1, 2, 3, 11
local INITIATION, RESPONSE, COOKIE, CONFIRMATION, BUNDLE, DATA_WITH_DIGEST = 5, 6, 7, 8, 9, 10

local function is_data(kind)
  return kind == DATA or kind == DATA_WITH_DIGEST
end
local PROTECTIONS = { [0] = "none", "checksum", "sealed", "sealed, decrypted" }
local CHECKSUM, SEALED, DECRYPTED = 1, 2, 3

local MAGIC, VERSION = 0x524d, 2

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
  word("protection", "Protection", "0 to 3", PROTECTIONS),
  u16("service", "Service", function(value, before)
    return not is_data(before.kind) and value ~= 0 and "0 but in data" or nil
  end),
  u32("src", "Source node"),
  u32("dst", "Destination node"),
  u32("src_life", "Incarnation of the source", at_least(1)),
  u32("dst_life", "Incarnation of the destination, 0 if unknown"),
}

-- What follows, by kind; without a word here it is the message alone.
local NONCE = { { name = "nonce", bytes = 4, label = "Nonce", base = base.HEX } }
local MESSAGE = { u32("msg", "Message") }
local OFFSET, TOTAL = u32("offset", "Offset of the payload"), u32("size", "Bytes of the message")
local FRAGMENT = { MESSAGE[1], OFFSET, TOTAL }
-- The digest of a message, which is sealed where the payload is.
local MESSAGE_DIGEST = { hex(4, "message_digest", "CRC32C of the message") }
local PART = { word("part", "In classes", "0 or 1", { [0] = "higher", "lower" }) }
local SESSION = { u32("session", "Session, by the sender's number of the initiation") }
local PACKETS = {
  u32("packets", "Packets of the bundle", at_least(2)),
}
-- What may follow a hello and its answer.
local SETTINGS = { { name = "settings", bytes = 1, label = "Settings that digests follow of" } }
local DIGEST = { hex(4, "digest", "Digest of a setting") }
-- What stands before the header of each packet of a bundle.
local ENTRY = { u16("length", "Bytes of the header"), MESSAGE[1] }
local REST = {
  [HELLO] = NONCE, [HERE] = NONCE, [DATA] = FRAGMENT,
  [INITIATION] = SESSION, [RESPONSE] = SESSION, [COOKIE] = SESSION,
  [BUNDLE] = PACKETS, [DATA_WITH_DIGEST] = FRAGMENT,
}

-- What follows the payload, by protection, and its bytes. The packet's number is in two fields.
local TRAILERS = {
  [CHECKSUM] = { bytes = 4, { name = "checksum", bytes = 4, label = "CRC32C", base = base.HEX } },
  [SEALED] = {
    bytes = 24, u16("sealed.session", "Session, by the receiver's number"),
    u16("sealed.epoch", "Packet of the session, upper half"),
    u32("sealed.number", "Packet of the session"),
    hex(8, "sealed.tag", "Start of the tag"),
  },
}

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
declare("rampmeter.", MESSAGE_DIGEST, FIELDS)
declare("rampmeter.", SESSION, FIELDS)
declare("rampmeter.", PACKETS, FIELDS)
declare("rampmeter.", ENTRY, FIELDS)
declare("rampmeter.", SETTINGS, FIELDS)
declare("rampmeter.", DIGEST, FIELDS)
declare("rampmeter.", TRAILERS[CHECKSUM], FIELDS)
declare("rampmeter.", TRAILERS[SEALED], FIELDS)
TRAILERS[DECRYPTED] = TRAILERS[SEALED]
declare("rampmeter.", PART, FIELDS)
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

-- The largest numbers by their bytes.
local LARGEST = { "255", "65535", nil, "4294967295", nil, nil, nil, "18446744073709551615" }

local fill

-- What takes the place of `hole` in a sentence. A hole is a field's name; or the name, a bar, words
-- that follow the value, a bar, and words that replace the largest value; or a list's name, a colon,
-- and the sentence of an item.
local function filled(hole, fields, values)
  local name, rest = hole:match("^([%w_]+)(.*)$")
  local value, format = values[name], nil
  for _, candidate in ipairs(fields) do
    format = candidate.name == name and candidate or format
  end
  if rest:sub(1, 1) == ":" then
    local parts = {}
    for i, item in ipairs(value) do
      parts[i] = fill(rest:sub(2), format.items, item)
    end
    return #parts > 0 and table.concat(parts, ", ") or "none"
  end
  local after, instead = rest:match("^|(.*)|(.*)$")
  if after and plain(value) == LARGEST[format.bytes] then
    return instead
  end
  return plain(value) .. (after or "")
end

-- A sentence with the values of fields in its holes.
fill = function(sentence, fields, values)
  return (sentence:gsub("%b{}", function(hole)
    return filled(hole:sub(2, -2), fields, values)
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
  return ("%s: %s"):format(packet[1], fill(packet[2], packet.fields, values))
end

-- Reads the byte that says whose header follows, where two transports share a network; false where the
-- reading had to stop.
local function read_part(at, tree, values)
  local pair = PAIRS[values.transport]
  if pair then
    if not read_fields(at, tree, PART, "rampmeter.", FIELDS, values) then
      return false
    end
    values.header = pair[values.part]
  end
  return true
end

-- Reads the digests of a hello or its answer, where there are some; false where the reading had to stop.
local function read_settings(at, tree, values)
  if at.at == at.tvb:reported_len() then
    return true
  end
  local said = read_fields(at, tree, SETTINGS, "rampmeter.", FIELDS, values)
  for _ = 1, said and values.settings or 0 do
    if not read_fields(at, tree, DIGEST, "rampmeter.", FIELDS, values) then
      return false
    end
  end
  -- A hello that probes the path is as long as full packets; what fills it says nothing.
  if said and values.kind == 0 then
    at.at = at.tvb:reported_len()
  end
  return said
end

-- Reads the packets of a bundle; the sentence of the first, or nil if they could not be read.
local function read_bundle(at, tree, root, values)
  local first
  for _ = 1, values.packets do
    local entry = { transport = values.transport }
    if not read_fields(at, tree, ENTRY, "rampmeter.", FIELDS, entry) then
      return nil
    end
    local ends = at.at + entry.length
    if not read_part(at, tree, entry) then
      return nil
    end
    values.header = entry.header
    local transport = TRANSPORTS[entry.header or entry.transport]
    local sentence = transport and read_header(at, root, transport)
    if not sentence then
      return nil
    end
    if at.at ~= ends then
      local text = "%d bytes of header in %d"
      complain(at, tree, "bad_length", text:format(entry.length + at.at - ends, entry.length))
      return nil
    end
    first = first or sentence
  end
  return ("bundle: %d packets, first %s"):format(values.packets, first)
end

-- What comes after the headers; of data, a sentence about it.
local function read_payload(at, tree, envelope)
  local len, captured = at.tvb:reported_len() - at.at, at.tvb:len() - at.at
  if not is_data(envelope.kind) then
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
  [INITIATION] = "{src} begins a session with {dst}",
  [RESPONSE] = "{src} agrees to a session with {dst}",
  [COOKIE] = "{src} is busy: {dst} should prove its address",
  [CONFIRMATION] = "{src} uses its new session with {dst}",
  [CORRUPT] = "message {msg}, other bytes have arrived than were sent",
}

-- Reads the trailer of a whole packet, and leaves it out of what is read after it.
local function read_trailer(at, tree)
  local tvb = at.tvb
  local trailer = tvb:len() > 5 and TRAILERS[tvb(5, 1):uint()]
  local rest = tvb:reported_len() - (trailer and trailer.bytes or 0)
  if not trailer or tvb:len() < tvb:reported_len() or rest < 28 then
    return
  end
  at.at, at.trailer = rest, { raw = tvb:raw(rest, trailer.bytes) }
  read_fields(at, tree, trailer, "rampmeter.", FIELDS, at.trailer)
  at.at, at.tvb = 0, tvb(0, rest):tvb()
end

local function read_packet(at, tree, root, values)
  if not read_fields(at, tree, ENVELOPE, "rampmeter.", FIELDS, values) then
    return nil
  end
  if not KINDS[values.kind] then
    complain(at, tree, "unknown_kind", ("there are no packets of kind %d"):format(values.kind))
    return nil
  end
  local is_handshake = values.kind >= INITIATION and values.kind < CONFIRMATION
  local rest = REST[values.kind] or MESSAGE
  if not read_fields(at, tree, rest, "rampmeter.", FIELDS, values) then
    return nil
  end
  if values.protection == SEALED then
    tree:set_len(at.at)
    local len = at.tvb:reported_len() - at.at
    return ("%s, sealed, %d bytes"):format(KINDS[values.kind], len)
  end
  if values.kind == DATA_WITH_DIGEST
    and not read_fields(at, tree, MESSAGE_DIGEST, "rampmeter.", FIELDS, values) then
    return nil
  end
  local is_packet = values.kind == CONTROL or is_data(values.kind)
  if is_packet and not read_part(at, tree, values) then
    return nil
  end
  tree:set_len(at.at)
  local transport = TRANSPORTS[values.header or values.transport]
  if not transport and not PAIRS[values.transport] then
    complain(at, tree, "unknown_transport", ("there is no transport %d"):format(values.transport))
  end
  if values.kind == BUNDLE then
    local sentence = read_bundle(at, tree, root, values)
    return sentence and sentence .. read_payload(at, tree, values)
  end
  if values.kind <= HERE and not read_settings(at, tree, values) then
    return nil
  end
  if not is_packet then
    if not is_handshake then
      read_payload(at, tree, values)
    end
    local sentence = SENTENCES[values.kind] or "message {msg}, nobody takes it"
    return ("%s: %s"):format(KINDS[values.kind], fill(sentence, ENVELOPE, values))
  end
  local header = transport and read_header(at, root, transport)
  return header and header .. read_payload(at, tree, values)
end

function rampmeter.dissector(tvb, pinfo, root)
  local tree = root:add(rampmeter, tvb())
  local at, values = { tvb = tvb, at = 0 }, {}
  read_trailer(at, tree)
  local sentence = read_packet(at, tree, root, values)
  local title = TITLES[values.header or values.transport] or "Rampmeter"
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
