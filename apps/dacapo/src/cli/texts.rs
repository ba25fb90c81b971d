//! What every help says after its list of options: notes, examples, exit codes.
//!
//! Invariant: a text is made of blocks with an empty line between them. A block whose first line
//! ends with a colon is a list and stays as it is; any other is a paragraph. The manual pages
//! are made of these blocks.

pub use dacapo_term::exit::HELP as EXIT_CODES;

/// A help whose paragraphs are a line each, for whoever breaks lines; lists stay as they are.
pub fn filled(help: &str) -> String {
    let fill = |block: &str| match block.lines().next() {
        Some(first) if first.ends_with(':') => block.to_owned(),
        _ => block.replace('\n', " "),
    };
    let blocks: Vec<String> = help.split("\n\n").map(fill).collect();
    blocks.join("\n\n")
}

pub const EXAMPLES: &str = "\
Examples:
  dacapo demo                              see it work, on this host alone
  dacapo serve conf/testcard.toml          then, in another terminal:
  dacapo play dacapo://127.0.0.1/testcard --save out";

pub const SERVE: &str = "\
Without --listen only this host can join. Every session is at dacapo://HOST:PORT/NAME, NAME being
that of its file. Files other than AVI (Motion JPEG, PCM) and WAV are refused with the ffmpeg line
that converts them, and files that are missing with the command that makes one.

With --json every event is a line with an object; its \"event\" is one of:
  listening  ready (where programs on this host find it: dacapo://HOST:PORT/), addresses, hosts
             (as others type them), this_host_only, identity (others see it as unverified),
             sessions: uri, name, title and flows, each with name, medium, graph, bound_bps,
             playout_ns, playout_min_ns and direction (to-participant, to-creator)
  joined     session, peer (its address), identity, identity_is_verified, flows as above, and path:
             what is known of it, by which they were chosen where nobody describes it: rtt_us_min,
             rtt_us_variation, loss_ppm, burst_milli (mean run of losses), delivery_rate_bps and
             held_bps, null where nothing is known
  contact_lost, contact_restored (after_s), path_mtu_changed (from_bytes, to_bytes),
  path_held  (loss_ppm of ten seconds; rate_bps that flows are held to, null: no longer),
  stood_in   (flow, transport, reason): session, peer, and what is in brackets
  left       session, peer, error (or null), accounts: the ledgers, as in play --json
  refused    error

Examples:
  dacapo serve conf/movie.toml
  dacapo serve conf/movie.toml conf/radio.toml --listen 0.0.0.0 --listen ::
  dacapo serve conf/testcard.toml --port 0 --once     # the first line: ready dacapo://…
  dacapo serve conf/movie.toml --json | jq -c 'select(.event == \"left\") | .accounts[]'";

pub const LS: &str = "\
Examples:
  dacapo ls 127.0.0.1
  dacapo ls media.example:19980 --json
  dacapo ls '[2001:db8::7]'";

pub const PLAY: &str = "\
Keys, when the input is a terminal:
  space, p  stop and go on        >  to the end         +, -  faster, slower
  f         fast forward          <  to the start       q     quit
  r         fast reverse

Without --save the pictures and the sound go to ffplay, when it is installed; else they are counted.

With --link a relay in this process stands between the player and the server. It emulates a network
of datagrams; TCP would not pass it, so the player says that it has UDP only, and a flow that is
bound to TCP is refused. What the link did is in the account.

Examples:
  dacapo play dacapo://127.0.0.1/movie
  dacapo play dacapo://media.example/movie --save recordings --quiet
  dacapo play dacapo://127.0.0.1/movie --save out --link loss=5%,burst=3,delay=20ms
  dacapo play dacapo://127.0.0.1/radio --save out --json | jq '.flows[].account.units_lost'";

pub const CONTROL: &str = "\
Commands:
  play      go on                 fwd       jump to the end and stop there
  stop      stay where it is      rwd       jump to the start
  ff        fast forward          fps N     N pictures per second, or nominal
  fr        fast reverse          status    what it does and where it is

Every player listens at $XDG_RUNTIME_DIR/dacapo/PID.sock, for its own user only.

Examples:
  dacapo control ff
  dacapo control fps 12.5
  dacapo control status --pid 4711";

pub const CHECK: &str = "\
Examples:
  dacapo check conf/movie.toml
  dacapo check conf/movie.toml && dacapo serve conf/movie.toml";

pub const TESTMOVIE: &str = "\
The same options give the same bytes on every machine.

Examples:
  dacapo testmovie movie.avi
  dacapo testmovie short.avi --duration 5s --size 320x240 --fps 30000/1001
  dacapo testmovie tone.wav --wav --duration 1min";

pub const INSPECT: &str = "\
Two files with equal hashes of a stream hold the same pictures or sound, whatever the container.

Examples:
  dacapo inspect movie.avi
  dacapo inspect tone.wav --json";

pub const DEMO: &str = "\
The server runs as a second process of this program, on loopback, at a port that the system chooses.

With --link what arrives need not be what was sent: the accounts of both ends must then close and
agree, and every picture and sample that arrived is compared with its original. The protocol is
chosen for the link (--path of `dacapo serve`).

Examples:
  dacapo demo
  dacapo demo --link loss=5%,delay=20ms
  dacapo demo --duration 10 --speed 4 --out out/demo";

pub const DOCTOR: &str = "\
Every check is ok, info (a fact to know), warn (it works, but worse than it could) or fail (it will
not work), with what was found and, where something can be done, what. Nothing on this host is
changed. It ends with 1 when a check fails, else with 0.

