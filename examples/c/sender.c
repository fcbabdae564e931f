/* A sender in miniature around quicgym's controllers: a 10 Mbps link, a queue of 40 packets, 50 ms there and
 * back. Prints window and RTT each second. How to compile it: docs/how-to/c-interface.md. */
#include <quicgym/controller.h>
#include <stdio.h>
#include <stdlib.h>

enum { PACKET = 1200, MOST = 1 << 16 };
static const int64_t MS = 1000000, SERVICE_NS = PACKET * 8 * 100; /* 10 Mbps: 100 ns per bit */

static void check(int code) {
    if (code == QUICGYM_OK) return;
    fprintf(stderr, "quicgym: %s\n", quicgym_last_error());
    exit(1);
}

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "cubic";
    static int64_t arrives[MOST]; /* when a packet's acknowledgement comes back; 0: the queue dropped it */
    uint64_t sent = 0, resolved = 0, in_flight = 0, lost[256];
    int64_t now = 0, link_free = 0, next_send = 0, second = 1000 * MS;
    quicgym_controller *controller = quicgym_controller_new(name, PACKET, 1, now);
    if (controller == NULL) check(QUICGYM_INVALID);
    check(quicgym_on_handshake(controller, now, 50 * MS));

    while (now < 10000 * MS) {
        /* Send while window and pacing allow. */
        if (now >= next_send && in_flight + PACKET <= quicgym_window_bytes(controller) && sent < MOST) {
            if (link_free < now) link_free = now;
            int dropped = link_free - now > 40 * SERVICE_NS;
            if (!dropped) link_free += SERVICE_NS;
            arrives[sent] = dropped ? 0 : link_free + 50 * MS;
            check(quicgym_on_sent(controller, now, sent++, PACKET));
            in_flight += PACKET;
            next_send = now + (int64_t)(PACKET * 1e9 / quicgym_pacing_rate_bytes_per_s(controller));
        }
        /* The oldest packet that was not dropped is acknowledged next; dropped ones before it are then lost. */
        uint64_t acked = resolved;
        while (acked < sent && arrives[acked] == 0) acked++;
        if (acked < sent && arrives[acked] <= now) {
            size_t losses = 0;
            check(quicgym_on_ack(controller, now, 0, &acked, 1));
            while (resolved < acked && losses < 256) lost[losses++] = resolved++;
            check(quicgym_on_loss(controller, now, lost, losses));
            if (resolved == acked) resolved++;
            in_flight -= (losses + 1) * PACKET;
        }
        if (now >= second) {
            quicgym_snapshot_t state;
            check(quicgym_snapshot(controller, &state));
            printf("%s %2d s  window %6.1f kB  rtt %5.1f ms  %5.2f Mbps\n", name, (int)(now / (1000 * MS)),
                   (double)state.window_bytes / 1e3, (double)state.smoothed_rtt_ns / 1e6,
                   (double)state.delivered_bytes * 8e3 / (double)now);
            second += 1000 * MS;
        }
        now += MS / 20; /* the stack's timers: 50 us */
    }
    quicgym_controller_free(controller);
    return 0;
}
