-- Tells tshark that XTP is also in UDP, at the ports that follow, and in Ethernet.
local xtp = DissectorTable.get("ip.proto"):get_dissector(36)
for _, port in ipairs({...}) do
    DissectorTable.get("udp.port"):add(tonumber(port), xtp)
end
DissectorTable.get("ethertype"):add(0x817d, xtp)
