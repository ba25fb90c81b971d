//! What every help says after its list of options: notes and examples. The manual pages are made of
//! these blocks; an empty line stands between two, and one whose first line ends with a colon is a
//! list.

pub use dacapo_term::exit::HELP as EXIT_CODES;

pub const EVAL: &str = "\
`dacapo bench` becomes this program; what is said of that holds here.

Examples:
  dacapo bench control                     as in Tables 20 and 22 to 24 of 1998
  dacapo bench transfer                    1 GiB by `send --reliable` beside plain sockets
  dacapo bench transfer --size 100MB --rounds 3 --json
  dacapo bench lift                        what a module costs, and a runner of modules
  dacapo bench link                        what the emulator of `link` costs
  dacapo bench net                         what goes from process to process on this host
  dacapo bench net 192.0.2.7               or to `dacapo bench net --listen` there
  dacapo bench safenet                     messages over XTP, beside the SAFENET document
  dacapo bench scale                       what ten thousand idle sessions cost
  dacapo bench xtp                         what XTP carries, as in a paper of 1995";

pub const LIST: &str = "\
Examples:
  dacapo eval list
  dacapo eval list network                 its rows, and what each is compared with";

pub const RUN: &str = "\
Every row runs once a round, each behind the control that it is compared with. Quiet rounds and
loaded ones, beside a process that spins and one that copies memory, take turns. A run that was
stopped, by a signal, a full disk or a reboot, goes on where it was when it is asked for again.
The whole of an experiment, from a tree without changes, is kept in eval/runs; a part of it (--only,
fewer rounds, no controls), and what any other tree gives, is put into target/eval to look at.

Experiments between two hosts make network namespaces, which needs root. Nothing else should run on
the machine. Peers are built by `make eval-peers`; those that are missing are named and left out.

It ends with 1 when an experiment could not be measured at all; a goal that is missed is a result.

Examples:
  dacapo eval run network
  dacapo eval run network --only ours-udp,ours-tcp --rounds 3 --loaded-rounds 0
  dacapo eval run media
  dacapo eval run all";

pub const SHOW: &str = "\
Examples:
  dacapo eval show network
  dacapo eval show network --format csv > network.csv
  dacapo eval show network --charts out/charts";

pub const COMPARE: &str = "\
Where a row has a control its ratios to that are compared, within each run, as figures of two hours
are not comparable.

Examples:
  dacapo eval compare network/2026-11-24-b8cfde3 network";

pub const HISTORY: &str = "\
Examples:
  dacapo eval history ours-udp
  dacapo eval history ours-udp --charts out/charts";

pub const PROFILE: &str = "\
Each row runs once more, both ends under `perf record` (Debian: linux-perf), and its graph is put
beside the run as profile-ROW.svg, where docs/goals.md names it. The tree has to be that of the run.

Examples:
  dacapo eval profile network
  dacapo eval profile network --only ours-xtp --out out/profiles";

pub const CHECK: &str = "\
README.md's block, docs/performance.md, docs/bad-networks.md, docs/goals.md and docs/charts are made
of the last run of each experiment. It ends with 1 when one of them is another, a run is damaged or
was made from a tree with changes, or a figure in the prose of docs/tuning.md, xtp.md, safenet.md or
decisions.md says neither commit nor run.

Examples:
  dacapo eval check
  dacapo eval check --write                make the documents anew, after a run";

pub const BURDEN: &str = "\
Examples:
  dacapo-eval burden spin --seconds 1";

pub const PACE: &str = "\
Examples:
  dacapo-eval pace film.ts --mbit-per-s 4.4 | dacapo send 127.0.0.1 - --format mpegts";

pub const COLLECT: &str = "\
Examples:
  dacapo-eval collect 127.0.0.1:5004 > out.ts";

pub const SPEED: &str = "\
What a module adds to a flow of packets of 1,400 B, in the part that computes, beside the library's
function on the same bytes, a plain loop, or ISA-L (`make eval-peers` builds what calls it).

Examples:
  dacapo bench speed
  dacapo bench speed --row fec-rs-encode --rounds 2000
  dacapo bench speed --row arq-sr-train --json | jq .rows[0].ns";

pub const SETUP: &str = "\
Examples:
  dacapo-eval setup --listen 127.0.0.1:21000
  dacapo-eval setup 127.0.0.1:21000 --new session --duration 2s";

pub const STARTS: &str = "\
Examples:
  dacapo-eval starts --duration 1s -- true --then true
  dacapo-eval starts -- dacapo-eval setup 127.0.0.1:21000 --once \\
      --then dacapo-eval setup 127.0.0.1:21000 --duration 1ms";

