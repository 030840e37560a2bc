// Round trips of 64 bytes: of messages between programs of two nodes, and of bare UDP.
//
//     ping serve <socket> <service>             sends messages back, until the node is gone
//     ping ask <socket> <service> <node> <n>    n round trips of messages
//     ping udp-serve <port>                     sends datagrams back, until it is killed
//     ping udp-ask <port> <n>                   n round trips over loopback
//
// Those that ask print the times in nanoseconds, a line each. A message has arrived before the next
// is sent, and its outcome has been heard.

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rampmeter.h"

enum { SIZE = 64, WARM_UP = 200 };

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, rm_error());
    return 1;
}

static int fail_udp(const char *what) {
    perror(what);
    return 1;
}

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int serve(rm_port *port, uint16_t service) {
    rm_event event;
    int n;
    while ((n = rm_next(port, -1, &event)) > 0) {
        if (event.kind != RM_RECEIVED) {
            continue;
        }
        int sent = rm_submit(port, event.source, service, event.bytes, event.size, NULL, NULL);
        rm_release(event.message);
        if (sent != 0) {
            return fail("submit");
        }
    }
    return n == RM_ERROR_NODE_GONE ? 0 : fail("next");
}

// Waits until the answer is there; a round trip ends with it, whenever the outcome is heard.
static int await_answer(rm_port *port, int *outcomes) {
    for (;;) {
        rm_event event;
        if (rm_next(port, 20 * 1000, &event) != 1) {
            return fail("next");
        }
        if (event.kind == RM_RECEIVED) {
            rm_release(event.message);
            return 0;
        }
        if (event.failure != 0) {
            fprintf(stderr, "a message failed: %s\n", rm_failure_text(event.failure));
            return 1;
        }
        *outcomes += 1;
    }
}

static int ask(rm_port *port, uint16_t service, uint32_t node, int n) {
    char text[SIZE] = "ping";
    int outcomes = 0;
    for (int i = 0; i < WARM_UP + n; i++) {
        long long start = now_ns();
        if (rm_submit(port, node, service, text, sizeof text, NULL, NULL) != 0) {
            return fail("submit");
        }
        if (await_answer(port, &outcomes) != 0) {
            return 1;
        }
        long long took = now_ns() - start;
        if (i >= WARM_UP) {
            printf("%lld\n", took);
        }
        while (outcomes <= i) {
            rm_event event;
            if (rm_next(port, 20 * 1000, &event) != 1 || event.kind != RM_FINISHED) {
                return fail("outcome");
            }
            outcomes += 1;
        }
    }
    return 0;
}

static int open_udp(int port, struct sockaddr_in *addr) {
    *addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return socket(AF_INET, SOCK_DGRAM, 0);
}

static int serve_udp(int port) {
    struct sockaddr_in addr, from;
    int fd = open_udp(port, &addr);
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) != 0) {
        return fail_udp("bind");
    }
    printf("bound\n");
    fflush(stdout);
    for (;;) {
        char text[SIZE];
        socklen_t length = sizeof from;
        ssize_t size = recvfrom(fd, text, sizeof text, 0, (struct sockaddr *)&from, &length);
        if (size < 0 || sendto(fd, text, (size_t)size, 0, (struct sockaddr *)&from, length) < 0) {
            return fail_udp("echo");
        }
    }
}

static int ask_udp(int port, int n) {
    struct sockaddr_in addr;
    int fd = open_udp(port, &addr);
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof addr) != 0) {
        return fail_udp("connect");
    }
    char text[SIZE] = "ping";
    for (int i = 0; i < WARM_UP + n; i++) {
        long long start = now_ns();
        if (send(fd, text, sizeof text, 0) < 0 || recv(fd, text, sizeof text, 0) < 0) {
            return fail_udp("ping");
        }
        long long took = now_ns() - start;
        if (i >= WARM_UP) {
            printf("%lld\n", took);
        }
    }
    close(fd);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "udp-serve") == 0) {
        return serve_udp(atoi(argv[2]));
    }
    if (argc == 4 && strcmp(argv[1], "udp-ask") == 0) {
        return ask_udp(atoi(argv[2]), atoi(argv[3]));
    }
    int is_serving = argc == 4 && strcmp(argv[1], "serve") == 0;
    int is_asking = argc == 6 && strcmp(argv[1], "ask") == 0;
    if (!is_serving && !is_asking) {
        fprintf(stderr, "usage: ping serve <socket> <service> | ask <socket> <service> <node> <n>\n"
                        "       ping udp-serve <port> | udp-ask <port> <n>\n");
        return 2;
    }
    uint16_t service = (uint16_t)atoi(argv[3]);
    rm_port *port;
    // Whoever asks takes answers at a service of its own, to which the server sends them.
    if (rm_attach(argv[2], service, NULL, &port) != 0) {
        return fail("attach");
    }
    if (is_serving) {
        printf("attached\n");
        fflush(stdout);
    }
    int status = is_serving ? serve(port, service)
                            : ask(port, service, (uint32_t)atoi(argv[4]), atoi(argv[5]));
    rm_close(port);
    return status;
}