With --json it prints an array of { check, state, found, advice }; the advice is null where there is
nothing to do.

Examples:
  dacapo doctor
  dacapo doctor --port 5000
  dacapo doctor --json | jq -r '.[] | select(.state == \"fail\") | .check'";

pub const COMPLETIONS: &str = "\
To install:
  bash        dacapo completions bash > ~/.local/share/bash-completion/completions/dacapo
  zsh         dacapo completions zsh > ~/.zfunc/_dacapo
              and in ~/.zshrc, before compinit: fpath=(~/.zfunc $fpath)
  fish        dacapo completions fish > ~/.config/fish/completions/dacapo.fish
  elvish      in ~/.config/elvish/rc.elv: eval (dacapo completions elvish | slurp)
  powershell  in $PROFILE: dacapo completions powershell | Out-String | Invoke-Expression

For all users of a host: /usr/share/bash-completion/completions/dacapo,
/usr/share/zsh/site-functions/_dacapo, /usr/share/fish/vendor_completions.d/dacapo.fish.

Examples:
  dacapo completions bash > ~/.local/share/bash-completion/completions/dacapo
  source <(dacapo completions bash)           # for this shell only";

pub const MAN: &str = "\
To install:
  dacapo man ~/.local/share/man/man1      for this user
  dacapo man /usr/local/share/man/man1    for all users

There is a page for every command: man dacapo-play. Pages that are in the folder are written over.

Examples:
  dacapo man | man -l -
  dacapo man ~/.local/share/man/man1 && man dacapo-serve";

pub const SEND: &str = "\
What the protocol must be is said with --ask, by attributes: throughput, delay, jitter, loss, order,
duplicates, integrity, deadline, priority, share, frame_rate, cpu, confidentiality, authenticity,
newest. Without --ask it is reliable. The receiver's host chooses the protocol; a request that it
cannot meet is refused with the nearest one that it can. The files are hashed (SHA-256) at both
ends.

With --format and --deadline it is a broadcast: what is older than the deadline is not shown, what
is lost leaves a gap, and the protocol is the one that leaves the fewest; what had waited in a pipe
before the flow began is not sent. The deadline counts from when a unit of up to seven packets is
whole, 8 ms after the first of them was read at most, to when it is written at the other end. Say
the rate with --ask, which lets the protocol be chosen for it: \"throughput>=5Mbit/s\".

Examples:
  dacapo send 192.0.2.7 holiday.avi notes.txt
  tar -c photos | dacapo send 192.0.2.7 - --name photos.tar
  dacapo send '[2001:db8::7]:7000' measurements.bin --ask \"loss<=1%, throughput>=20Mbit/s\"
  dacapo send 192.0.2.7 image.iso --json | jq .transfer
  ffmpeg -re -i film.mp4 -c copy -f mpegts - | dacapo send 192.0.2.7 - --format mpegts \
      --deadline 200ms --ask \"throughput>=5Mbit/s\"";

pub const RECV: &str = "\
Saves under the names that the sender gives, without their folders, in --out. Nothing that exists is
written over without --force. A file that is not whole in the end is kept as NAME.incomplete. Ends
after the first sender, unless --keep is given.

With --json every event is a line: listening (addresses, identity), joined (peer, graph), refused
(error), received (files with name, path, bytes, bytes_missing, sha256 and fault; error; transfer;
accounts).

