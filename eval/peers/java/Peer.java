/* Aeron over UDP, unicast, or between processes, with the command line and the windows of the other
 * peers (src/lib.rs).
 *
 *   Peer udp|ipc sink|source|echo|ping ADDR:PORT SIZE SECONDS spin
 *
 * Settings: each end is one process and one thread: the media driver and the client are invoked by
 * the thread that sends or polls (INVOKER), which suits two processors and two processes best; full
 * datagrams (MTU 1472), terms of 16 MiB, windows and socket buffers of 4 MiB, no bounds checks. The
 * virtual machine compiles while it runs, so the warm-up is 2 s. Aeron polls, so it only spins.
 * Between processes (ipc) the end that listens has the driver, and the other end none; a message is
 * not cut (MTU 65,504).
 */
import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.FragmentHandler;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Locale;
import org.agrona.concurrent.AgentInvoker;
import org.agrona.concurrent.UnsafeBuffer;

public final class Peer {
    private static final double WARM_UP = 2.0, GRACE = 0.2, PATIENCE = 10.0;
    private static final int MTU = 1472, TERM = 16 << 20, WINDOW = 4 << 20, LIMIT = 64;
    private static final int IPC_MTU = 65_504;

    private final String role, host;
    private final boolean isIpc;
    private final int port, size;
    private final double seconds;
    private AgentInvoker driver, client;

    /* Counts from the first message on and remembers what the window was. */
    private final class Window {
        double started = -1, opened = -1, closed = -1, cpuOpened, cpuClosed;
        long bytes, messages, bytesOpened, messagesOpened, bytesClosed, messagesClosed;

        boolean count(int len) {
            final double now = now();
            if (started < 0) {
                started = now;
            }
            if (opened < 0 && now - started >= WARM_UP) {
                opened = now;
                cpuOpened = cpu();
                bytesOpened = bytes;
                messagesOpened = messages;
            }
            if (opened >= 0 && closed < 0 && now - opened >= seconds) {
                closed = now;
                cpuClosed = cpu();
                bytesClosed = bytes;
                messagesClosed = messages;
            }
            bytes += len;
            messages++;
            return closed < 0;
        }

        boolean isPastGrace() {
            return closed >= 0 && now() - started >= WARM_UP + seconds + GRACE;
        }

        void report() {
            if (closed < 0) {
                stop("the other end left before the window was over");
            }
            say("{\"role\":\"%s\",\"seconds\":%.6f,\"bytes\":%d,\"messages\":%d,\"lost\":null,"
                + "\"cpu_s\":%.6f}", role, closed - opened, bytesClosed - bytesOpened,
                messagesClosed - messagesOpened, cpuClosed - cpuOpened);
        }
    }

    private Peer(final String[] words) {
        if (words.length != 6 || !words[0].equals("udp") && !words[0].equals("ipc")) {
            stop("the command line is: udp|ipc sink|source|echo|ping ADDR:PORT SIZE SECONDS spin");
        }
        if (!words[5].equals("spin") && (words[1].equals("echo") || words[1].equals("ping"))) {
            stop("Aeron polls: a ping only spins");
        }
        final int colon = words[2].lastIndexOf(':');
        role = words[1];
        isIpc = words[0].equals("ipc");
        host = words[2].substring(0, colon);
        port = Integer.parseInt(words[2].substring(colon + 1));
        size = Integer.parseInt(words[3]);
        seconds = Double.parseDouble(words[4]);
    }

    private static double now() {
        return System.nanoTime() / 1e9;
    }

    private static double cpu() {
        final var bean = ManagementFactory.getOperatingSystemMXBean();
        return ((com.sun.management.OperatingSystemMXBean)bean).getProcessCpuTime() / 1e9;
    }

    private static void say(final String format, final Object... values) {
        System.out.println(String.format(Locale.ROOT, format, values));
        System.out.flush();
    }

    private static void stop(final String why) {
        System.err.println("Aeron: " + why);
        System.err.flush();
        Runtime.getRuntime().halt(1);
    }

    private void invoke() {
        drive();
        client.invoke();
    }

    private void drive() {
        if (driver != null) {
            driver.invoke();
        }
    }

    /* The channel to whoever listens at that port of the far end (0), or of the near one (1). */
    private String channel(final String at, final int way) {
        if (isIpc) {
            return "aeron:ipc?alias=" + way;
        }
        return "aeron:udp?endpoint=" + at + ":" + (port + 10_000 * way);
    }

    /* Between processes both ways have one channel, and a stream each. */
    private int stream(final int way) {
        return isIpc ? 1 + way : 1;
    }

    private boolean listens() {
        return role.equals("sink") || role.equals("echo");
    }

    private Aeron open() {
        final String folder = System.getenv("PEERS_DIR");
        if (folder == null) {
            stop("PEERS_DIR does not name a folder for the media driver");
        }
        final String whose = isIpc ? "ipc" : role;
        final String place = new File(folder, "aeron-" + whose + "-" + port).getPath();
        final Aeron.Context context = new Aeron.Context().aeronDirectoryName(place);
        if (!isIpc || listens()) {
            launch(place);
            context.driverAgentInvoker(driver);
        }
        final Aeron aeron = Aeron.connect(context.useConductorAgentInvoker(true));
        client = aeron.conductorAgentInvoker();
        return aeron;
    }