pub const CONTROL: &str = "\
Examples:
  dacapo bench control
  dacapo bench control --rounds 500 --json";

pub const TRANSFER: &str = "\
Each round sends the same file by `dacapo send --reliable` to `dacapo recv`, then by a program of
plain TCP sockets that does the same reads, hash and writes. Both use two processes over loopback.

Examples:
  dacapo bench transfer
  dacapo bench transfer --size '4 GiB' --rounds 3 --dir /var/tmp";

pub const CHOICE: &str = "\
Requests are made up by their number: up to five attributes, a path that has a name, and units, for
all modules and transports of this program. Most are granted; the others are told what could be had.

Examples:
  dacapo bench choice
  dacapo bench choice --requests 100000
  dacapo bench choice --json | jq .granted.p99_us";

pub const CHOICES: &str = "\
For each request of docs/choices.md: which graph is chosen, and which without the module that the
request is for. The flow runs as often as is said, whole hosts in virtual time, over a link that is
as the path is assumed; a run holds when all that is asked does.

Examples:
  dacapo bench choices
  dacapo bench choices --cell fec-rs-1 --seeds 200
  dacapo bench choices --json | jq '.cells[] | select(.held < .seeds)'";

pub const DRAWN: &str = "\
Session files are made of numbers: paths, units and what is asked, drawn over what networks and
applications have, without a look at any module. Each is answered as `dacapo explain` would.

Examples:
  dacapo bench drawn
  dacapo bench drawn --module fec-rs
  dacapo bench drawn --show 17 > drawn.toml && dacapo explain drawn.toml
  dacapo bench drawn --json | jq '.modules[] | select(.share < 0.005)'";

pub const COPIES: &str = "\
Two ends, of which one runs under callgrind, which counts the bytes that are copied: once with 32
units and once with 96. valgrind has to be installed. It takes half a minute a transport.

Examples:
  dacapo bench copies --over tcp
  dacapo bench copies --json";

pub const COPIES_END: &str = "\
Examples:
  dacapo-eval copies-end --over tcp
  dacapo-eval copies-end --over tcp 127.0.0.1:40000 --way recv --units 32";

pub const COST: &str = "\
Units go down and up through a graph with the module and without it, in turns, without a network;
the difference counts. What a profile says is what graphs are chosen by.

Examples:
  dacapo bench cost
  dacapo bench cost --module checksum
  dacapo bench cost --json | jq '.modules[].fitted'";

pub const LIFT: &str = "\
In turns, until the time is over: 0, 3, 5, 10 and 20 equal modules, of which each touches a header
or only forwards, with packets in batches of 32 and one by one; called without a runner, by the
runner, and by the runner that takes the time too. Then whole lives of packets, from allocated to
freed, and first uses. Where gst-launch-1.0 is installed, identity elements of GStreamer too.

It ends with 0 when everything could be measured, and with 1 when a packet got lost on its way.

Examples:
  dacapo bench lift
  dacapo bench lift --seconds 30
  dacapo bench lift --json | jq '.marginal[] | {module, batch, called, per_packet_and_module}'";

pub const LINK: &str = "\
Each round sends datagrams of 100 and of 1,400 bytes over loopback as fast as they are taken, with
and without a relay that changes nothing; and, as root, through two TUN devices. The rate is what
arrived. The processor time of a datagram is that of this whole process: sender, emulator, receiver.

Examples:
  dacapo bench link
  dacapo bench link --seconds 5 --rounds 5 --json";

pub const NET: &str = "\
Without HOST both ends are on this host, two processes over loopback. With HOST the far end is
`dacapo bench net --listen`, started there by hand; it runs one measurement after the other, for as
many as come, and bounds what they may ask of it.

Over udp-multicast and tcp-multicast what this end sends goes once to all far ends, to a group or to
a stream of each. They join a session at this host, so a firewall here must let them in, over UDP
and TCP at a port of the system's choice. Each has figures of its own, and there is their sum; when
one cannot be measured nothing is, and it is named.

Units go from application to application through the library. Goodput is counted by the receiver,
processor time (user and kernel) at both ends. Over udp, udp-multicast and quic-datagram nothing
waits for a slow receiver: what it cannot take is lost, and counted. Delays are of units of 64
bytes there and back, for 2 s at most unless --what latency. Packets are counted by the lowest
module; without modules nobody counts them.

It ends with 0 when everything could be measured, 1 when it could not, 3 when nothing answers at
HOST, 5 when the graph is illegal, and 6 when units are missing that nobody has booked.