Examples:
  dacapo recv --listen 0.0.0.0 --out incoming
  dacapo recv --stdout | tar -x
  dacapo recv --stdout --format mpegts --path \"internet,loss=2%\" | ffplay -
  dacapo recv --keep --ask \"loss=0, integrity=checked\" --path lan";

pub const EXPLAIN: &str = "\
For each module it says which attributes force it; for its nearest neighbours, what they would break
or cost. PATH is one of loopback, lan, internet, wireless, with changes: \"lan,loss=0.1%\"; its keys
are rate, delay, jitter, loss, burst. Without it and without [path] in the file it is the internet.

A media file need not be there: what is missing is taken for what `dacapo testmovie` makes (640x360
Motion JPEG, 25 pictures a second; 16 bit stereo at 48 kHz), and that is said, with the command that
makes it (with --json in the flow's assumed_medium).

Examples:
  dacapo explain conf/movie.toml
  dacapo explain conf/movie.toml --path wireless
  dacapo explain conf/movie.toml --ask \"loss=0\" --json";

pub const MODULES: &str = "\
Examples:
  dacapo modules
  dacapo modules sequence
  dacapo modules --json | jq -r '.modules[].name'";

pub const BENCH: &str = "\
Another program measures, dacapo-eval, and this command becomes it, with NAME and whatever follows.
It is looked for beside dacapo, then in PATH; `make build` builds both, and in a checkout `cargo
install --locked --path apps/eval` installs it. All that it measures, and how, it says itself.

Examples:
  dacapo bench help                        what is measured
  dacapo bench net --help                  its options, and what it means
  dacapo bench net                         what goes from process to process on this host";

pub const EVALUATE: &str = "\
Another program does, dacapo-eval, and this command becomes it, as `dacapo bench` does. It is called
in a checkout, where runs are kept in eval/runs. Between two hosts it measures in network namespaces
that it makes, which needs root.

Examples:
  dacapo eval list                         the experiments, and the runs that are kept
  dacapo eval run network                  beside TCP, quinn, SRT, ZeroMQ and others
  dacapo eval show network                 the tables of its last run
  dacapo eval check                        whether the documents' figures were measured";

pub const LINK: &str = "\
With --to it is a UDP relay and needs no rights: every source address is a client with a socket of
its own to the server; there are 256 at most, forgotten when silent for 5 minutes. It does not relay
TCP, because a relayed byte stream loses nothing: sessions through it have UDP only. With --between
it carries everything that is IP between two network namespaces, and needs root.

CONFIG is \"perfect\" or some of these, separated by commas:
  delay=20ms, jitter=5ms, shape=normal    how long it takes; uniform otherwise
  keep-order=no                           jitter may change the order
  loss=5%, burst=10                       share that is lost; mean length of a run of losses
  loss=5%, burst=26ms                     the same as a time, however much is sent meanwhile
  gilbert=0.5%:10%:0%:100%                p_enter:p_leave:loss_good:loss_bad, instead of loss
  dup=1%                                  arrives twice
  reorder=2%, reorder-by=10ms             is held back for up to this long
  corrupt=0.1%                            altered, and a checksum of UDP, TCP or ICMP shows it
  corrupt-undetected=0.1%                 altered, and no such checksum shows it
  rate=10Mbit/s, queue=100, queue-bytes=64kB
  trace=FILE, trace=cellular:7            instead of a rate: what leaves when, in Mahimahi's format
                                          (a line, in ms, for each 1,500 bytes that can leave; no
                                          comma in FILE), or made from a seed
  aqm=codel, aqm-target=5ms, aqm-interval=100ms
                                          drops or marks before the queue is full (RFC 8289)
  aqm=dualpi2, aqm-target=15ms            the same with a second queue for L4S (RFC 9332)
  ecn=clear                               takes both ECN bits from all that enters (to Not-ECT)
  partition=5s..7s+20s..never             nothing passes; times count from the start
  mtu=1280, mtu-from=10s                  longer ones vanish (a black hole), from then on
  in-flight=65536                         on the way at once, at most

A relay counts the bytes of payload for rate, queue and mtu, --between those of IP packets. Over a
relay what \"corrupt\" alters is lost; with --between it goes on with a wrong checksum.

With --json every event is a line: listening (relay, to or namespaces, addresses; forward, back,
seed) and totals (forward, back: counters of the links; lateness_us, unsent, refused, kernel_drops,
closes).

Examples:
  dacapo link loss=5%,delay=20ms --to 127.0.0.1       # prints where clients find it
  dacapo link \"rate=2Mbit/s,queue=50\" --back delay=300ms --listen 0.0.0.0:7000 --to 192.0.2.7
  sudo dacapo link loss=1%,burst=5 --between a,b &    # then: sudo ip netns exec a ping 10.77.0.2
  dacapo link perfect --to 127.0.0.1 --for 30s --json | jq 'select(.event == \"totals\")'";

pub const XTP: &str = "\
XTP 4.0 as it is, between two programs that speak it: not a session of dacapo, and not encrypted.
There is no congestion control: beyond a network of one's own, `send` wants --rate.

Examples:
  dacapo xtp listen --out incoming                      # here; and from this host:
  dacapo xtp send 127.0.0.1 holiday.avi
  dacapo xtp ping 127.0.0.1 --count 100 --interval 10ms
  dacapo xtp capture lo xtp.pcapng --for 10s            # needs root";

pub const XTP_LISTEN: &str = "\
Without --listen only this host is served. Files are saved under the names that the sender gives,
without their folders; nothing that exists is written over without --force, and a file that is not
whole in the end is kept as NAME.incomplete. Transactions (`xtp ping`) get back what they send, up
to 64 KiB. Ends at a signal, or with --once after the first sender: then with 0, or with 6 when a
sender had a fault.

With --json every event is a line: listening (over, address, port), received (peer, files with name,
path, bytes, sha256 and fault; error), totals (associations, pings, files, faulty, packets).

Examples:
  dacapo xtp listen --out incoming
  dacapo xtp listen --listen 0.0.0.0:4040 --once --json
  dacapo xtp listen --listen 192.0.2.7 --group 239.1.2.3 --interface eth0
  sudo dacapo xtp listen --over ip --listen 192.0.2.7
  sudo dacapo xtp listen --over ethernet --interface eth0";

pub const XTP_SEND: &str = "\
The files go as one reliable stream; both ends hash them (SHA-256), and the hashes are compared
here. It ends with 0 when all arrived, 3 when nobody answers, 6 when a hash differs.

To a group the stream begins when --members have joined. Of every member is said when it joins, and
when it has everything, or why it has not; each compares the hashes itself. It ends with 0 when all
that joined have everything, with 6 when not, with 3 when too few have joined.

With --json every event is a line: sent (path, bytes, sha256; of a host sha256_received, equal),
joined and left (member, address; bytes_acknowledged, complete, why), totals (bytes, seconds,
gbit_per_s, packets).

Examples:
  dacapo xtp send 192.0.2.7 holiday.avi notes.txt --rate 100Mbit/s
  dacapo xtp send 239.1.2.3:4040 holiday.avi --members 3 --interface eth0 --rate 100Mbit/s
  dacapo xtp send '[2001:db8::7]:4040' holiday.avi --capture sent.pcapng
  sudo dacapo xtp send --over ip 192.0.2.7 holiday.avi
  sudo dacapo xtp send --over ethernet --interface eth0 02:11:22:33:44:55 holiday.avi";

pub const XTP_PING: &str = "\
Each is a transaction: a request in the first packet, the response in the second, the end in the
third. The time is that from the request to the response. It ends with 0 when one was answered, else
with 3 when nobody was there, with 6 when other bytes came back, or with 1.

Examples:
  dacapo xtp ping 192.0.2.7
  dacapo xtp ping 192.0.2.7 --count 1000 --interval 1ms --size 1000 --json";

pub const XTP_CAPTURE: &str = "\
Looks at what the interface carries, both ways: IP protocol 36, Ethernet type 817D, and UDP from or
to --udp-port. Datagrams that the kernel has put together are taken apart again. Needs root or
CAP_NET_RAW; `--capture` of the other commands writes their own packets and needs no rights.

Wireshark knows protocol 36 by itself. For UDP and Ethernet it wants these lines (-X lua_script:):
  local xtp = DissectorTable.get(\"ip.proto\"):get_dissector(36)
  DissectorTable.get(\"udp.port\"):add(4040, xtp)
  DissectorTable.get(\"ethertype\"):add(0x817d, xtp)

Examples:
  sudo dacapo xtp capture eth0 xtp.pcapng
  sudo dacapo xtp capture lo - --count 100 | tshark -X lua_script:xtp.lua -r -";