    private void launch(final String place) {
        final MediaDriver media = MediaDriver.launch(new MediaDriver.Context()
            .aeronDirectoryName(place)
            .threadingMode(ThreadingMode.INVOKER)
            .dirDeleteOnStart(true)
            .mtuLength(MTU)
            .publicationTermBufferLength(TERM)
            .ipcTermBufferLength(TERM)
            .ipcMtuLength(IPC_MTU)
            .initialWindowLength(WINDOW)
            .socketRcvbufLength(WINDOW)
            .socketSndbufLength(WINDOW)
            .performStorageChecks(false)
            .warnIfDirectoryExists(false));
        driver = media.sharedAgentInvoker();
    }

    private void waitFor(final java.util.function.BooleanSupplier isThere) {
        final double started = now();
        while (!isThere.getAsBoolean()) {
            invoke();
            if (now() - started > PATIENCE) {
                stop("nobody is there");
            }
        }
    }

    private void sink() {
        final Subscription in = open().addSubscription(channel(host, 0), stream(0));
        final Window window = new Window();
        final FragmentHandler count = (buffer, offset, len, header) -> window.count(len);
        say("ready");
        waitFor(in::isConnected);
        while (window.closed < 0) {
            if (in.poll(count, LIMIT) == 0 && !in.isConnected()) {
                break;
            }
            invoke();
        }
        window.report();
    }

    private void source() {
        final ExclusivePublication out = open().addExclusivePublication(channel(host, 0), stream(0));
        final UnsafeBuffer message = new UnsafeBuffer(new byte[size]);
        final Window window = new Window();
        waitFor(out::isConnected);
        while (!window.isPastGrace() && out.isConnected()) {
            for (int i = 0; i < LIMIT && out.offer(message, 0, size) > 0; i++) {
                window.count(size);
            }
            invoke();
        }
        window.report();
    }

    private void echo() {
        final Aeron aeron = open();
        final Subscription in = aeron.addSubscription(channel(host, 0), stream(0));
        say("ready");
        waitFor(in::isConnected);
        final String from = in.imageAtIndex(0).sourceIdentity();
        final String near = isIpc ? host : from.substring(0, from.lastIndexOf(':'));
        final ExclusivePublication out =
            aeron.addExclusivePublication(channel(near, 1), stream(1));
        final FragmentHandler back = (buffer, offset, len, header) -> send(out, buffer, offset, len);
        while (true) {
            in.poll(back, 1);
            invoke();
        }
    }

    private void send(
        final ExclusivePublication out, final org.agrona.DirectBuffer buffer, final int offset,
        final int len) {
        while (out.offer(buffer, offset, len) < 0) {
            invoke();
        }
        drive();
    }

    private void ping() {
        final Aeron aeron = open();
        final Subscription in = aeron.addSubscription(channel("0.0.0.0", 1), stream(1));
        final ExclusivePublication out = aeron.addExclusivePublication(channel(host, 0), stream(0));
        final UnsafeBuffer message = new UnsafeBuffer(new byte[size]);
        final FragmentHandler take = (buffer, offset, len, header) -> { };
        waitFor(out::isConnected);
        waitFor(in::isConnected);
        double[] oneWay = new double[1 << 16];
        int count = 0;
        double cpuBefore = 0;
        final double started = now();
        while (true) {
            final long sent = System.nanoTime();
            send(out, message, 0, size);
            while (in.poll(take, 1) == 0) {
                invoke();
            }
            final double us = (System.nanoTime() - sent) / 2e3;
            final double since = now() - started;
            if (since > WARM_UP + seconds) {
                break;
            }
            if (since >= WARM_UP) {
                if (count == 0) {
                    cpuBefore = cpu();
                }
                if (count == oneWay.length) {
                    oneWay = Arrays.copyOf(oneWay, count * 2);
                }
                oneWay[count++] = us;
            }
        }
        final double[] sorted = Arrays.copyOf(oneWay, count);
        Arrays.sort(sorted);
        say("{\"role\":\"ping\",\"wait\":\"spin\",\"count\":%d,\"p50_us\":%.3f,\"p99_us\":%.3f,"
            + "\"p999_us\":%.3f,\"max_us\":%.3f,\"cpu_s\":%.6f}", count, at(sorted, 0.5),
            at(sorted, 0.99), at(sorted, 0.999), at(sorted, 1), cpu() - cpuBefore);
    }

    private static double at(final double[] sorted, final double share) {
        return sorted[Math.max((int)Math.ceil(share * sorted.length) - 1, 0)];
    }

    public static void main(final String[] words) {
        final Peer peer = new Peer(words);
        switch (peer.role) {
            case "sink" -> peer.sink();
            case "source" -> peer.source();
            case "echo" -> peer.echo();
            case "ping" -> peer.ping();
            default -> stop(peer.role + " is no role (sink, source, echo or ping)");
        }
        /* The result is out: no need to close what ends with the process. */
        Runtime.getRuntime().halt(0);
    }
}