Examples:
  dacapo bench net
  dacapo bench net --listen                                       # on one host, and on another:
  dacapo bench net 192.0.2.7 --direction both --duration 10s
  dacapo bench net --unit-len 1400 --rate '1 Gbit/s' --graph segment,sequence,checksum
  dacapo bench net --transport tcp --flows 4 --bytes 10GB --rounds 5 --json | jq .median
  dacapo bench net --what latency --wait spin --transport quic
  dacapo bench net 192.0.2.7 192.0.2.8 --transport udp-multicast --rate '2 Gbit/s'
  dacapo bench net --receivers 2 --transport tcp-multicast --json | jq .median.receivers";

pub const SAFENET: &str = "\
Latency is half of an echo's round trip, throughput is from the first message sent to the last, and
the line through the latencies is by least squares: as that document has it. Each end is a host in a
thread of its own; plain UDP sockets and frames of Ethernet stand beside them. Frames need a cable
between two network namespaces, which the command makes where it is root; elsewhere that level is
left out. They come in by a ring that is shared with the kernel, and in another row by a call for
each; where the kernel gives no ring, that row is left out. Over memory packets are handed over by a
call: that is the processor's work alone.

Examples:
  dacapo bench safenet
  dacapo bench safenet --over memory
  dacapo bench safenet --over ethernet --no-check
  dacapo bench safenet --seconds 2 --json | jq .levels[0].fit";

pub const SCALE: &str = "\
Two processes on this host, over loopback: the far end is one host that serves a session with one
flow that sends nothing; this one is a host for each connection and joins it again and again. First
one connection without a session, idle; then all connections; then sessions that are opened and
closed; then all sessions at a time, idle; then all are closed. Both ends look at themselves in
between: memory that is no file's, threads, descriptors, processor time. What the kernel keeps for
sockets is not in it.

Growth is that of --opens sessions after a quarter as many have gone before: a connection keeps the
memory of some streams for the next ones, which is no growth without end.

A connection has at most 770 sessions here, and 32,000 opens in all: labels rest for two minutes. A
connection takes four descriptors at this end, because each has a host of its own (ulimit -n).

It ends with 0 when everything could be measured, whether or not a goal is met, and with 1 when
something failed or a session is left at the end.

Examples:
  dacapo bench scale
  dacapo bench scale --sessions 200 --opens 500 --idle 2s
  dacapo bench scale --connections 200 --opens 0
  dacapo bench scale --send 5000 --sessions 1000 --idle 2s     # what a unit costs, how late it is
  dacapo bench scale --json | jq .figures";

pub const XTP: &str = "\
As Mapp measured SandiaXTP in 1995: so many bytes are sent, by so many at once, each send a message
in all modes of the paper. ack-rel and ack-un wait until each is acknowledged; here that is when the
far end's user has read it (DREQ). blast sends 1 MB without waiting and rests for 100 ms,
blast-steady does not rest. Two costs are derived: of reliability, ack-un less ack-rel; of waiting,
blast less ack-un.
What may be lost has no checksum over its data, as then. stream is not of the paper: reliable,
without waiting, bytes without ends of messages; what does not fill a packet waits for the next
send.

The time is that of the near end, from the first byte given to the last one read; pauses are no
part of it. Processor time (user and kernel) is that of both processes, each one thread. All bytes
are those that the far end has read, and what it has not is said as lost. JSON has in
read_by_100_ms how many those were by each tenth of a second of the last run, for ten minutes at
most.

Without HOST both ends are on this host, two processes over loopback. With HOST the far end is
`dacapo bench xtp --listen`, started there by hand: it reads whatever comes, one association after
the other, and tells what it has read. Over an MTU of 1,500 say --packet-len 1452 at both ends.

It ends with 0 when everything could be measured, 1 when it could not, 3 when nothing answers at
HOST, and 6 when bytes are missing that nobody has booked.

Examples:
  dacapo bench xtp                                                # some minutes
  dacapo bench xtp --mode stream --send-len 65536 --seconds 1
  dacapo bench xtp --mode ack-rel,ack-un,blast --bytes 1MB --seconds 0.1 --json | jq .derived
  dacapo bench xtp --listen --packet-len 1452                     # on one host, and on another:
  dacapo bench xtp 192.0.2.7 --packet-len 1452 --mode stream --rate '500 Mbit/s'
  sudo dacapo bench xtp --over ip --mode stream,blast-steady";

pub const COMPLETIONS: &str = "\
Examples:
  dacapo-eval completions bash > ~/.local/share/bash-completion/completions/dacapo-eval
  source <(dacapo-eval completions bash)      # for this shell only";

pub const MAN: &str = "\
Examples:
  dacapo-eval man | man -l -
  dacapo-eval man ~/.local/share/man/man1 && man dacapo-eval-net";
