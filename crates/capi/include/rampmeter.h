// Messages between hosts, through the node of this machine. See docs/howto/applications.md.
//
// Made from crates/capi/src/lib.rs by
// `RAMPMETER_HEADER=write cargo test -p rampmeter-capi --test header`.

#ifndef RAMPMETER_H
#define RAMPMETER_H

#include <stddef.h>
#include <stdint.h>

// A submitted message has completed or failed.
#define RM_FINISHED 1

// A message has arrived.
#define RM_RECEIVED 2

// The maximum number of messages or bytes is in flight: read events, then retry.
#define RM_ERROR_FULL -1

// The message is longer than the send arena.
#define RM_ERROR_TOO_LONG -2

// The node has died or has disconnected the program, and everything has been reported.
#define RM_ERROR_NODE_GONE -3

// There is no node, or it refuses the program.
#define RM_ERROR_ATTACH -4

// An argument is null that must not be.
#define RM_ERROR_ARGUMENT -5

// The receiver does not respond.
#define RM_UNREACHABLE 1

// The receiver was restarted after bytes of the message had been sent.
#define RM_PEER_RESTARTED 2

// No program there receives messages of this service or size.
#define RM_REFUSED 3

// No node has this number.
#define RM_UNKNOWN_PEER 4

// The message is empty or longer than the maximum.
#define RM_BAD_SIZE 5

// This machine's node is being stopped.
#define RM_STOPPING 6

// This machine's node has died, or has disconnected the program.
#define RM_NODE_GONE 7

// The transport, which promises a bound, does not accept the message now. None of it was sent.
#define RM_REJECTED 8

// The bytes that arrived differ from those sent, and were dropped.
#define RM_CORRUPT 9

// The receiver could not reassemble the message: its `network.mtu` or transport differs.
#define RM_MISMATCH 10

// A message that has arrived.
typedef struct rm_message rm_message;

// A program's access to the node of its machine, for one service. Threads may share it.
typedef struct rm_port rm_port;

// Resources that a port requests from its node.
typedef struct {
  // Maximum number of messages in flight, 1 to 65536.
  uint32_t depth;
  // Bytes of the send arena.
  uint64_t send;
  // Bytes of the receive arena, for messages that arrive or are held.
  uint64_t receive;
} rm_config;

// Options of a message.
typedef struct {
  // Nanoseconds until the message is needed at its receiver, 0 for no deadline.
  uint64_t deadline_ns;
  // Tenant that the message belongs to, 0 for none.
  uint32_t tenant;
} rm_options;

// Result of a submission.
typedef struct {
  // Number of the message, which is also in the event that reports its outcome.
  uint64_t ticket;
  // Nanoseconds until that event at the latest, 0 if the transport promises no bound: the result
  // of `rm_bound` for the message.
  uint64_t bound_ns;
} rm_submitted;

// Event of a port.
typedef struct {
  // `RM_FINISHED` or `RM_RECEIVED`.
  uint32_t kind;
  // Finished: 0 if the message was delivered, or the reason for the failure, such as
  // `RM_REFUSED`.
  uint32_t failure;
  // Finished: the ticket of the message.
  uint64_t ticket;
  // Received: the sending node.
  uint32_t source;
  // Received: the bytes of the message, valid until it is released.
  const uint8_t *bytes;
  // Received: the number of bytes.
  size_t size;
  // Received: the message to release.
  rm_message *message;
  // Received: the user of the sending program, or -1 if it is not of this node.
  int64_t uid;
} rm_event;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Attaches to the node whose socket is at `path`, to receive the messages of `service`. `config`
// may be null: 1024 messages, 64 MiB in each direction. Returns 0 and sets `port`, or
// `RM_ERROR_ATTACH`.
//
// # Safety
// `path` is a string; `config` is null or valid; `port` may be written.
int rm_attach(const char *path, uint16_t service, const rm_config *config, rm_port **port);

// Submits a copy of `size` bytes to `service` at node `dst`. Its outcome is reported once, by an
// event with the ticket that is written to `submitted`, within the bound that is written there.
// `submitted` may be null, as may `options`. Returns 0, or `RM_ERROR_FULL`, `RM_ERROR_TOO_LONG` or
// `RM_ERROR_NODE_GONE`.
//
// # Safety
// `port` is attached; `bytes` has `size` bytes; `options` is null or valid; `submitted` is null or
// may be written.
int rm_submit(const rm_port *port,
              uint32_t dst,
              uint16_t service,
              const void *bytes,
              size_t size,
              const rm_options *options,
              rm_submitted *submitted);

// Returns the nanoseconds until the outcome of a message of `size` bytes is reported. They count
// from when the node reads the message from the submission queue; a submission wakes a sleeping
// node. Returns 0 if the transport promises no bound for messages of `tenant`. The node reports
// the outcome by then on its clock. The time until node and program are scheduled on a processor
// is not included.
//
// # Safety
// `port` is attached, or null, which has no bound.
uint64_t rm_bound(const rm_port *port, size_t size, uint32_t tenant);

// Returns the next event. Waits for `timeout_ms`: 0 does not wait, negative waits without a limit.
// Returns 1 and fills `event`, 0 if there is none, or `RM_ERROR_NODE_GONE`. A received message
// occupies memory until it is released.
//
// # Safety
// `port` is attached; `event` may be written.
int rm_next(const rm_port *port, int64_t timeout_ms, rm_event *event);

// Sets the maximum duration for which waiting threads poll before they sleep; they yield the
// processor meanwhile. The actual duration adapts to the intervals between events. 100 000 by
// default; 0 disables polling.
//
// # Safety
// `port` is attached.
int rm_set_busy_poll(const rm_port *port, uint64_t most_ns);

// Releases a received message; null is ignored. It may outlive its port.
//
// # Safety
// `message` is from an event and has not been released.
void rm_release(rm_message *message);

// Returns a descriptor that becomes readable at the next event after `rm_arm` has returned 0. The
// port owns it: do not read or close it.
//
// # Safety
// `port` is attached.
int rm_fd(const rm_port *port);

// Requests that the descriptor becomes readable at the next event. Returns 1 if an event may be
// pending: read all with `rm_next`, then arm again. Otherwise 0.
//
// # Safety
// `port` is attached.
int rm_arm(const rm_port *port);

// Closes the port; null is ignored. Messages in flight continue; their outcomes are not reported.
//
// # Safety
// `port` is attached, and no thread uses it any more.
void rm_close(rm_port *port);

// Returns the meaning of the `failure` of an event, such as that of `RM_REFUSED`; never null.
const char *rm_failure_text(uint32_t failure);

// Returns the error of this thread's last call that failed. The text stays valid until the next
// such call.
const char *rm_error(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RAMPMETER_H */
