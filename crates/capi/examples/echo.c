// Sends every message back to where it came from.
//
//     echo <socket> <service>            sends messages back, until the node is gone
//     echo <socket> <service> <node> <n> sends n messages there and waits for their echoes

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rampmeter.h"

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, rm_error());
    return 1;
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

static int ask(rm_port *port, uint16_t service, uint32_t node, unsigned n) {
    rm_options options = {.deadline_ns = 5 * 1000 * 1000, .tenant = 1};
    uint64_t bound_ns = 0;
    for (unsigned i = 0; i < n; i++) {
        char text[64];
        int size = snprintf(text, sizeof text, "message %u", i) + 1;
        rm_submitted submitted;
        if (rm_submit(port, node, service, text, size, &options, &submitted) != 0) {
            return fail("submit");
        }
        if (submitted.bound_ns != rm_bound(port, size, options.tenant)) {
            fprintf(stderr, "message %u has two bounds\n", i);
            return 1;
        }
        bound_ns = submitted.bound_ns;
        for (int is_over = 0, is_back = 0; !is_over || !is_back;) {
            rm_event event;
            if (rm_next(port, 20 * 1000, &event) != 1) {
                return fail("next");
            }
            if (event.kind == RM_FINISHED) {
                if (event.ticket != submitted.ticket || event.failure != 0) {
                    fprintf(stderr, "message %u failed: %s\n", i,
                            rm_failure_text(event.failure));
                    return 1;
                }
                is_over = 1;
            } else {
                if (event.size != (size_t)size || memcmp(event.bytes, text, size) != 0) {
                    fprintf(stderr, "message %u came back altered\n", i);
                    return 1;
                }
                rm_release(event.message);
                is_back = 1;
            }
        }
    }
    printf("%u echoes", n);
    if (bound_ns > 0) {
        printf(", the last within %llu ns", (unsigned long long)bound_ns);
    }
    printf("\n");
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 5) {
        fprintf(stderr, "usage: echo <socket> <service> [<node> <n>]\n");
        return 2;
    }
    uint16_t service = (uint16_t)atoi(argv[2]);
    rm_port *port;
    if (rm_attach(argv[1], service, NULL, &port) != 0) {
        return fail("attach");
    }
    printf("attached\n");
    fflush(stdout);
    int status = argc == 3 ? serve(port, service)
                           : ask(port, service, (uint32_t)atoi(argv[3]), (unsigned)atoi(argv[4]));
    rm_close(port);
    return status;
}
