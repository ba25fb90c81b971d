-- Tells tshark that all of UDP is XTP, and that XTP is in Ethernet. Told of one port only, tshark
-- asks who has the lower of the two first, and the sender's may be that of any protocol.
local xtp = DissectorTable.get("ip.proto"):get_dissector(36)
DissectorTable.get("udp.port"):add("1-65535", xtp)
DissectorTable.get("ethertype"):add(0x817d, xtp)
